"""HNAS (Shu et al., NeurIPS 2022): min over a pool of kappa / M + mu F(M^2 - nu), mu and nu by a Gaussian process.

The defaults are the paper's form with scales that fit any pool; each detail of the official code has a switch of its
own, and :data:`OFFICIAL` is all of them together.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from theta0.candidates import Candidates, Floats
from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.surrogate import Acquisition, Surrogate

OFFICIAL: dict[str, Any] = {
    "form": "absolute",
    "scaling": "fixed",
    "scale": 5e3,
    "lowest": -4.0,
    "highest": 0.0,
    "probes": 5,
    "growth": 2000,
    "signed": True,
}

_FEW, _OFTEN = 20, 5
"""The Gaussian process is fitted in each step up to so many evaluations, and in every fifth one after them."""


@searchers.register("hnas-paper")
def hnas_paper(
    task: Task,
    generator: np.random.Generator,
    *,
    score: str = "trace",
    kappa: str = "kappa",
    form: Literal["square", "absolute"] = "square",
    scaling: Literal["pool", "fixed"] = "pool",
    scale: float = 5e3,
    lowest: float = -4.0,
    highest: float = 0.0,
    acquisition: Acquisition = "ei",
    probes: int = 5,
    growth: int = 0,
    signed: bool = False,
    epochs: int = 0,
) -> Search:
    """Algorithm 1.

    ``form`` is F(x) = x^2 as printed, or |x| as in the code. With ``scaling`` pool, nu is a quantile of M^2 over the
    pool and mu is in units that make both terms alike; with fixed, nu = (t scale)^2 for t in [0, 1]. mu is 10 to a
    power between ``lowest`` and ``highest``. The first ``probes`` take nu from end to end at a mu of 10^(lowest / 2).
    ``growth`` architectures are added to the pool in each step, 0 takes it whole; ``signed`` keeps M's sign.
    """
    pool = task.pool()
    if form not in ("square", "absolute") or scaling not in ("pool", "fixed"):
        raise Theta0Error(f"form is square or absolute and scaling is pool or fixed, not {form!r} and {scaling!r}")
    terms = Terms(
        pool, score, kappa, absolute=form == "absolute", signed=signed, scale=None if scaling == "pool" else scale
    )
    budget = epochs or task.epochs[0]
    open_ = np.zeros(len(pool), dtype=bool) if growth else np.ones(len(pool), dtype=bool)
    done = np.zeros(len(pool), dtype=bool)
    points: list[Floats] = []
    values: list[float] = []
    model: Surrogate | None = None
    starts = np.linspace(0, 1, probes) if probes > 1 else np.full(probes, 0.5)
    while not done[terms.places].all():
        if growth:
            open_[generator.integers(len(pool), size=growth)] = True
        if len(points) < probes:
            point = np.array([0.5, starts[len(points)]])
        else:
            kept = [i for i, value in enumerate(values) if np.isfinite(value)]
            # With many points one more hardly moves the hyper-parameters, and the fit is most of what a step takes.
            fit = model is None or len(kept) <= _FEW or len(kept) % _OFTEN == 0
            model = Surrogate(np.array(points)[kept], np.array(values)[kept], start=model, fit=fit) if kept else None
            point = model.propose(generator, acquisition) if model else generator.random(2)
        mu, t = float(10 ** (lowest + point[0] * (highest - lowest))), float(point[1])
        objective = terms.value(mu, t)
        objective[done | ~open_] = np.inf
        place = int(np.argmin(objective))
        if not np.isfinite(objective[place]):
            continue
        done[place] = True
        (outcome,) = yield [task.proposal(pool.architectures[place], budget, mu=mu, t=t)]
        points.append(point)
        values.append(outcome.value)


class Terms:
    """The two terms of the objective over a pool; architectures without a valid M and kappa are infinitely bad."""

    def __init__(
        self, pool: Candidates, score: str, kappa: str, *, absolute: bool, signed: bool, scale: float | None
    ) -> None:
        valid = pool.ok(score) & pool.ok(kappa)
        if not valid.any():
            raise Theta0Error(f"no architecture of the pool has valid {score} and {kappa}; score it again")
        self.places = np.flatnonzero(valid)
        metric = pool.column(score)[valid]
        self._metric = metric if signed else np.abs(metric)
        self._ratio = pool.column(kappa)[valid] / (self._metric + 1e-6)
        self._absolute, self._scale, self._size = absolute, scale, len(pool)
        self._squares = np.sort(self._metric**2)

    def value(self, mu: float, t: float) -> Floats:
        """The objective (n,) at mu and at nu given by t in [0, 1]; smaller is better."""
        if self._scale is None:
            difference = self._metric**2 - np.quantile(self._squares, t)
            shortfall = np.abs(difference) if self._absolute else difference**2
            # Both terms alike: their medians over the pool.
            shortfall = shortfall * (np.median(np.abs(self._ratio)) / max(np.median(shortfall), 1e-300)) * 1e2
        else:
            difference = self._metric**2 - (t * self._scale) ** 2
            shortfall = np.abs(difference) if self._absolute else difference**2
        found = np.full(self._size, np.inf)
        found[self.places] = self._ratio + mu * shortfall
        return found
