from __future__ import annotations

import numpy as np
import pytest

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.searchers import Budget
from theta0.searching import Result, run

POOL = Candidates.of(scores(), space)


def searched(seed: int = 0, **options: object) -> Result:
    return run("knas", objective(), Budget(50), seed=seed, scores=POOL, **options)


def test_the_best_of_a_sample_are_trained() -> None:
    result = searched()
    assert len(result.trials) == 20
    assert result.chosen == max(result.trials, key=lambda one: one.value).architecture
    ranks = POOL.ranks("knas")[[table().row(one.architecture) for one in result.trials]]
    assert (np.diff(ranks) <= 0).all()
    # The last of the best 20 of 300 lies at 281 / 301 of the ranks, on average.
    last = [POOL.ranks("knas")[table().row(searched(seed).trials[-1].architecture)] for seed in range(40)]
    assert np.mean(last) == pytest.approx(281 / 301, abs=0.015)


def test_another_score() -> None:
    result = searched(sample=729, train=5, score="eigen_bound")
    order = np.argsort(-POOL.ranks("eigen_bound"), kind="stable")[:5]
    assert [POOL.ranks("eigen_bound")[table().row(one.architecture)] for one in result.trials] == [
        POOL.ranks("eigen_bound")[row] for row in order
    ]


@pytest.mark.parametrize(("sample", "train"), [(300, 0), (10, 11), (0, 0)])
def test_numbers_that_do_not_fit(sample: int, train: int) -> None:
    with pytest.raises(Theta0Error, match=f"train is 1 to {sample}, the number of architectures sampled, not {train}"):
        searched(sample=sample, train=train)
