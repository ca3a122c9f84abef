"""Bounds of the NTK's smallest eigenvalue, and of the error behind it (Eigen-NAS, Theorems 1 to 3, Table 1).

    theorem_1(architecture, samples, dimension)     # as printed
    proved(architecture, x)                         # what holds, with its proof below

As printed the bounds cannot hold. They carry a factor N / d, and ask for N of the order of d^4; but the smallest
eigenvalue is at most the mean of the diagonal, which does not grow with N (ReLU without skips: K_ii = L, so the printed
lower bound N / (2 d) is false from N > 2 d L on). The step that fails takes the smallest eigenvalue of X X' (N x N, of
rank d) for that of X'X. Sums of positive matrices and Schur's product theorem, lambda_min(A o B) >= lambda_min(A) min
B_ii, give what is left: with c = 2 mu_r^2 lambda_min((X X')^{o r}) for any one r,

    a_2 >= c,   t_1 >= r c,   t_2 >= g_3 (a_2 + t_1) + alpha_1 t_1,   t_l >= (g_{l+1} + alpha_{l-1}) t_{l-1},

where g is the diagonal of Gdot, and lambda_min(K) >= t_{L-1}. The upper bound is the mean of the diagonal; in closed
form, with the product of skip connections that the paper leaves out, (sqrt(beta_1) + alpha)^2 replaces beta_1 + alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory.duals import activation, moments
from theta0.theory.hermite import hermite
from theta0.theory.mlp import check_sphere

Architecture = tuple[Sequence[str], Sequence[bool]]


class Constants(NamedTuple):
    """Table 1, computed: suprema and infimum over the variance q of a normal argument."""

    beta_1: float
    """sup 2 E[s^2] / q"""
    beta_2: float
    """sup 2 E[s'^2]"""
    beta_3: float
    """inf 2 E[s'^2], up to the variance t where it falls with q (Sigmoid, Tanh)."""
    lipschitz: float


class Bound(NamedTuple):
    """A lower and an upper bound, and whether what the theorem assumes of N and d is so."""

    lower: float
    upper: float
    assumed: bool


@lru_cache(maxsize=256)
def constants(name: str, layers: int = 10) -> Constants:
    """The constants of an activation; ``layers`` is the L in Table 1's t = 3 (1 + eta^2) (2 + eta^2)^(L - 3)."""
    s = activation(name)
    eta = activation("leaky_relu").slope
    t = 3 * (1 + eta**2) * (2 + eta**2) ** (layers - 3)
    q = torch.logspace(-8, 4, 400, dtype=torch.float64)
    found = moments(s, q)
    slopes = 2 * found.slope
    falls = bool(slopes[-1] < slopes[0]) and s.kind == "analytic"
    last = moments(s, torch.tensor([min(t, 1e4)], dtype=torch.float64))
    low = 2 * float(last.slope[0]) if falls else float(slopes.min())
    x = torch.linspace(-20, 20, 200_001, dtype=torch.float64)
    # The suprema may be limits: of ever smaller arguments, where s is a line, or larger ones, where it is two.
    ends = s.derivative(torch.tensor([0.0, -50.0, 50.0], dtype=torch.float64)).square()
    limits = [float(ends[1] + ends[2])] + ([2 * float(ends[0])] if s.kind == "analytic" else [])
    return Constants(
        max(*limits, float((2 * found.square / q).max())),
        max(*limits, float(slopes.max())),
        low,
        float(s.derivative(x).abs().max()),
    )


def _checked(architecture: Architecture, samples: int, dimension: int) -> tuple[list[Constants], list[float], bool]:
    names, skips = architecture
    if len(names) < 2 or len(skips) != len(names) - 1:
        raise Theta0Error(f"the theorems begin at 3 layers; found {len(names) + 1} and {len(skips)} skips")
    if samples < 2 or dimension < 1:
        raise Theta0Error(f"the bounds are of two samples or more of one dimension or more: {samples}, {dimension}")
    # sigma_l and alpha_l are counted from 1 in the paper; alpha_0 = 0.
    table = [constants(name, len(names) + 1) for name in names]
    return table, [0.0, *map(float, skips)], samples >= dimension**4


def theorem_1(architecture: Architecture, samples: int, dimension: int) -> Bound:
    """As printed, its Theta taken as one."""
    table, alpha, assumed = _checked(architecture, samples, dimension)
    names, L = architecture[0], len(table) + 1
    mu = float(hermite(names[0], 2)[1])
    factors = [table[p - 2].beta_3 + alpha[p - 2] for p in range(3, L + 1)]
    lower = 2 * mu**2 * samples / dimension * math.prod(factors)
    total = 0.0
    for layer in range(1, L + 1):
        own = 1.0 if layer == 1 else table[layer - 2].beta_1
        before = math.prod(table[p - 2].beta_1 + alpha[p - 2] for p in range(2, layer))
        total += own * before * math.prod(table[p - 2].beta_2 + alpha[p - 2] for p in range(layer + 1, L + 1))
    return Bound(lower, samples / dimension * total, assumed)


def theorem_2(architecture: Architecture, samples: int, dimension: int) -> Bound:
    """As printed for finite width, every Theta taken as one."""
    table, alpha, assumed = _checked(architecture, samples, dimension)
    L = len(table) + 1
    lower = math.prod(table[i - 1].beta_3 + alpha[i - 1] for i in range(2, L))
    upper = sum(math.prod(table[i - 1].beta_2 + alpha[i - 1] for i in range(k + 2, L)) for k in range(L))
    return Bound(samples / dimension * lower, samples / dimension * upper, assumed)


class Proved(NamedTuple):
    """What holds for the kernel in the parametrization of the lemma."""

    lower: float
    trace: float
    """The mean of the diagonal: an upper bound."""
    upper: float
    """The same in closed form, from the constants alone."""
    order: int
    """The r of the lower bound."""


def proved(architecture: Architecture, x: Tensor, *, orders: int = 24) -> Proved:
    """Bounds for inputs ``x`` (N, d) on the unit sphere; the best of the first ``orders`` powers is taken."""
    check_sphere(x)
    table, alpha, _ = _checked(architecture, len(x), x.shape[1])
    gram = x @ x.T
    mu = hermite(architecture[0][0], orders + 1)
    least, order = 0.0, 0
    for r in range(1, orders + 1):
        value = 2 * float(mu[r]) ** 2 * float(torch.linalg.eigvalsh(gram**r)[0])
        if value * (1 + r) > least * (1 + order):
            least, order = value, r
    q, mean, t, slopes = 1.0, 0.0, 0.0, []
    for layer, name in enumerate(architecture[0], start=1):
        found = moments(name, torch.tensor([q], dtype=torch.float64))
        skip = alpha[layer - 1]
        slope, own = 2 * float(found.slope[0]), math.sqrt(2) * float(found.mean[0])
        t = slope * (q + t) + skip * t
        q, mean = 2 * float(found.square[0]) + skip * (q + 2 * own * mean), own + skip * mean
        slopes.append(slope)
    low = order * least
    for layer in range(2, len(table) + 1):
        low = slopes[layer - 1] * (low + (least if layer == 2 else 0)) + alpha[layer - 1] * low
    A, T = 1.0, 0.0
    for layer, one in enumerate(table, start=1):
        skip = alpha[layer - 1]
        T = one.beta_2 * (A + T) + skip * T
        A *= (math.sqrt(one.beta_1) + skip) ** 2
    return Proved(low, q + t, A + T, order)


def theorem_3(gram: Tensor, y: Tensor, architecture: Architecture, *, delta: float = 0.1) -> float:
    """The bound of the expected 0-1 error, its O's taken as one; above one, as it mostly is, it says nothing.

    ``gram`` (N, N) is the NTK, ``y`` (N,) are labels -1 and 1. As a score it orders architectures.
    """
    if not 0 < delta <= math.exp(-1):
        raise Theta0Error(f"delta is more than 0 and at most 1 / e, not {delta}")
    check_signs(y)
    low = smallest(gram)
    names = architecture[0]
    L = len(names) + 1
    lipschitz = max(constants(name, L).lipschitz for name in names)
    factor = math.sqrt(L) * (3 * lipschitz + 1) ** (L - 1)
    return factor * math.sqrt(float(y @ y) / (low * len(y))) + math.sqrt(math.log(1 / delta) / len(y))


def check_signs(y: Tensor) -> None:
    """An error for labels that are not -1 and 1."""
    found = sorted(set(y.tolist()))
    if not set(found) <= {-1, 1}:
        raise Theta0Error(f"the theorem's labels are -1 and 1; found {found[:5]}")


def smallest(gram: Tensor) -> float:
    """The smallest eigenvalue, which must be more than rounding."""
    if gram.dim() != 2 or gram.shape[0] != gram.shape[1] or not bool(torch.isfinite(gram).all()):
        raise Theta0Error(f"a kernel is a square matrix of finite numbers; found {tuple(gram.shape)}")
    if not torch.allclose(gram, gram.T, rtol=1e-8, atol=0):
        raise Theta0Error("a kernel is symmetric; this matrix is not")
    values = np.linalg.eigvalsh(gram.double().numpy())
    if values[0] <= len(gram) * 1e-15 * values[-1]:
        raise Theta0Error(
            f"the kernel is not positive definite within rounding: its eigenvalues are {values[0]:.3g} to "
            f"{values[-1]:.3g}; leave out inputs that are equal or opposite, or take more layers"
        )
    return float(values[0])
