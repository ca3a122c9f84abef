from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from theta0.report import numbers

FEW = st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=30)


@given(st.integers(1, 20_000), st.floats(0, 1))
def test_wilson_is_scipy_s(images: int, share: float) -> None:
    right = round(share * images)
    low, high = numbers.wilson(100 * right / images, images)
    expected = stats.binomtest(right, images).proportion_ci(0.95, "wilson")
    assert (low, high) == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-5)
    assert 0 <= low <= 100 * right / images + 1e-9
    assert 100 * right / images - 1e-9 <= high <= 100


def test_wilson_of_a_perfect_network_has_a_width() -> None:
    assert numbers.wilson(100, 360) == pytest.approx((98.944, 100), abs=1e-3)
    assert numbers.wilson(0, 360) == pytest.approx((0, 1.056), abs=1e-3)


@given(FEW)
def test_ranks_are_scipy_s(values: list[float]) -> None:
    assert numbers.ranks(values).tolist() == stats.rankdata(values).tolist()


@given(FEW, st.integers(0, 2**31))
def test_spearman_is_scipy_s(first: list[float], seed: int) -> None:
    second = np.random.default_rng(seed).integers(-4, 4, size=len(first)).astype(float)
    if len(set(first)) == 1 or len(set(second.tolist())) == 1:
        assert math.isnan(numbers.spearman(first, second))
    else:
        assert numbers.spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


def test_two_pairs_have_no_rank_correlation() -> None:
    assert math.isnan(numbers.spearman([1, 2], [1, 2]))
    assert math.isnan(numbers.spearman([], []))


@given(st.lists(st.floats(0, 100), min_size=2, max_size=20))
def test_mean_and_deviation(values: list[float]) -> None:
    expected = (statistics.mean(values), statistics.stdev(values))
    assert numbers.mean_deviation(values) == pytest.approx(expected, abs=1e-9)


def test_one_value_has_no_deviation() -> None:
    mean, deviation = numbers.mean_deviation([3.0])
    assert mean == 3
    assert math.isnan(deviation)


@pytest.mark.parametrize("value", ["3", None, True, [1], {}])
def test_what_is_no_number(value: object) -> None:
    assert math.isnan(numbers.number(value))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (numbers.percent(97.456), "97.46\u00a0%"),
        (numbers.percent(5, 0), "5\u00a0%"),
        (numbers.signed(4.53), "+4.53"),
        (numbers.signed(-0.25, 1), "−0.2"),
        (numbers.plural(1, "mistake"), "1 mistake"),
        (numbers.plural(1200, "trial"), "1,200 trials"),
        (numbers.plural(2, "loss", "losses"), "2 losses"),
        (numbers.short(0), "0"),
        (numbers.short(-12), "−12"),
        (numbers.short(3.14159), "3.142"),
        (numbers.short(99999.7), "100,000"),
        (numbers.short(0.00123), "0.001230"),
        (numbers.short(-0.00012), "−1.20×10⁻⁴"),
        (numbers.short(6.02e23), "6.02×10²³"),
        (numbers.short(math.inf), "∞"),
        (numbers.short(-math.inf), "−∞"),
        (numbers.short(math.nan), "not a number"),
        (numbers.power(0), "1"),
        (numbers.power(3), "1,000"),
        (numbers.power(-2), "10⁻²"),
        (numbers.power(12), "10¹²"),
        (numbers.amount(950), "950"),
        (numbers.amount(73_466), "73.5\u00a0k"),
        (numbers.amount(4.19e6), "4.19\u00a0M"),
        (numbers.amount(999_999), "1\u00a0M"),
        (numbers.amount(2e9), "2\u00a0G"),
        (numbers.duration(0.25), "0.25\u00a0s"),
        (numbers.duration(99.99), "100\u00a0s"),
        (numbers.duration(171.3), "2\u00a0min 51\u00a0s"),
        (numbers.duration(180), "3\u00a0min"),
        (numbers.duration(7200), "2\u00a0h"),
        (numbers.duration(7260), "2\u00a0h 1\u00a0min"),
        (numbers.duration(math.nan), "unknown"),
    ],
)
def test_numbers_for_people(said: str, expected: str) -> None:
    assert said == expected


def test_a_moment_has_a_zone() -> None:
    assert numbers.moment(0.0)[:5] in ("1970-", "1969-")
    assert len(numbers.moment(0.0).split()) == 3
