"""A table of four cells and two data sets, whose numbers can be told by heart."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from theta0.space import get_space
from theta0.tables import Table, Trained

CELLS = tuple(
    get_space("nasbench201").format(cell) for _, cell in itertools.islice(enumerate(get_space("nasbench201")), 4)
)  # type: ignore[call-overload]
NAN = np.nan


def small(**changes: Any) -> Table:
    runs = np.array([[50.0, 60, 70, 80], [52, 62, 74, 80], [54, NAN, NAN, 83]])
    given: dict[str, Any] = {
        "name": "small",
        "space": "nasbench201",
        "source": "made here",
        "cells": CELLS,
        "trained": {
            ("cifar10", 200): Trained(runs, np.array([100.0, 200, 300, 400]), runs + 5),
            ("cifar10", 12): Trained(
                np.array([[10.0, 30, 20, 40]]), np.array([6.0, 12, 18, 24]), averaged=(True, False)
            ),
            ("cifar100", 200): Trained(runs[:1] / 2, np.array([200.0, 400, 600, 800]), runs[:1] / 4, (False, True)),
        },
        "costs": {
            ("cifar10", "parameters"): np.array([10.0, 20, 30, 40]),
            ("cifar100", "parameters"): np.array([11.0, 21, 31, 41]),
            ("cifar10", "phone_latency"): np.array([4.0, 3, 2, NAN]),
            ("cifar10", "phone_energy"): np.array([1.0, 1, 1, 1]),
        },
        "suspect": np.array([False, True, False, False]),
        "notes": ("a note",),
    }
    return Table(**{**given, **changes})
