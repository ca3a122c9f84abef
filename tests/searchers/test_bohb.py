from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.searchers.small import EPOCHS, objective, space
from tests.searchers.test_evolution import Convolutions
from theta0.errors import Theta0Error
from theta0.objective import Outcome
from theta0.searchers import Budget
from theta0.searchers.bohb import Density, brackets, fitted
from theta0.searching import Trial, run
from theta0.space import get_space

SIZES = np.array([3, 2, 1, 4])
GRID = np.array(list(itertools.product(*(range(size) for size in SIZES))))


def codes(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(SIZES, size=(count, len(SIZES)))


def naive(data: Any, point: Any, least: float) -> float:
    """The product kernel, number by number."""
    n, d = data.shape
    total = 0.0
    for row in data:
        product = 1.0
        for j in range(d):
            mean = sum(data[:, j]) / n
            deviation = math.sqrt(sum((value - mean) ** 2 for value in data[:, j]) / n)
            h = min(max(1.06 * deviation * n ** (-1 / (4 + d)), least), (SIZES[j] - 1) / SIZES[j])
            if row[j] == point[j]:
                product *= 1 - h
            else:
                product *= h / (SIZES[j] - 1)
        total += product
    return total / n


@pytest.mark.parametrize("count", [1, 5, 40])
def test_densities(count: int) -> None:
    data = codes(count)
    density = Density(data, SIZES, 0.05)
    found = np.exp(density.log(GRID))
    np.testing.assert_allclose(found, [naive(data, point, 0.05) for point in GRID], rtol=1e-12)
    assert found.sum() == pytest.approx(1)


def test_bandwidths() -> None:
    data = np.array([[0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 1], [2, 0, 0, 0]] * 5)
    found = Density(data, SIZES, 1e-3).bandwidth
    # Widely spread codes meet the bound, equal ones the smallest bandwidth, and a choice of one has none.
    np.testing.assert_allclose(found, [2 / 3, 1e-3, 0, 1.06 * math.sqrt(3) / 4 * 20 ** (-1 / 8)])


def test_draws_follow_the_density() -> None:
    density = Density(codes(6), SIZES, 0.05)
    draws = density.draw(20_000, 1.0, np.random.default_rng(0))
    counts = Counter(map(tuple, draws.tolist()))
    assert (
        chisquare([counts[tuple(point)] for point in GRID.tolist()], 20_000 * np.exp(density.log(GRID))).pvalue > 1e-3
    )


def test_wider_draws() -> None:
    data = np.zeros((10, 4), dtype=np.int64)
    changed = [
        (Density(data, SIZES, 0.1).draw(4000, factor, np.random.default_rng(0)) != 0).mean(axis=0)
        for factor in (1.0, 3.0, 100.0)
    ]
    np.testing.assert_allclose(changed, [[0.1, 0.1, 0, 0.1], [0.3, 0.3, 0, 0.3], [2 / 3, 1 / 2, 0, 3 / 4]], atol=0.03)


def test_hyperband_s_brackets() -> None:
    """Li et al. (2018), equations of algorithm 1 for R = 27 and eta = 3."""
    assert brackets([4, 12, 36, 108], 3) == [
        [(4, 27), (12, 9), (36, 3), (108, 1)],
        [(12, 12), (36, 4), (108, 1)],
        [(36, 6), (108, 2)],
        [(108, 4)],
    ]


def test_brackets_of_other_budgets() -> None:
    assert brackets([12], 3) == [[(12, 1)]]
    assert brackets([12, 200], 3) == [[(12, 17), (200, 1)], [(200, 2)]]
    assert [epochs for epochs, _ in brackets(range(1, 201), 3)[0]] == [2, 7, 22, 66, 200]
    assert [epochs for epochs, _ in brackets([10, 20, 40], 3)[0]] == [10, 40]
    assert [epochs for epochs, _ in brackets([10, 20, 40], 2)[0]] == [10, 20, 40]


def test_the_model_is_of_the_largest_budget_with_enough_evaluations() -> None:
    worth = [(tuple(row), float(i)) for i, row in enumerate(codes(30).tolist())]
    assert fitted({12: worth[:6], 36: []}, SIZES, 0.15, 0.05) is None

    def same(found: tuple[Density, Density] | None, good: Any, bad: Any) -> None:
        assert found is not None
        for density, rows in zip(found, (good, bad), strict=True):
            expected = Density(np.array([row for row, _ in rows]), SIZES, 0.05)
            np.testing.assert_allclose(density.log(GRID), expected.log(GRID))

    # Five are good, at least; five are bad; with seven the two overlap.
    same(fitted({12: worth[:7], 36: worth[:6]}, SIZES, 0.15, 0.05), worth[2:7], worth[:5])
    same(fitted({12: worth, 36: worth[:7]}, SIZES, 0.15, 0.05), worth[2:7], worth[:5])
    same(fitted({12: worth, 36: worth[:6]}, SIZES, 0.15, 0.05), worth[25:], worth[:25])
    same(fitted({12: worth}, SIZES, 0.4, 0.05), worth[18:], worth[:18])


def test_failures_are_bad() -> None:
    good = [(tuple(row), 1.0) for row in codes(7).tolist()]
    failed = [(tuple(row), -math.inf) for row in codes(20, seed=1).tolist()]
    assert fitted({12: good[:6] + failed}, SIZES, 0.15, 0.05) is None
    found = fitted({12: failed + good}, SIZES, 0.9, 0.05)
    assert found is not None
    best = Density(np.array([row for row, _ in good[:6]]), SIZES, 0.05)
    np.testing.assert_allclose(found[0].log(GRID), best.log(GRID))


def searched(evaluations: int, seed: int = 0, fails: range = range(0), **options: Any) -> list[Trial]:
    return run("bohb", Convolutions(fails), Budget(evaluations), seed=seed, **options).trials


def test_the_best_of_a_rung_go_on() -> None:
    trials = run("bohb", objective(), Budget(400)).trials
    expected = brackets(EPOCHS, 3)
    assert [[epochs for epochs, _ in bracket] for bracket in expected] == [[3, 12, 200], [12, 200], [200]]
    place = 0
    for bracket in itertools.islice(itertools.cycle(expected), 4):
        before: list[Trial] = []
        for rung, (epochs, count) in enumerate(bracket):
            trained = trials[place : place + count]
            place += count
            assert {(one.epochs, one.why["rung"]) for one in trained} == {(epochs, rung)}
            if rung:
                best = sorted(before, key=lambda one: -one.value)[:count]
                assert [one.architecture for one in trained] == [one.architecture for one in best]
            before = trained


def test_what_failed_does_not_go_on() -> None:
    """Three of 27 succeed, and nine would go on."""
    fails = range(27)

    class Failing(Convolutions):
        def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
            found = super().evaluate(architecture, epochs, seconds)
            return Outcome(math.nan, 1.0) if self.count - 1 in fails and self.count % 9 != 5 else found

    search = Failing()
    search.epochs = (4, 12, 36, 108)
    trials = run("bohb", search, Budget(35)).trials
    assert [one.epochs for one in trials] == [4] * 27 + [12] * 3 + [36] * 3 + [108] + [12]
    succeeded = sorted((one for one in trials[:27] if not math.isnan(one.value)), key=lambda one: -one.value)
    assert [one.architecture for one in trials[27:30]] == [one.architecture for one in succeeded]


def test_it_finds_more_than_chance() -> None:
    best, drawn = (
        np.mean([max(one.value for one in run(name, single(), Budget(120), seed=seed).trials) for seed in range(8)])
        for name in ("bohb", "random")
    )
    assert best > drawn + 0.5


def single() -> Convolutions:
    found = Convolutions()
    found.epochs = (1,)
    return found


def test_random_fractions() -> None:
    for fraction, expected in ((0.0, 1.0), (1.0, 0.0), (1 / 3, 2 / 3)):
        trials = run("bohb", single(), Budget(300), random_fraction=fraction).trials
        assert not any(one.why["model"] for one in trials[:9])  # d + 1 and two more
        assert np.mean([one.why["model"] for one in trials[9:]]) == pytest.approx(expected, abs=0.09)


def test_limits() -> None:
    limited = objective(limits={"parameters": 200_000.0}, epochs=[12])
    trials = run("bohb", limited, Budget(80)).trials
    assert all(limited.allowed(one.architecture) for one in trials)
    assert any(one.why["model"] for one in trials)


def test_spaces_with_codes_that_are_no_architecture() -> None:
    class Edges(Convolutions):
        def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
            return Outcome(float(len(architecture.edges)), 1.0)

    search = Edges()
    search.space, search.epochs = get_space("nasbench101"), (1,)
    trials = run("bohb", search, Budget(60)).trials
    assert all(search.space.pruned(one.architecture) == one.architecture for one in trials)
    assert any(one.why["model"] for one in trials)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top": 0.0}, "top lies between 0 and 1, not at 0.0"),
        ({"top": 1.0}, "top lies between 0 and 1, not at 1.0"),
        ({"min_bandwidth": 0.0}, "min_bandwidth lies between 0 and 1, not at 0.0"),
        ({"eta": 1.0}, "eta is more than 1"),
        ({"num_samples": 0}, "num_samples at least 1"),
        ({"random_fraction": 1.5}, "random_fraction 0 to 1"),
        ({"bandwidth_factor": 0.0}, "bandwidth_factor more than 0"),
        ({"eta": math.nan}, "eta is more than 1"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        searched(5, **options)


def test_one_budget_needs_no_halving() -> None:
    trials = run("bohb", objective(epochs=[12]), Budget(30)).trials
    assert {(one.epochs, one.why["rung"]) for one in trials} == {(12, 0)}
    assert len({space.encode(one.architecture) for one in trials}) > 20
