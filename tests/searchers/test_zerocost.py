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


def searched(seed: int = 0, pool: Candidates = POOL, **options: Any) -> Result:
    return run("zerocost", objective(), Budget(10), seed=seed, scores=pool, **options)


@pytest.mark.parametrize(
    ("score", "best"), [("synflow:log", np.nanargmax), ("zen", np.nanargmax), ("kappa", np.nanargmin)]
)
def test_the_best_by_a_score(score: str, best: Any) -> None:
    result = searched(score=score)
    assert table().row(result.chosen) == best(POOL.column(score))
    assert not result.trials
    assert result.seconds == 0


def test_by_default_synflow() -> None:
    assert searched().chosen == searched(score="synflow").chosen


def test_a_sample() -> None:
    chosen = [table().row(searched(seed, sample=30).chosen) for seed in (0, 0, 1, 2, 3)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 2
    ranks = POOL.ranks("synflow")
    quantiles = [ranks[table().row(searched(seed, sample=30).chosen)] for seed in range(60)]
    # The best of 30 lies at 30 / 31 of the ranks, on average.
    assert np.mean(quantiles) == pytest.approx(30 / 31, abs=0.015)
    assert searched(sample=10_000).chosen == searched().chosen


def test_the_best_are_trained() -> None:
    result = searched(score="zen", train=4)
    order = np.argsort(-np.where(POOL.ok("zen"), POOL.column("zen"), -np.inf))
    assert [table().row(one.architecture) for one in result.trials] == order[:4].tolist()
    assert result.chosen == max(result.trials, key=lambda one: one.value).architecture
    assert len(searched(train=50).trials) == 10  # the budget


def test_invalid_scores_are_never_chosen() -> None:
    dead = POOL.select(~POOL.ok("zen"))
    with pytest.raises(Theta0Error, match=f"none of {len(dead)} architectures has a valid zen; take another score"):
        searched(pool=dead, score="zen")
    places = np.flatnonzero(~POOL.ok("zen"))
    mixed = POOL.select(np.append(places, [0]))
    assert searched(pool=mixed, score="zen").chosen == table().architecture(0)


@pytest.mark.parametrize("options", [{"sample": -1}, {"train": -3}])
def test_numbers_below_zero(options: dict[str, int]) -> None:
    with pytest.raises(Theta0Error, match="numbers of architectures, 0 or more"):
        searched(**options)


def test_unknown_scores() -> None:
    with pytest.raises(Theta0Error, match="the pool has no score 'synfow'; did you mean synflow"):
        searched(score="synfow")
