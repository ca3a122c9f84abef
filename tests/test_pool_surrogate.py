"""Against a Gaussian process written down naively in float64, and numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from theta0.errors import Theta0Error
from theta0.pool_surrogate import PoolSurrogate

Floats = NDArray[np.float64]
LENGTH, SLOPE, LINEAR, AMPLITUDE, NOISE = 2.0, 0.4, 0.3, 0.8, 0.2
SIZE = 30


def made(seed: int = 0) -> tuple[PoolSurrogate, Floats, Floats]:
    drawn = np.random.default_rng(seed)
    features, ranking = drawn.standard_normal((SIZE, 3)), drawn.standard_normal(SIZE)
    ranking = (ranking - ranking.mean()) / ranking.std()
    model = PoolSurrogate(
        features, ranking, length=LENGTH, slope=SLOPE, linear=LINEAR, amplitude=AMPLITUDE, noise=NOISE
    )
    return model, features, ranking


def kernel(features: Floats, ranking: Floats, i: int, j: int) -> float:
    distance = math.sqrt(5) * float(np.linalg.norm(features[i] - features[j])) / LENGTH
    matern = (1 + distance + distance**2 / 3) * math.exp(-distance)
    return float(AMPLITUDE**2 * matern + LINEAR**2 * ranking[i] * ranking[j])


def naive(features: Floats, ranking: Floats, places: list[int], values: Floats, spread: float) -> tuple[Floats, Floats]:
    """values / spread = m + slope ranking + g + noise, m by generalized least squares."""
    covariance = np.array([[kernel(features, ranking, i, j) for j in places] for i in places])
    inverse = np.linalg.inv(covariance + NOISE**2 * np.eye(len(places)))
    rest = values / spread - SLOPE * ranking[places]
    ones = np.ones(len(places))
    level = (ones @ inverse @ rest) / (ones @ inverse @ ones)
    means, deviations = [], []
    for i in range(SIZE):
        across = np.array([kernel(features, ranking, i, j) for j in places])
        means.append(spread * (level + SLOPE * ranking[i] + across @ inverse @ (rest - level)))
        variance = kernel(features, ranking, i, i) - across @ inverse @ across
        deviations.append(spread * math.sqrt(variance))
    return np.array(means), np.array(deviations)


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_posterior(count: int) -> None:
    model, features, ranking = made()
    drawn = np.random.default_rng(count)
    places = drawn.permutation(SIZE)[:count].tolist()
    values = 80 + 4 * drawn.standard_normal(count)
    mean, deviation = model.posterior(places, values)
    expected = naive(features, ranking, places, values, model.spread(places, values))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
    np.testing.assert_allclose(deviation, expected[1], rtol=1e-9)


def test_the_spread_follows_the_values() -> None:
    """What is drawn from the model with a spread is read as about that, and the unit of the values is no matter."""
    model, features, ranking = made()
    covariance = np.array([[kernel(features, ranking, i, j) for j in range(SIZE)] for i in range(SIZE)])
    places = list(range(SIZE))
    for spread in (1.0, 5.0, 20.0):
        found = []
        for seed in range(20):
            drawn = np.random.default_rng(seed)
            g = drawn.multivariate_normal(np.zeros(SIZE), covariance + NOISE**2 * np.eye(SIZE))
            found.append(model.spread(places, 70 + spread * (SLOPE * ranking + g)))
        assert float(np.median(found)) == pytest.approx(spread, rel=0.25)


def test_moved_values_move_the_mean_alone() -> None:
    model, *_ = made()
    values = np.array([70.0, 74.0, 69.0])
    mean, deviation = model.posterior([1, 5, 9], values)
    moved, same = model.posterior([1, 5, 9], values + 10)
    np.testing.assert_allclose(moved, mean + 10, rtol=1e-9)
    np.testing.assert_allclose(same, deviation, rtol=1e-9)


def test_improvement() -> None:
    model, *_ = made()
    places, values = [0, 3, 8, 12], np.array([85.0, 90.0, 88.0, 70.0])
    mean, deviation = model.posterior(places, values)
    found = np.exp(model.improvement(places, values))
    for i in range(SIZE):
        top = max(mean[i] + 12 * deviation[i], values.max())
        expected, _ = quad(lambda v, i=i: (v - 90) * norm.pdf(v, mean[i], deviation[i]), 90, top, epsabs=1e-14)
        # Far below, phi(z) / z^2 stands for it: the order is kept.
        assert found[i] == pytest.approx(expected, rel=1e-3 if mean[i] - 90 > -5 * deviation[i] else 0.2, abs=1e-300)


def test_improvement_is_finite_and_ordered_far_below_the_best() -> None:
    model, *_ = made()
    found = model.improvement([0, 1], np.array([10.0, 90.0]))
    assert np.isfinite(found).all()
    far = [model.improvement([0], np.array([value]))[0] for value in (50.0,)]
    assert np.isfinite(far).all()


def test_one_evaluation_leaves_the_ranking_in_charge() -> None:
    drawn = np.random.default_rng(3)
    ranking = np.linspace(-1.7, 1.7, SIZE)
    model = PoolSurrogate(10 * drawn.standard_normal((SIZE, 8)), ranking / ranking.std(), amplitude=0.1)
    mean, _ = model.posterior([15], np.array([80.0]))
    assert np.corrcoef(mean, ranking)[0, 1] > 0.99


def test_what_it_cannot_take() -> None:
    model, features, ranking = made()
    with pytest.raises(Theta0Error, match=r"needs features \(n, d\) and a ranking \(n,\); \(30, 3\) and \(29,\) came"):
        PoolSurrogate(features, ranking[1:])
    for places, values in (([], []), ([1], [float("nan")]), ([1, 2], [1.0])):
        with pytest.raises(Theta0Error, match="at least one evaluation and finite values"):
            model.posterior(places, np.array(values))
