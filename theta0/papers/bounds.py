"""HNAS's generalization bounds as scores of a pool, and their correlation with errors.

Realizable: 1 / M. Non-realizable: kappa / M + mu (M^2 - nu)^2, mu and nu chosen for the largest correlation, as the
paper does. Architectures without a valid score rank last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from theta0.candidates import Candidates

Floats = NDArray[np.float64]


class Weights(NamedTuple):
    """mu in units of the pool's medians, and the quantile of M^2 that nu is."""

    mu: float
    quantile: float


class Metric:
    """M and kappa of a pool."""

    def __init__(self, pool: Candidates, score: str, kappa: Candidates | None = None) -> None:
        other = pool if kappa is None else kappa
        self.valid = pool.ok(score) & other.ok("kappa")
        metric = np.where(self.valid, np.abs(pool.column(score)), np.nan)
        # A logarithm that may be negative is moved: only its order and distances count.
        low = np.nanmin(metric)
        self.metric = metric if low > 0 else metric - low + 1e-6 * (np.nanmax(metric) - low)
        self.kappa = np.where(self.valid, other.column("kappa"), np.nan)

    def realizable(self) -> Floats:
        """1 / M, infinite where there is none."""
        return self._filled(1 / self.metric)

    def with_trade_off(self, weights: Weights) -> Floats:
        """1 / M and the trade-off."""
        return self._filled(self._sum(1 / self.metric, weights))

    def with_kappa(self) -> Floats:
        """kappa / M."""
        return self._filled(self.kappa / self.metric)

    def non_realizable(self, weights: Weights) -> Floats:
        """kappa / M and the trade-off."""
        return self._filled(self._sum(self.kappa / self.metric, weights))

    def best(self, errors: Floats) -> Weights:
        """The weights under which :meth:`non_realizable` goes best with the errors."""
        grid = [Weights(10.0**power, q) for power in np.arange(-5, 2.5, 0.5) for q in np.linspace(0, 1, 21)]
        return max(grid, key=lambda weights: spearman(self.non_realizable(weights), errors))

    def _sum(self, first: Floats, weights: Weights) -> Floats:
        shortfall = (self.metric**2 - np.nanquantile(self.metric**2, weights.quantile)) ** 2
        return np.asarray(first + weights.mu * np.nanmedian(first) / np.nanmedian(shortfall) * shortfall)

    def _filled(self, values: Floats) -> Floats:
        # Infinity, but one that ranks and that correlations can take.
        return np.where(self.valid, values, 2 * np.nanmax(np.abs(values)))


def spearman(first: Floats, second: Floats) -> float:
    """Rank correlation."""
    return float(spearmanr(first, second).statistic)


def kendall(first: Floats, second: Floats) -> float:
    """Kendall's tau."""
    return float(kendalltau(first, second).statistic)
