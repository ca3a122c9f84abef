"""A benchmark of 729 cells in which more convolutions are better, with scores that know a part of that."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np

from theta0.metrics import metrics
from theta0.objective import TableObjective
from theta0.pool import PoolScores
from theta0.spaces.nasbench201 import NASBench201
from theta0.tables import Table, Trained

space = NASBench201()
EPOCHS = (3, 12, 200)
_CODES = np.array(list(itertools.product((1, 2, 3), repeat=6)))  # skip connections, 1x1 and 3x3 convolutions
_WORTH = _CODES @ np.array([1.0, 1.5, 1.0, 2.0, 1.5, 1.0])


@cache
def table() -> Table:
    """Two data sets, the shorter the training the noisier; costs grow with the convolutions."""
    generator = np.random.default_rng(0)
    trained = {}
    for dataset, top in (("cifar10", 90.0), ("cifar100", 70.0)):
        for epochs, noise in zip(EPOCHS, (6.0, 3.0, 0.5), strict=True):
            mean = top - 2 * (_WORTH.max() - _WORTH) - 30 / epochs
            first, second, test = mean + noise * generator.standard_normal((3, len(mean)))
            trained[dataset, epochs] = Trained(np.stack([first, second]), epochs * (1 + _WORTH / 10), test[None])
    parameters = 1000 * _WORTH**2
    return Table(
        name="small",
        space="nasbench201",
        source="made here",
        cells=tuple(space.format(space.decode(codes)) for codes in _CODES.tolist()),
        trained=trained,
        costs={("cifar10", "parameters"): parameters, ("cifar100", "parameters"): parameters},
    )


@cache
def scores() -> PoolScores:
    """Every score that there is, in its variants; one in twelve cells is dead."""
    generator = np.random.default_rng(1)
    names = [f"{name}:{variant}" for name in metrics.names() for variant in metrics.get(name).variants]
    columns = []
    for name in names:
        sign = 1 if metrics.get(name.partition(":")[0]).direction == "higher" else -1
        columns.append(np.exp(sign * _WORTH / 3 + generator.standard_normal(len(_WORTH))))
    values = np.stack(columns, axis=1)
    validity = np.zeros(values.shape, dtype=np.uint8)
    dead = np.arange(len(values)) % 12 == 5
    values[dead], validity[dead] = np.nan, 1
    return PoolScores("nasbench201", list(table().cells), names, values, validity)


def objective(**changes: Any) -> TableObjective:
    """Of validation accuracy on the first data set."""
    return TableObjective(table(), "cifar10", **changes)
