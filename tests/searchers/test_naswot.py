from __future__ import annotations

import numpy as np
import pytest

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.searchers import Budget
from theta0.searching import run

POOL = Candidates.of(scores(), space)


@pytest.mark.parametrize("sample", [10, 100])
def test_the_best_of_a_sample_by_its_score(sample: int) -> None:
    ranks = POOL.ranks("naswot")
    found = [run("naswot", objective(), Budget(1), seed=seed, scores=POOL, sample=sample) for seed in range(80)]
    quantiles = [ranks[table().row(one.chosen)] for one in found]
    assert np.mean(quantiles) == pytest.approx(sample / (sample + 1), abs=0.03)
    assert not any(one.trials for one in found)


def test_by_default_a_thousand() -> None:
    best = int(np.nanargmax(POOL.column("naswot")))
    assert table().row(run("naswot", objective(), Budget(1), scores=POOL).chosen) == best


def test_a_sample_of_none() -> None:
    with pytest.raises(Theta0Error, match="sample is a number of architectures, 1 or more, not 0"):
        run("naswot", objective(), Budget(1), scores=POOL, sample=0)
