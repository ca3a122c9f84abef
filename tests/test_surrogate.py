"""Against a Gaussian process written down naively in float64, and numerical integration."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import lognorm, norm

from theta0.errors import Theta0Error
from theta0.surrogate import Surrogate

Floats = NDArray[np.float64]


def points(count: int, dimensions: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((count, dimensions))


def hill(x: Floats) -> Floats:
    """Largest, 95, at (0.3, 0.7)."""
    return 95 - 40 * ((x[:, 0] - 0.3) ** 2 + 2 * (x[:, 1] - 0.7) ** 2)


class Naive:
    """With the hyper-parameters of a fitted one."""

    def __init__(self, model: Surrogate, x: Floats, y: Floats) -> None:
        fitted = model.model
        self.x, self.y = x, y
        self.lengths = fitted.covar_module.lengthscale.detach().numpy().ravel()
        self.constant = fitted.mean_module.constant.item()
        self.noise = fitted.likelihood.noise.detach().numpy().ravel()[0]

    def kernel(self, a: Floats, b: Floats, lengths: Floats) -> Floats:
        found = np.empty((len(a), len(b)))
        for i, one in enumerate(a):
            for j, other in enumerate(b):
                distance = math.sqrt(5 * sum(((one - other) / lengths) ** 2))
                found[i, j] = (1 + distance + distance**2 / 3) * math.exp(-distance)
        return found

    def posterior(self, at: Floats) -> tuple[Floats, Floats]:
        shift, scale = self.y.mean(), self.y.std(ddof=1)
        inverse = np.linalg.inv(self.kernel(self.x, self.x, self.lengths) + self.noise * np.eye(len(self.x)))
        across = self.kernel(at, self.x, self.lengths)
        mean = self.constant + across @ inverse @ ((self.y - shift) / scale - self.constant)
        variance = 1 - np.einsum("ij,jk,ik->i", across, inverse, across)
        return shift + scale * mean, scale * np.sqrt(variance)

    def log_posterior(self, lengths: Floats, constant: float, noise: float) -> float:
        """Of the hyper-parameters: the marginal likelihood and their priors."""
        residual = (self.y - self.y.mean()) / self.y.std(ddof=1) - constant
        matrix = self.kernel(self.x, self.x, lengths) + noise * np.eye(len(self.x))
        likelihood = -residual @ np.linalg.solve(matrix, residual) / 2 - np.linalg.slogdet(matrix)[1] / 2
        centre = math.sqrt(2) + math.log(len(lengths)) / 2
        prior = lognorm(math.sqrt(3), scale=math.exp(centre)).logpdf(lengths).sum() + lognorm(
            1, scale=math.exp(-4)
        ).logpdf(noise)
        return float(likelihood + prior)


@pytest.mark.parametrize(("count", "dimensions"), [(3, 1), (8, 2), (20, 3), (15, 6)])
def test_posterior(count: int, dimensions: int) -> None:
    x = points(count, dimensions)
    y = 90 + 3 * np.sin(5 * x.sum(axis=1)) + 0.3 * np.random.default_rng(1).standard_normal(count)
    model = Surrogate(x, y)
    at = np.concatenate([points(50, dimensions, seed=2), x])
    for ours, naive in zip(model.posterior(at), Naive(model, x, y).posterior(at), strict=True):
        np.testing.assert_allclose(ours, naive, rtol=1e-6, atol=1e-8)


def test_noise_that_is_known() -> None:
    x = points(8)
    y = hill(x)
    model = Surrogate(x, y, noise=4.0)
    naive = Naive(model, x, y)
    assert naive.noise == pytest.approx(4 / y.var(ddof=1))
    for ours, other in zip(model.posterior(points(30, seed=1)), naive.posterior(points(30, seed=1)), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-6)


def test_no_other_hyper_parameters_are_likelier() -> None:
    x = points(12)
    y = hill(x) + 0.5 * np.random.default_rng(1).standard_normal(12)
    naive = Naive(Surrogate(x, y), x, y)
    best = naive.log_posterior(naive.lengths, naive.constant, naive.noise)
    generator = np.random.default_rng(3)
    for spread in (0.03, 0.3, 1.0):
        for _ in range(40):
            lengths = naive.lengths * np.exp(spread * generator.standard_normal(2))
            noise = max(1e-4, naive.noise * math.exp(spread * generator.standard_normal()))
            constant = naive.constant + spread * generator.standard_normal()
            assert naive.log_posterior(np.maximum(lengths, 2.5e-2), constant, noise) < best + 1e-3


def test_expected_improvement_is_an_integral() -> None:
    x = points(10)
    y = hill(x) + np.random.default_rng(1).standard_normal(10)
    model = Surrogate(x, y)
    at = points(40, seed=2)
    for mean, deviation, value in zip(*model.posterior(at), model.acquisition(at, "ei"), strict=True):
        density = norm(mean, deviation).pdf
        top = max(y.max(), mean) + 12 * deviation
        expected, _ = quad(
            lambda v, density=density: (v - y.max()) * density(v), y.max(), top, epsabs=0, epsrel=1e-10, limit=200
        )
        assert value == pytest.approx(math.log(expected), abs=1e-6)


def test_improvement_far_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logarithm is right where the number itself is zero, and never turns round."""
    x = points(3)
    model = Surrogate(x, hill(x))
    best = hill(x).max()

    def at(scores: Floats, deviation: float = 2.0) -> Floats:
        monkeypatch.setattr(model, "posterior", lambda _: (best + scores * deviation, np.full(len(scores), deviation)))
        return model.acquisition(np.zeros((len(scores), 2)), "ei")

    scores = np.array([5, 1, 0, -0.9, -1.1, -3, -5.9, -6.1, -20, -60, -300])
    for score, value in zip(scores, at(scores), strict=True):
        # u density(u - z) = density(z) u exp(u z - u^2 / 2)
        whole, _ = quad(
            lambda u, z=score: u * math.exp(u * z - u * u / 2), 0, 10 / max(1, -score) * 4, epsrel=1e-12, epsabs=0
        )
        assert value == pytest.approx(math.log(2) + norm.logpdf(score) + math.log(whole), abs=1e-6)
    for low, high in ((-1e3, 10), (-1e6, -1e3), (-7, -5), (-1.001, -0.999), (-10_001, -9_999)):
        assert (np.diff(at(np.linspace(low, high, 20_001))) > 0).all()


