"""Theory that one can run: kernels of networks of infinite width, bounds, and statements about training.

A file for each statement of the documents; what was found false as printed has a counter-example in its test.
"""
