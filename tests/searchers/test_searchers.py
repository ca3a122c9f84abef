"""What every searcher is given: its budget and its task."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.searchers import Budget, Proposal, Task, searchers

POOL = Candidates.of(scores(), space)


def task(limit: float | None = None, pool: Candidates | None = None) -> Task:
    return Task(objective(limits=limit and {"parameters": limit}), Budget(5), pool)


def test_names() -> None:
    assert {"random", "evolution", "zerocost", "hnas-paper", "robot"} <= set(searchers.names())


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_budget_is_more_than_zero(value: float) -> None:
    with pytest.raises(Theta0Error, match=f"a budget must be more than zero; seconds is {value}"):
        Budget(seconds=value)
    with pytest.raises(Theta0Error, match=f"a budget must be more than zero; evaluations is {value}"):
        Budget(value)  # type: ignore[arg-type]


def test_proposals() -> None:
    cell = table().architecture(0)
    assert task().proposal(cell) == Proposal(cell, 3, {})
    assert task().proposal(cell, 200, mu=0.5) == Proposal(cell, 200, {"mu": 0.5})
    assert (task().epochs, task().space.name) == ((3, 12, 200), "nasbench201")


def test_a_pool_that_is_not_there() -> None:
    assert task(pool=POOL).pool() is POOL
    with pytest.raises(Theta0Error, match="chooses from a scored pool; give one"):
        task().pool()


def test_samples_are_uniform_over_what_is_allowed() -> None:
    generator = np.random.default_rng(0)
    small = POOL.select(np.arange(6))
    counts = Counter(task(pool=small).sample(generator) for _ in range(600))
    assert chisquare([counts[cell] for cell in small.architectures]).pvalue > 1e-3
    limit = float(np.sort(table().parameters())[50])
    rows = [table().row(task(limit).sample(generator)) for _ in range(3)]
    assert (table().parameters(rows=rows) <= limit).all()


def test_mutations_are_allowed_and_near() -> None:
    generator = np.random.default_rng(0)
    free, cell = task(), table().architecture(300)
    for _ in range(20):
        child = free.mutate(cell, generator)
        assert child != cell
        assert child in table()
    limit = 100_000.0
    parent = table().architecture(int(np.flatnonzero(table().parameters() <= limit)[0]))
    for _ in range(5):
        child = task(limit).mutate(parent, generator)
        assert child != parent
        assert table().parameters(rows=table().row(child)) <= limit


def test_limits_that_nothing_meets_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("theta0.searchers._TRIES", 50)
    nothing = task()
    monkeypatch.setattr(type(nothing.objective), "allowed", lambda *_: False)
    with pytest.raises(Theta0Error, match="none of 50 random architectures is within the limits; raise them"):
        nothing.sample(np.random.default_rng(0))
    with pytest.raises(Theta0Error, match="50 mutations in a row are beyond the limits; raise them"):
        nothing.mutate(table().architecture(0), np.random.default_rng(0))
