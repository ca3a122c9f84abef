"""Scores of one data set are near those of another (NASI, Proposition 2; HNAS, Theorem 3).

    found = transfer(activations, p, q, distance=0.4)
    found.difference <= found.bound

For networks without skips in the NTK parametrization, with |s(x)| <= |x| and Lipschitz constant g, on inputs of at most
length one in n_0 dimensions,

    |tr(P) - tr(Q)| / (m n) <= Z D(g) / n_0,    D = (1 - g^(2L)) / (1 - g^2), or L where g = 1,

Z the integral of |P - Q|. Empirical distributions that share no sample have Z = 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory.bounds import constants
from theta0.theory.duals import activation
from theta0.theory.mlp import infinite


class Transfer(NamedTuple):
    """The mean diagonals of two data sets, and what bounds their difference."""

    first: float
    second: float
    bound: float

    @property
    def difference(self) -> float:
        """Without its sign."""
        return abs(self.first - self.second)


def diagonal(activations: Sequence[str], x: Tensor) -> Tensor:
    """(N,) the kernel of each input with itself, at infinite width."""
    skips = (False,) * (len(activations) - 1)
    return infinite((activations, skips), x[:, None], parametrization="ntk", sphere=False).ntk.flatten()


def transfer(activations: Sequence[str], x: Tensor, weights: tuple[Tensor, Tensor]) -> Transfer:
    """Of two distributions over the same inputs ``x`` (N, d): ``weights`` are their probabilities, (N,) each."""
    for w in weights:
        if w.shape != x.shape[:1] or bool((w < 0).any()) or abs(float(w.sum()) - 1) > 1e-9:
            raise Theta0Error(f"a distribution has a probability for each of {len(x)} inputs, and they sum to one")
    if float(x.norm(dim=1).max()) > 1 + 1e-9:
        raise Theta0Error(f"inputs are at most of length 1 here; the longest has {float(x.norm(dim=1).max()):.4g}")
    points = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    for name in activations:
        if bool((activation(name).function(points).abs() > points.abs() + 1e-12).any()):
            raise Theta0Error(f"the proposition asks for |s(x)| <= |x|, which {name} is not")
    own = diagonal(activations, x)
    lipschitz, L = max(constants(name).lipschitz for name in activations), len(activations) + 1
    factor = L if lipschitz == 1 else (1 - lipschitz ** (2 * L)) / (1 - lipschitz**2)
    distance = float((weights[0] - weights[1]).abs().sum())
    first, second = (float(w @ own) for w in weights)
    return Transfer(first, second, distance * factor / x.shape[1])
