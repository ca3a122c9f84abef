"""Small searches for the tests: seconds each, with every stage that a long one has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from theta0.job import Found, search
from theta0.runs import Run

SMALL: dict[str, Any] = {
    "evaluations": 3,
    "pool": 12,
    "epochs": 1,
    "final_epochs": 2,
    "random": 2,
    "options": {"channels": 4, "cells": 1},
}


def small(root: Path, data: Any = "digits", **changes: Any) -> Found:
    return search(data, root=root, **{**SMALL, **changes})


def told(path: Path) -> dict[str, Any]:
    """All that a run found, but for what a clock says."""
    with Run.open(path) as run:
        scores = run.scores()
        finished = dict(run.events()[-1].facts)
        return {
            "trials": [(one.number, one.architecture, one.epochs, one.value, one.note) for one in run.trials()],
            "scores": (scores.architectures, scores.names, scores.values.tolist()),
            "curves": run.curves(),
            "end": {name: fact for name, fact in finished.items() if name not in ("latency_ms", "seconds")},
        }
