from __future__ import annotations

import itertools

import numpy as np
import pytest

from theta0.candidates import Candidates
from theta0.papers.bounds import Metric, Weights, kendall, spearman
from theta0.spaces.nasbench201 import NASBench201

space = NASBench201()
SIZE = 40


def pool(seed: int = 0) -> Candidates:
    """M and kappa at random, every eighth cell dead."""
    drawn = np.random.default_rng(seed)
    cells = list(itertools.islice(space, SIZE))
    alive = np.arange(SIZE) % 8 != 3
    scores = {"trace:official": drawn.lognormal(3, 1, SIZE), "kappa:official": drawn.lognormal(5, 1, SIZE)}
    return Candidates(
        cells,
        {name: np.where(alive, values, np.nan) for name, values in scores.items()},
        dict.fromkeys(scores, alive),
    )


def test_bounds_are_as_written() -> None:
    given = pool()
    metric = Metric(given, "trace")
    alive = given.ok("trace")
    m, kappa = given.column("trace"), given.column("kappa")
    nu = np.quantile(m[alive] ** 2, 0.7)
    np.testing.assert_allclose(metric.realizable()[alive], 1 / m[alive])
    np.testing.assert_allclose(metric.with_kappa()[alive], (kappa / m)[alive])
    found = metric.non_realizable(Weights(0.1, 0.7))[alive] - (kappa / m)[alive]
    away = (m[alive] ** 2 - nu) ** 2
    np.testing.assert_allclose(found / away, (found / away)[0], rtol=1e-6)
    assert float(np.median(found)) == pytest.approx(0.1 * np.median((kappa / m)[alive]))


def test_dead_cells_come_last() -> None:
    given = pool()
    metric = Metric(given, "trace")
    dead = ~given.ok("trace")
    for bound in (metric.realizable(), metric.with_kappa(), metric.non_realizable(Weights(1.0, 0.5))):
        assert np.isfinite(bound).all()
        assert bound[dead].min() > bound[~dead].max()


def test_the_best_weights_are_the_best_of_the_grid() -> None:
    given = pool()
    metric = Metric(given, "trace")
    drawn = np.random.default_rng(1)
    errors = np.where(given.ok("trace"), metric.non_realizable(Weights(1.0, 0.5)), 1e6) + drawn.random(SIZE)
    best = metric.best(errors)
    reached = spearman(metric.non_realizable(best), errors)
    assert reached >= spearman(metric.non_realizable(Weights(1.0, 0.5)), errors)
    assert reached > 0.95


def test_kappa_may_come_from_another_pool() -> None:
    given, other = pool(0), pool(1)
    metric = Metric(given, "trace", other)
    alive = given.ok("trace")
    np.testing.assert_allclose(metric.with_kappa()[alive], (other.column("kappa") / given.column("trace"))[alive])


def test_correlations() -> None:
    """Against counting pairs."""
    drawn = np.random.default_rng(0)
    x, y = drawn.permutation(12), drawn.permutation(12)
    pairs = list(itertools.combinations(range(12), 2))
    assert kendall(x, y) == pytest.approx(np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]))
    assert spearman(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
