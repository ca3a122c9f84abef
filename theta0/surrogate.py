"""A Gaussian process and its acquisition functions, by BoTorch (Balandat et al., NeurIPS 2020).

model = Surrogate(x, y)                 # x (n, d) in the unit cube, y (n,), higher is better
model.posterior(candidates)             # means and deviations
model.propose(generator)                # the point of largest acquisition in the unit cube
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from theta0.errors import Theta0Error
from theta0.initialize import seeded
from theta0.threads import threads

Floats = NDArray[np.float64]
Acquisition = Literal["ei", "ucb"]
_GRID = 2048


def _botorch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # gpytorch still scripts two functions
        import botorch
        import botorch.fit
        import botorch.models
        import botorch.models.transforms
        import gpytorch
    return botorch, gpytorch


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """One thread: these matrices are small, and searches run side by side. No warnings of few or equal values."""
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Surrogate:
    """A Matern-5/2 Gaussian process with a length scale for each dimension, fitted by marginal likelihood."""

    def __init__(
        self,
        x: Floats,
        y: Floats,
        *,
        noise: float | None = None,
        start: Surrogate | None = None,
        fit: bool = True,
    ) -> None:
        """``noise`` is the variance of the values, fitted if it is not given; the fit begins at that of ``start``.

        Without ``fit`` the hyper-parameters of ``start`` are kept: new points cost a factorization and nothing else.
        """
        botorch, gpytorch = _botorch()
        if len(x) != len(y) or not len(x) or not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise Theta0Error(
                f"a surrogate needs finite points and values, as many of both; {len(x)} and {len(y)} came"
            )
        self._dimensions = x.shape[1]
        self._best = float(y.max())
        inputs, values = torch.from_numpy(x), torch.from_numpy(y)[:, None]
        prior = gpytorch.priors.LogNormalPrior(np.sqrt(2) + np.log(x.shape[1]) * 0.5, np.sqrt(3))
        kernel = gpytorch.kernels.MaternKernel(
            nu=2.5,
            ard_num_dims=x.shape[1],
            lengthscale_prior=prior,
            lengthscale_constraint=gpytorch.constraints.GreaterThan(2.5e-2, transform=None, initial_value=prior.mode),
        )
        outcome = botorch.models.transforms.Standardize(m=1)  # one value, or equal ones, are moved to 0 alone
        fixed = None if noise is None else torch.full_like(values, noise)
        with _quiet(), seeded(0):  # a fit that fails starts again at random
            self.model = botorch.models.SingleTaskGP(
                inputs, values, train_Yvar=fixed, covar_module=kernel, outcome_transform=outcome
            )
            if start is not None:
                self.model.load_state_dict(dict(start.model.named_parameters()), strict=False)
            likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(self.model.likelihood, self.model)
            if fit and float(np.ptp(y)) > 0:
                botorch.fit.fit_gpytorch_mll(likelihood)

    def posterior(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and deviations (n,) at points (n, d)."""
        with torch.no_grad(), _quiet():
            found = self.model.posterior(torch.from_numpy(np.ascontiguousarray(x))[:, None])
            mean, variance = found.mean.reshape(-1), found.variance.reshape(-1)
        return mean.numpy(), variance.clamp(min=1e-18).sqrt().numpy()

    def acquisition(self, x: Floats, kind: Acquisition = "ei", *, confidence: float = 2.576) -> Floats:
        """Log expected improvement over the best value seen, or the upper confidence bound."""
        mean, deviation = self.posterior(x)
        if kind == "ucb":
            return mean + confidence * deviation
        if kind == "ei":
            score = torch.from_numpy((mean - self._best) / deviation)
            return _log_improvement(score).numpy() + np.log(deviation)
        raise Theta0Error(f"an acquisition is 'ei' or 'ucb', not {kind!r}")

    def propose(self, generator: np.random.Generator, kind: Acquisition = "ei") -> Floats:
        """The point (d,) of the unit cube of largest acquisition: of random ones, then of points around the best."""
        points = generator.random((_GRID, self._dimensions))
        for width in (0.1, 0.02):
            best = points[np.argmax(self.acquisition(points, kind))]
            near = np.clip(best + width * generator.standard_normal((_GRID // 8, self._dimensions)), 0, 1)
            points = np.concatenate([best[None], near])
        return np.asarray(points[np.argmax(self.acquisition(points, kind))])


def _log_improvement(score: torch.Tensor) -> torch.Tensor:
    """log(density(z) + z distribution(z)) of the normal distribution, also where it is far below the least number."""
    near = score.clamp(min=-1)
    value = torch.exp(-near.square() / 2) / math.sqrt(2 * math.pi) + near * torch.special.ndtr(near)
    # Below: the logarithm of the density, and of 1 - x Q(x) / density(x) at x = -z, which rounding eats in the end;
    # there it is 1 / x^2.
    far = -score.clamp(max=-1)
    ratio = torch.log1p(-far * math.sqrt(math.pi / 2) * torch.special.erfcx(far / math.sqrt(2)))
    ratio = torch.where(far < 1e4, ratio, -2 * far.log())
    return torch.where(score > -1, value.log(), ratio - far.square() / 2 - math.log(2 * math.pi) / 2)
