"""A Gaussian process and its acquisition functions, by BoTorch (Balandat et al., NeurIPS 2020).

model = Surrogate(x, y)                 # x (n, d) in the unit cube, y (n,), higher is better
model.posterior(candidates)             # means and deviations
model.propose(box, generator)           # the point of largest acquisition in the unit cube
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from theta0.errors import Theta0Error

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


class Surrogate:
    """A Matern-5/2 Gaussian process with a length scale for each dimension, fitted by marginal likelihood."""

    def __init__(self, x: Floats, y: Floats, *, noise: float | None = None) -> None:
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
        outcome = botorch.models.transforms.Standardize(m=1) if len(y) > 1 and float(np.ptp(y)) > 0 else None
        fixed = None if noise is None else torch.full_like(values, noise)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few points and of values that are all equal
            self.model = botorch.models.SingleTaskGP(
                inputs, values, train_Yvar=fixed, covar_module=kernel, outcome_transform=outcome
            )
            likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(self.model.likelihood, self.model)
            if outcome is not None:
                botorch.fit.fit_gpytorch_mll(likelihood)

    def posterior(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and deviations (n,) at points (n, d)."""
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.model.posterior(torch.from_numpy(np.ascontiguousarray(x))[:, None])
            mean, variance = found.mean.reshape(-1), found.variance.reshape(-1)
        return mean.numpy(), variance.clamp(min=1e-18).sqrt().numpy()

    def acquisition(self, x: Floats, kind: Acquisition = "ei", *, confidence: float = 2.576) -> Floats:
        """Log expected improvement over the best value seen, or the upper confidence bound."""
        mean, deviation = self.posterior(x)
        if kind == "ucb":
            return mean + confidence * deviation
        if kind == "ei":
            # Where the improvement is far out of reach, the logarithm still tells better from worse.
            score = (mean - self._best) / deviation
            improvement = torch.from_numpy(score)
            density = torch.exp(-improvement.square() / 2) / np.sqrt(2 * np.pi)
            value = density + improvement * torch.special.ndtr(improvement)
            tail = -improvement.square() / 2 - 2 * torch.log(improvement.abs().clamp(min=1)) - np.log(2 * np.pi) / 2
            safe = torch.where(improvement > -6, value.clamp(min=1e-300).log(), tail)
            return safe.numpy() + np.log(deviation)
        raise Theta0Error(f"an acquisition is 'ei' or 'ucb', not {kind!r}")

    def propose(self, generator: np.random.Generator, kind: Acquisition = "ei") -> Floats:
        """The point (d,) of the unit cube of largest acquisition: of random ones, then of points around the best."""
        points = generator.random((_GRID, self._dimensions))
        for width in (0.1, 0.02):
            best = points[np.argmax(self.acquisition(points, kind))]
            near = np.clip(best + width * generator.standard_normal((_GRID // 8, self._dimensions)), 0, 1)
            points = np.concatenate([best[None], near])
        return np.asarray(points[np.argmax(self.acquisition(points, kind))])
