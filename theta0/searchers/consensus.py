"""HNAS's winning mode: several scores and a surrogate over them in place of mu and nu.

HNAS's objective weighs one score against kappa, and a Gaussian process finds the weights. Here all scores are read as
ranks, their sum is the prior mean of a Gaussian process over the pool, and each evaluation teaches it which scores and
which choices of the architecture count on this task. docs/searchers.md has what was tried and measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from theta0.candidates import Candidates, Floats
from theta0.pool_surrogate import PoolSurrogate
from theta0.searchers import BudgetSpentError, Search, Task, searchers
from theta0.space import Space


@searchers.register("hnas")
def hnas(
    task: Task,
    generator: np.random.Generator,
    *,
    scores: tuple[str, ...] = ("flops", "synflow", "naswot", "jacob_cov", "kappa", "snip"),
    ranking: tuple[str, ...] = ("flops", "synflow", "jacob_cov"),
    capacity: tuple[str, ...] = ("flops", "synflow", "naswot"),
    gain: float = 0.5,
    encoding: float = 1.0,
    epochs: int = 0,
) -> Search:
    """Evaluates the expected best of the pool; ``scores`` are what the surrogate learns from, ``ranking`` its prior.

    ``encoding`` weighs the architecture's own choices beside them. A short training favours small networks: a value is
    the validation accuracy and ``gain`` times the pool's spread for each deviation of ``capacity``. Nothing is drawn.
    """
    pool = _distinct(task.pool(), task.space)
    known = np.stack([normal(pool, name) for name in scores], axis=1)
    if encoding:
        known = np.concatenate([known, encoding * one_hot(pool.architectures, task)], axis=1)
    prior = np.sum([normal(pool, name) for name in ranking], axis=0)
    model = PoolSurrogate(known, (prior - prior.mean()) / max(float(prior.std()), 1e-12))
    size = np.mean([normal(pool, name) for name in capacity], axis=0)
    budget = epochs or task.epochs[0]
    places: list[int] = []
    found: list[float] = []
    open_ = np.ones(len(pool), dtype=bool)

    def values() -> Floats:
        raw = np.array(found)
        return np.asarray(raw + gain * model.spread(places, raw) * size[places])

    def chosen() -> Any:
        return pool.architectures[places[int(np.argmax(values()))]] if places else None

    try:
        while open_.any():
            worth = model.improvement(places, values()) if places else prior
            place = int(np.argmax(np.where(open_, worth, -np.inf)))
            open_[place] = False
            (outcome,) = yield [task.proposal(pool.architectures[place], budget)._replace(choice=chosen())]
            if not outcome.failed:
                places.append(place)
                found.append(outcome.value)
    except BudgetSpentError:
        pass
    return chosen()


@lru_cache(maxsize=4)  # searches of one pool with many seeds
def _distinct(pool: Candidates, space: Space[Any]) -> Candidates:
    """One of each canonical form."""
    first: dict[Any, int] = {}
    for place, architecture in enumerate(pool.architectures):
        first.setdefault(space.canonical(architecture), place)
    return pool.select(np.array(list(first.values())))


def normal(pool: Candidates, score: str) -> Floats:
    """A score's ranks over the pool as quantiles of the normal distribution, (n,)."""
    size = len(pool)
    return np.asarray(ndtri((pool.ranks(score) * (size - 1) + 0.5) / size))


def one_hot(architectures: Sequence[Any], task: Task) -> Floats:
    """The choices of each architecture, (n, columns), scaled so that two that agree in none lie sqrt(2) apart."""
    codes = np.array([task.space.encode(architecture) for architecture in architectures])
    columns = [codes[:, [place]] == np.unique(codes[:, place]) for place in range(codes.shape[1])]
    return np.asarray(np.concatenate(columns, axis=1) / np.sqrt(codes.shape[1]))
