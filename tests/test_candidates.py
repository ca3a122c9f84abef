from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from tests.searchers.small import scores, space, table
from theta0.candidates import Candidates
from theta0.errors import DataError, Theta0Error
from theta0.pool import PoolScores, shipped
from theta0.space import get_space


def made(**columns: list[float]) -> Candidates:
    values = np.array(list(columns.values())).T
    names = [name.replace("_", ":", 1) for name in columns]
    texts = list(table().cells[: len(values)])
    return Candidates.of(PoolScores("nasbench201", texts, names, values, np.zeros(values.shape, np.uint8)), space)


def test_of_a_table_of_scores() -> None:
    pool = Candidates.of(scores(), space)
    assert len(pool) == 729
    assert [space.format(cell) for cell in pool.architectures] == list(table().cells)
    np.testing.assert_array_equal(pool.column("snip:paper"), scores()["snip:paper"])
    assert pool.ok("snip:paper").tolist() == [place % 12 != 5 for place in range(729)]


def test_names() -> None:
    pool = made(snip_zerocost=[1, 2], snip_paper=[3, 4], trace_frozen=[5, 6])
    assert pool.name("trace") == "trace:frozen"
    assert pool.name("snip:paper") == "snip:paper"
    assert pool.name("snip") == "snip:zerocost"
    assert pool.column("trace").tolist() == [5, 6]
    with pytest.raises(Theta0Error, match="no score 'snap'; did you mean snip"):
        pool.column("snap")
    with pytest.raises(Theta0Error, match="no score 'snip:papers'; did you mean snip:paper"):
        pool.ok("snip:papers")


def test_values_that_are_no_numbers_are_not_valid() -> None:
    pool = made(snip_paper=[np.nan, np.inf, -np.inf, 1])
    assert pool.ok("snip").tolist() == [False, False, False, True]
    table_ = PoolScores("nasbench201", list(table().cells[:2]), ["snip:paper"], np.ones((2, 1)), np.array([[0], [3]]))
    assert Candidates.of(table_, space).ok("snip").tolist() == [True, False]


def test_ranks() -> None:
    assert made(snip_paper=[3, 1, 2, 2, 9]).ranks("snip").tolist() == [0.75, 0, 0.375, 0.375, 1]
    assert made(kappa_official=[3, 1, 2]).ranks("kappa").tolist() == [0, 1, 0.5]  # lower is better
    assert made(snip_paper=[7]).ranks("snip").tolist() == [0]
    generator = np.random.default_rng(0)
    values = generator.integers(0, 9, size=100).astype(float)
    expected = (rankdata(values) - 1) / 99
    np.testing.assert_allclose(made(snip_paper=values.tolist()).ranks("snip"), expected)
    np.testing.assert_allclose(made(kappa_official=values.tolist()).ranks("kappa"), 1 - expected)


@pytest.mark.parametrize("name", ["snip_paper", "kappa_official"])
def test_what_is_not_valid_comes_last(name: str) -> None:
    ranks = made(**{name: [5, np.nan, 5, np.inf, -np.inf]}).ranks(name.partition("_")[0])
    assert (ranks[[0, 2]] == 0.875).all()
    assert (ranks[[1, 3, 4]] == 0.25).all()


def test_select() -> None:
    pool = Candidates.of(scores(), space)
    by_place = pool.select(np.array([700, 5]))
    assert by_place.architectures == [pool.architectures[700], pool.architectures[5]]
    assert by_place.column("zen").tolist()[0] == pool.column("zen")[700]
    assert by_place.ok("zen").tolist() == [True, False]
    mask = np.zeros(729, dtype=bool)
    mask[[5, 700]] = True
    by_mask = pool.select(mask)
    assert by_mask.architectures == [pool.architectures[5], pool.architectures[700]]
    assert len(pool.select(np.zeros(729, dtype=bool))) == 0


def test_scores_of_another_space() -> None:
    with pytest.raises(Theta0Error, match="these scores are of nasbench201, and the search is in darts; take others"):
        Candidates.of(scores(), get_space("darts"))


def test_scores_of_what_is_no_architecture() -> None:
    cells = [*table().cells[:2], "|nor_conv_9x9~0|"]
    damaged = PoolScores("nasbench201", cells, ["snip:paper"], np.ones((3, 1)), np.zeros((3, 1), np.uint8))
    with pytest.raises(DataError, match=r"'\|nor_conv_9x9~0\|' in row 2, no architecture of nasbench201") as caught:
        Candidates.of(damaged, space)
    assert "\n" not in str(caught.value)


def test_those_that_come_with_theta0() -> None:
    pool = Candidates.of(shipped("nasbench201", "cifar10"), space)
    assert len(pool) == len(set(pool.architectures)) == 15_625
    ranks = pool.ranks("kappa")
    assert (ranks.min() >= 0, ranks.max()) == (True, 1)
    assert ranks[~pool.ok("kappa")].max() < ranks[pool.ok("kappa")].min()
