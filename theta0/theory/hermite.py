"""Hermite coefficients of the activations, also of those with a corner: mu_k = E[s(z) he_k(z)], E[he_j he_k] = [j = k].

    hermite("relu", 4)              # 0.3989, 0.5, 0.2821, 0

Each half line is integrated by Gauss-Legendre on its own, so that a corner at zero does no harm; a finer rule gives the
error's measure.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory.duals import Activation, activation


@lru_cache(maxsize=8)
def _rule(terms: int, panels: int) -> tuple[Tensor, Tensor]:
    """Points on both half lines, and Hermite polynomials there times the weights (points, terms)."""
    reach = 2 * math.sqrt(terms) + 9
    nodes, weights = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(20))
    width = reach / panels
    half = (torch.arange(panels, dtype=torch.float64)[:, None] * width + width * (nodes + 1) / 2).flatten()
    z = torch.cat([-half, half])
    weight = (weights * width / 2).repeat(2 * panels)
    root = torch.sqrt(weight) * torch.exp(-z.square() / 4) / (2 * math.pi) ** 0.25
    rows = [root, z * root]
    for k in range(1, terms):
        rows.append((z * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return z, torch.stack([root * row for row in rows[:terms]], dim=1)


def hermite(name: str | Activation, terms: int) -> Tensor:
    """(terms,) coefficients at variance one, float64."""
    s = activation(name)
    if not 1 <= terms <= 200:
        raise Theta0Error(f"1 to 200 coefficients can be computed, not {terms}")
    panels = 8 + terms
    found = [s.function(z) @ basis for z, basis in (_rule(terms, panels), _rule(terms, 2 * panels))]
    error = float((found[0] - found[1]).abs().max())
    if error > 1e-11:
        raise Theta0Error(f"the Hermite coefficients of {s.name} are off by {error:.1e}; it has a corner besides zero")
    return found[1]
