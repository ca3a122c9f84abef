"""A method as a searcher of :mod:`theta0.searchers`: its fields are the options."""

from __future__ import annotations

import inspect
import logging
from dataclasses import fields
from typing import Any

import numpy as np

from theta0.oneshot.loop import Run
from theta0.oneshot.method import Method
from theta0.searchers import BudgetSpentError, Search, Searcher, Task

_log = logging.getLogger("theta0")


def searcher(method: type[Method]) -> Searcher:
    """Trains a supernet by ``method``, and evaluates the architecture that it ends with, which is chosen."""

    def search(task: Task, generator: np.random.Generator, **settings: Any) -> Search:
        stop = task.stop()
        run = Run(task, method(**settings), int(generator.integers(2**62)))
        run.open()
        run.run(stop)
        chosen = first_allowed(task, run.method.candidates(run, generator), generator)
        note = run.note()
        if note:
            _log.warning("%s: %s", method.__name__, note)
        why = {"skips": run.history[-1].skips, "loss": run.history[-1].loss} if run.history else {}
        proposal = task.proposal(chosen, None, search_epochs=len(run.history), **why)
        try:
            (outcome,) = yield [proposal]
        except BudgetSpentError:
            return chosen
        return None if outcome.failed else chosen

    known = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(method)
    ]
    first = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("task", "generator")]
    search.__signature__ = inspect.Signature([*first, *known])  # type: ignore[attr-defined]
    search.__name__ = search.__qualname__ = method.__name__
    search.__module__, search.__doc__ = method.__module__, method.__doc__
    return search


def first_allowed(task: Task, candidates: Any, generator: np.random.Generator) -> Any:
    """The first architecture that may be evaluated; a random one of those, where none of the candidates is."""
    for architecture in candidates:
        if task.allowed(architecture):
            return architecture
    return task.sample(generator)
