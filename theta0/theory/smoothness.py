"""Wide and narrow cells: block-wise Lipschitz constants and gradient variance (thesis, Figure 4.9, Theorems 4.3, 4.4).

    cells = Cells(weights, x, readout, y)
    cells.lipschitz("wide"), cells.lipschitz("narrow"), cells.printed_lipschitz()

The widest cell has n nodes y_i = W_i x, the narrowest y_i = W_i ... W_1 x, both linear, their output is all nodes. The
objective is the mean over samples of |U z - y|^2 / 2, or of a plane <c(x), z> where the gradient of the output is given
and the same in both cells. Under the first, both constants are exact: in block i the Hessian is V'V times E[p p'], p
what the block reads and V what the objective makes of what it writes.

The theorems take the gradient of the output for the same in both cells, which holds for planes alone, and for Theorem
4.3 that of node k > i for independent of W_i. So Theorem 4.3 as printed fails for the simplest curved objective: one
sample x, f = |z|^2 / 2 and two nodes give |x|^2 for W_1 in the wide cell, (1 + |W_2|^2) |x|^2 in the narrow one, where
the theorem's bound is |x|^2. :meth:`Cells.proved` is what holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from theta0.errors import Theta0Error

Kind = Literal["wide", "narrow"]


class Cells:
    """The two cells with the same weights (n matrices, d x d), on samples ``x`` (N, d).

    ``readout`` (c, n d) and ``y`` (N, c) are the curved objective; without ``y``, ``readout`` (N, n d) is a plane for
    each sample.
    """

    def __init__(self, weights: Sequence[Tensor], x: Tensor, readout: Tensor, y: Tensor | None = None) -> None:
        size, n = x.shape[1], len(weights)
        if not weights or any(w.shape != (size, size) for w in weights):
            raise Theta0Error(f"the cells have square matrices of {size} x {size}, the size of a sample")
        expected = (len(x) if y is None else y.shape[1], n * size)
        if tuple(readout.shape) != expected:
            raise Theta0Error(f"the readout is {expected[0]} x {expected[1]} here, not {tuple(readout.shape)}")
        self.weights, self.x, self.y = list(weights), x, y
        self.parts = torch.split(readout, size, dim=1)
        self.norms = [float(torch.linalg.matrix_norm(w, 2)) for w in weights]
        """The largest singular values, which the thesis calls eigenvalues."""

    def _reads(self, kind: Kind, block: int) -> Tensor:
        p = self.x
        if kind == "narrow":
            for w in self.weights[:block]:
                p = p @ w.T
        return p

    def _behind(self, kind: Kind, block: int, parts: Sequence[Tensor]) -> Tensor:
        """What multiplies the block's output: the sum over later nodes of their part times the path to them."""
        if kind == "wide":
            return parts[block]
        path, total = torch.eye(self.x.shape[1], dtype=self.x.dtype), parts[block]
        for k in range(block + 1, len(self.weights)):
            path = self.weights[k] @ path
            total = total + parts[k] @ path
        return total

    def _outputs(self, kind: Kind) -> list[Tensor]:
        return [self._reads(kind, i) @ w.T for i, w in enumerate(self.weights)]

    def gradients(self, kind: Kind) -> list[Tensor]:
        """For each block the gradients of the samples, (N, d, d)."""
        found = []
        left = None
        if self.y is not None:
            left = sum(z @ part.T for z, part in zip(self._outputs(kind), self.parts, strict=True)) - self.y
        for i in range(len(self.weights)):
            V = self._behind(kind, i, self.parts)
            g = V if left is None else left @ V
            found.append(torch.einsum("ni,nj->nij", g, self._reads(kind, i)))
        return found

    def lipschitz(self, kind: Kind) -> list[float]:
        """For each block the largest eigenvalue of the objective's Hessian; zero for planes."""
        if self.y is None:
            return [0.0] * len(self.weights)
        found = []
        for i in range(len(self.weights)):
            V, p = self._behind(kind, i, self.parts), self._reads(kind, i)
            second = p.T @ p / len(p)
            found.append(float(torch.linalg.matrix_norm(V, 2)) ** 2 * float(torch.linalg.eigvalsh(second)[-1]))
        return found

    def variance(self, kind: Kind) -> list[float]:
        """For each block E|g - E g|^2 over the samples, in the Frobenius norm."""
        return [float((g - g.mean(dim=0)).square().sum(dim=(1, 2)).mean()) for g in self.gradients(kind)]

    def printed_lipschitz(self) -> list[float]:
        """Theorem 4.3: prod_{j < i} lambda_j times the wide cell's constant."""
        return [math.prod(self.norms[:i]) * own for i, own in enumerate(self.lipschitz("wide"))]

    def printed_variance(self) -> list[float]:
        """Theorem 4.4: n sum_{k >= i} (sigma_k / lambda_i prod_{j <= k} lambda_j)^2."""
        own, n = self.variance("wide"), len(self.weights)
        return [
            n * sum(own[k] * (math.prod(self.norms[: k + 1]) / self.norms[i]) ** 2 for k in range(i, n))
            for i in range(n)
        ]

    def proved(self) -> list[float]:
        """prod_{j < i} lambda_j^2 (sum_{k >= i} sqrt(L_k) prod_{i < j <= k} lambda_j)^2: holds for the narrow cell."""
        own, n = self.lipschitz("wide"), len(self.weights)
        return [
            math.prod(self.norms[:i]) ** 2
            * sum(math.sqrt(own[k]) * math.prod(self.norms[i + 1 : k + 1]) for k in range(i, n)) ** 2
            for i in range(n)
        ]