def test_upper_confidence_bound_is_a_quantile() -> None:
    x = points(10)
    model = Surrogate(x, hill(x))
    at = points(20, seed=2)
    for mean, deviation, bound in zip(*model.posterior(at), model.acquisition(at, "ucb"), strict=True):
        below, _ = quad(norm(mean, deviation).pdf, mean - 12 * deviation, bound, limit=200)
        assert below == pytest.approx(0.995, abs=1e-5)
    mean, deviation = model.posterior(at)
    np.testing.assert_allclose(model.acquisition(at, "ucb", confidence=0.5), mean + 0.5 * deviation)


@pytest.mark.parametrize("kind", ["ei", "ucb"])
def test_propose_has_the_largest_acquisition(kind: str) -> None:
    x = points(9)
    model = Surrogate(x, hill(x))
    proposed = model.propose(np.random.default_rng(0), kind)  # type: ignore[arg-type]
    assert proposed.shape == (2,)
    side = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = model.acquisition(grid, kind)  # type: ignore[arg-type]
    assert model.acquisition(proposed[None], kind)[0] > values.max() - 0.01 * np.ptp(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["ei", "ucb"])
def test_a_known_maximum_is_found(kind: str) -> None:
    generator = np.random.default_rng(0)
    x = points(4)
    for _ in range(10):
        new = Surrogate(x, hill(x)).propose(generator, kind)  # type: ignore[arg-type]
        assert ((new >= 0) & (new <= 1)).all()
        x = np.concatenate([x, new[None]])
    assert hill(x[:4]).max() < 94
    assert hill(x).max() > 94.9
    np.testing.assert_allclose(x[np.argmax(hill(x))], [0.3, 0.7], atol=0.05)


