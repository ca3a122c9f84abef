from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
from scipy.stats import chisquare

from tests.conftest import ROOT
from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.objective import Objective, Outcome, TableObjective
from theta0.searchers import Budget
from theta0.searching import run
from theta0.space import get_space

POOL = Candidates.of(scores(), space)


def test_a_pool_is_gone_through_once() -> None:
    result = run("random", objective(), Budget(10_000), scores=POOL)
    assert len(result.trials) == 729
    assert {one.architecture for one in result.trials} == set(POOL.architectures)
    assert [one.architecture for one in result.trials] != POOL.architectures
    assert result.chosen == max(result.trials, key=lambda one: one.value).architecture


def test_none_comes_twice_without_a_pool() -> None:
    few = TableObjective(table().select(np.arange(0, 729, 9)), "cifar10")
    result = run("random", few, Budget(60))
    assert len({one.architecture for one in result.trials}) == 60


def test_it_ends_where_nothing_is_left() -> None:
    """How many architectures the limits leave is not known beforehand."""

    class Deep(Objective[Any]):
        space, epochs = get_space(f"{ROOT}/examples/plain_space.py:PlainResNet"), (1,)

        def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
            return Outcome(float(architecture.depth), 1.0)

        def allowed(self, architecture: Any) -> bool:
            return bool(architecture.depth > 1)

    whole = {cell for cell in map(Deep.space.decode, itertools.product(range(3), repeat=3)) if cell.depth > 1}
    for seed in range(20):
        trials = run("random", Deep(), Budget(10_000), seed=seed).trials
        assert len(trials) == len(whole) == 18
        assert {one.architecture for one in trials} == whole


def test_each_is_as_likely() -> None:
    small = POOL.select(np.arange(5))
    first = Counter(
        run("random", objective(), Budget(1), seed=seed, scores=small).trials[0].architecture for seed in range(300)
    )
    assert chisquare([first[cell] for cell in small.architectures]).pvalue > 1e-3
