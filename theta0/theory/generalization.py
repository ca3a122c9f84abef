"""HNAS's bound of the generalization gap by kappa / M, step by step (Theorem 2; thesis, Theorem 7.2).

    steps = chain(gram, y)
    steps.rademacher <= steps.norm <= steps.realizable <= steps.by_kappa <= steps.printed

The class of functions that training reaches is that of the NTK's features with norm at most B = sqrt(y' K^-1 y). Its
Rademacher complexity is (B / m) E|sum_i e_i phi_i| <= (B / m) sqrt(tr K); with y in [0, 1] that is at most
M / sqrt(lambda_min), M = sqrt(tr K / m), and M^2 <= lambda_max makes it at most kappa sqrt(lambda_min) / M. The printed
kappa / M needs lambda_min <= 1 besides, as the theorem says; where it is larger, the last step is false.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory.bounds import smallest


class Chain(NamedTuple):
    """The steps of the proof, each at most the next."""

    rademacher: float
    """By sampling signs."""
    norm: float
    realizable: float
    by_kappa: float
    printed: float
    assumed: bool
    """Whether lambda_min is at most one, without which the last step need not hold."""


def chain(gram: Tensor, y: Tensor, *, draws: int = 2000, seed: int = 0) -> Chain:
    """``gram`` (m, m) is the NTK of one output, ``y`` (m,) its labels in [0, 1]."""
    if bool((y < 0).any()) or bool((y > 1).any()) or y.shape != gram.shape[:1]:
        raise Theta0Error(f"labels are {len(gram)} numbers from 0 to 1")
    low, m = smallest(gram), len(gram)
    high, trace = float(torch.linalg.eigvalsh(gram)[-1]), float(gram.trace())
    norm = math.sqrt(float(y @ torch.linalg.solve(gram, y)))
    signs = torch.randint(0, 2, (draws, m), generator=torch.Generator().manual_seed(seed)).double() * 2 - 1
    lengths = torch.einsum("di,ij,dj->d", signs, gram, signs).clamp(min=0).sqrt()
    metric, kappa = math.sqrt(trace / m), high / low
    return Chain(
        norm / m * float(lengths.mean()),
        norm / m * math.sqrt(trace),
        metric / math.sqrt(low),
        kappa * math.sqrt(low) / metric,
        kappa / metric,
        low <= 1,
    )


def gap(train: Tensor, cross: Tensor, y: Tensor, other_y: Tensor) -> float:
    """Mean squared error / 2 of kernel regression on other samples, less that of training, which is zero.

    ``train`` (m, m), ``cross`` (other, m); labels (m, c) and (other, c).
    """
    found = cross @ torch.linalg.solve(train, y)
    return float((found - other_y).square().sum(dim=1).mean()) / 2
