"""The commands of the command line: each is a function, and its options are the function's parameters.

A parameter without a default is an argument, a keyword-only one an option; its help is the text in its annotation.
Commands import what they need when they run, so that ``theta0 --help`` answers at once.
"""
