from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.searchers import Budget
from theta0.searching import Result, run

POOL = Candidates.of(scores(), space)
TWO = ("snip", "zen")


def searched(evaluations: int = 10, seed: int = 0, pool: Candidates = POOL, **options: Any) -> Result:
    return run("robot", objective(), Budget(evaluations), seed=seed, scores=pool, settings=options)


def stretched(names: tuple[str, ...] = TWO) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Each score from 0 to 1 over the pool; 0 where it is not valid."""
    columns = []
    for name in names:
        values = POOL.column(name)
        low, high = np.nanmin(values), np.nanmax(values)
        columns.append([0.0 if np.isnan(value) else (value - low) / (high - low) for value in values])
    return np.array(columns).T


def test_explored_architectures_are_the_best_of_some_ranking() -> None:
    trials = searched(4, scores=TWO, explore=1.0).trials
    angles = np.linspace(0, 2 * np.pi, 20_001)
    tops = set(np.argmax(stretched() @ np.stack([np.cos(angles), np.sin(angles)]), axis=0).tolist())
    assert {table().row(one.architecture) for one in trials} <= tops


def test_the_best_ranking_is_gone_down_greedily() -> None:
    """By one score there are two rankings: its own, and the other way round."""
    pool = POOL.select(np.arange(50))
    for seed in range(3):
        trials = searched(20, seed, pool, scores=("zen",), explore=0.1).trials
        rows = [table().row(one.architecture) for one in trials]
        values = np.where(pool.ok("zen"), pool.column("zen"), np.nanmin(pool.column("zen")))
        up = values[rows[2:]]
        best = max(trials[:2], key=lambda one: one.value).architecture
        sign = 1 if values[table().row(best)] > np.median(values) else -1
        assert (np.diff(sign * up) <= 0).all()
        assert len(set(rows)) == 20


def test_nothing_comes_twice_and_a_pool_ends() -> None:
    pool = POOL.select(np.arange(12))
    trials = searched(20, pool=pool, scores=TWO, explore=0.15).trials
    assert len(trials) == len({one.architecture for one in trials}) == 12


def test_it_finds_better_cells_than_random_search() -> None:
    def final(name: str) -> float:
        found = []
        for seed in range(3):
            chosen = run(name, objective(epochs=[200]), Budget(10), seed=seed, scores=POOL).chosen
            found.append(table().validation("cifar10", 200, table().row(chosen)))
        return float(np.mean(found))

    assert final("robot") > final("random") + 1


@pytest.mark.parametrize("explore", [0.0, -0.5, 1.5, float("nan")])
def test_shares_that_do_not_fit(explore: float) -> None:
    with pytest.raises(Theta0Error, match=f"explore is a share of the budget above 0 and at most 1, not {explore}"):
        searched(explore=explore)


def test_unknown_scores() -> None:
    with pytest.raises(Theta0Error, match="the pool has no score 'sniip'; did you mean snip"):
        searched(scores=("sniip",))
