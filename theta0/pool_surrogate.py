"""A Gaussian process over a pool whose prior mean is a ranking of it.

model = PoolSurrogate(features, ranking)      # (n, d), (n,)
mean, deviation = model.posterior(places, values)
model.improvement(places, values)             # log expected improvement of each architecture

values = m + s (slope ranking + g), with m flat, s by marginal likelihood, and g a Gaussian process with a linear kernel
in the ranking and a Matern-5/2 kernel in the features. With a handful of evaluations the ranking decides; with more
of them g does. All of it is a few small matrices: a step over 15,625 architectures takes milliseconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import log_ndtr
from scipy.stats import norm

from theta0.errors import Theta0Error

Floats = NDArray[np.float64]

_SPREADS = np.geomspace(0.5, 30, 25)
_TYPICAL = 5.0
"""The deviation of accuracies over a pool, in percent, that is expected before anything is known."""


class PoolSurrogate:
    """Over n architectures with ``features`` (n, d) and a ``ranking`` (n,), higher is better, of deviation one.

    ``length`` is the Matern kernel's; ``slope`` what the ranking is worth, in deviations; ``linear``, ``amplitude`` and
    ``noise`` the deviations of the slope, of g and of an evaluation.
    """

    def __init__(
        self,
        features: Floats,
        ranking: Floats,
        *,
        length: float = 6.0,
        slope: float = 0.3,
        linear: float = 0.2,
        amplitude: float = 0.7,
        noise: float = 0.1,
    ) -> None:
        if features.ndim != 2 or ranking.shape != features.shape[:1] or not len(ranking):
            raise Theta0Error(
                f"a surrogate needs features (n, d) and a ranking (n,); {features.shape} and {ranking.shape} came"
            )
        self._features, self._ranking = features / length, ranking
        self._slope, self._linear, self._amplitude, self._noise = slope, linear, amplitude, noise

    def posterior(self, places: list[int], values: Floats) -> tuple[Floats, Floats]:
        """Means and deviations (n,) of all architectures, given the ``values`` of those at ``places``."""
        mean, deviation, _ = self._posterior(places, values)
        return mean, deviation

    def improvement(self, places: list[int], values: Floats) -> Floats:
        """The logarithm of the improvement (n,) over the best of ``values`` that is to be expected."""
        mean, deviation, _ = self._posterior(places, values)
        z = (mean - values.max()) / deviation
        # phi(z) + z Phi(z) cancels far below zero; there it is phi(z) / z^2.
        near = np.log(np.maximum(norm.pdf(z) + z * np.exp(log_ndtr(z)), 1e-300))
        far = norm.logpdf(z) - 2 * np.log(np.maximum(np.abs(z), 1))
        return np.asarray(np.where(z > -6, near, far) + np.log(deviation))

    def spread(self, places: list[int], values: Floats) -> float:
        """s: how far accuracies lie apart in this pool, in their unit."""
        return self._posterior(places, values)[2]

    def _posterior(self, places: list[int], values: Floats) -> tuple[Floats, Floats, float]:
        if not places or len(places) != len(values) or not np.isfinite(values).all():
            raise Theta0Error(
                f"a surrogate needs at least one evaluation and finite values; {len(places)} places and {values} came"
            )
        cross = self._kernel(places)  # (n, evaluations)
        covariance = cross[places] + self._noise**2 * np.eye(len(places))
        factor = np.linalg.cholesky(covariance)
        ones, prior = np.ones(len(places)), self._slope * self._ranking[places]
        weights = cho_solve((factor, True), ones)
        weights /= weights.sum()
        spread, best = _TYPICAL, -np.inf
        for one in _SPREADS:
            rest = values / one - prior
            rest = rest - weights @ rest
            fit = -0.5 * rest @ cho_solve((factor, True), rest) - len(values) * np.log(one)
            fit -= 0.5 * np.log(one / _TYPICAL) ** 2
            if fit > best:
                spread, best = float(one), float(fit)
        rest = values / spread - prior
        level = float(weights @ rest)
        mean = level + self._slope * self._ranking + cross @ cho_solve((factor, True), rest - level * ones)
        explained = solve_triangular(factor, cross.T, lower=True)
        variance = self._amplitude**2 + (self._linear * self._ranking) ** 2 - (explained**2).sum(axis=0)
        return spread * mean, spread * np.sqrt(np.maximum(variance, 1e-12)), spread

    def _kernel(self, places: list[int]) -> Floats:
        """(n, places)."""
        squares = (self._features**2).sum(axis=1)
        inner = self._features @ self._features[places].T
        distance = np.sqrt(5 * np.maximum(squares[:, None] + squares[places] - 2 * inner, 0))
        matern = (1 + distance + distance**2 / 3) * np.exp(-distance)
        linear = self._linear**2 * np.outer(self._ranking, self._ranking[places])
        return np.asarray(self._amplitude**2 * matern + linear)