def test_a_maximum_in_a_corner_is_found() -> None:
    x = points(8)
    y = 80 + 5 * x.sum(axis=1)
    np.testing.assert_allclose(Surrogate(x, y).propose(np.random.default_rng(0)), [1, 1], atol=0.02)


def test_the_same_seed_gives_the_same() -> None:
    x = points(6)
    found = [Surrogate(x, hill(x)).propose(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert found[0].tolist() == found[1].tolist() != found[2].tolist()
    np.testing.assert_allclose(found[0], found[2], atol=0.05)


def test_units_make_no_difference() -> None:
    x = points(8)
    found = [
        Surrogate(x, scale * hill(x) + shift).propose(np.random.default_rng(0))
        for scale, shift in ((1, 0), (0.01, 5), (1e4, -1e6))
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)
    np.testing.assert_allclose(found[2], found[0], atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_equal_values_are_the_mean_everywhere(count: int) -> None:
    """Nothing is known but that value, so what is farthest away is most worth trying."""
    x = points(count)
    model = Surrogate(x, np.full(count, 91.0))
    at = points(200, seed=1)
    mean, deviation = model.posterior(at)
    np.testing.assert_allclose(mean, 91, atol=1e-6)
    assert (deviation > 0).all()
    distance = np.linalg.norm(at[:, None] - x, axis=-1).min(axis=1)
    for kind in ("ei", "ucb"):
        proposed = model.propose(np.random.default_rng(0), kind)  # type: ignore[arg-type]
        assert np.linalg.norm(proposed - x, axis=-1).min() > np.quantile(distance, 0.9)


def test_duplicated_points() -> None:
    x = np.repeat(points(4), 3, axis=0)
    y = hill(x) + np.tile([-1.0, 0.0, 1.0], 4)
    model = Surrogate(x, y)
    mean, deviation = model.posterior(x)
    np.testing.assert_allclose(mean, hill(x), atol=1)
    assert np.isfinite(deviation).all()
    assert np.isfinite(model.propose(np.random.default_rng(0))).all()
    same = Surrogate(np.repeat(points(1), 5, axis=0), np.arange(5.0))
    assert np.isfinite(same.propose(np.random.default_rng(0))).all()


def test_global_state_is_left_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import botorch.fit

    fit = botorch.fit.fit_gpytorch_mll

    def drawing(*arguments: object) -> object:  # as a fit does that fails and starts again
        torch.rand(3)
        return fit(*arguments)

    monkeypatch.setattr(botorch.fit, "fit_gpytorch_mll", drawing)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate(), warnings.filters[:]
        x = points(6)
        Surrogate(x, hill(x)).propose(np.random.default_rng(0))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1].tolist(), random.getstate(), warnings.filters) == before[1:]
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() == torch.float32
        monkeypatch.setattr(botorch.fit, "fit_gpytorch_mll", lambda *_: (_ for _ in ()).throw(ValueError("bad")))
        with pytest.raises(ValueError, match="bad"):
            Surrogate(x, hill(x))
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), before[0])
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((0, 2)), np.zeros(0)),
        (np.zeros((2, 2)), np.zeros(3)),
        (np.zeros((2, 2)), np.array([1, np.nan])),
        (np.array([[0, np.inf]]), np.zeros(1)),
    ],
)
def test_what_no_process_can_be_made_of(x: Floats, y: Floats) -> None:
    with pytest.raises(Theta0Error, match=f"finite points and values, as many of both; {len(x)} and {len(y)} came"):
        Surrogate(x, y)


def test_unknown_acquisition() -> None:
    with pytest.raises(Theta0Error, match="'ei' or 'ucb', not 'pi'"):
        Surrogate(points(2), np.array([1.0, 2.0])).acquisition(points(2), "pi")  # type: ignore[arg-type]
