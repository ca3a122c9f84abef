"""Searches that train a supernet: one bilevel loop, and what each method makes of a step.

    class Uniform(Method):
        def weights(self, run, generator):
            return single(run.space, run.space.sample(generator))

    uniform = searchers.register("uniform")(searcher(Uniform))

``method`` has the settings and the hooks of a method, ``loop`` the loop that calls them, which can be stopped and
resumed at any step, ``judging`` the validation of candidates with shared weights. Each method is a file of
:mod:`theta0.searchers`.
"""

from __future__ import annotations

from theta0.oneshot.judging import accuracy, best
from theta0.oneshot.loop import Epoch, Run
from theta0.oneshot.method import Method
from theta0.oneshot.searcher import searcher

__all__ = ["Epoch", "Method", "Run", "accuracy", "best", "searcher"]
