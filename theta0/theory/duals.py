"""Dual activations: E[s(u) s(v)] and E[s'(u) s'(v)] for normal u and v, the step of every infinite-width kernel.

    pair = dual("tanh", c, q, q)            # c: covariances (N, M); q: variances (N,), (M,)
    pair.value, pair.slope, pair.error

ReLU and LeakyReLU have the arc-cosine forms (Cho and Saul, NeurIPS 2009), erf those of Williams (1997); a line is a
line. The others are analytic, and take Mehler's series

    E[s(u) s(v)] = sum_k a_k(q_u) a_k(q_v) r^k,    a_k(q) = E[s(sqrt(q) z) he_k(z)],    r the correlation,

with the Hermite polynomials normalised, E[he_j he_k] = [j = k]. What is cut off is at most |r|^K times the geometric
mean of sum_{k >= K} a_k^2, which Parseval gives without the terms; K is chosen by that bound. The one-dimensional
integrals are sums over a grid of equal steps: for functions analytic in a strip the error falls as exp(-2 pi strip /
step), faster than Gauss-Hermite's nodes, which spread with the degree. Every second point gives the error's measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.polynomial.chebyshev import chebinterpolate, chebval
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from torch import Tensor

from theta0.errors import Theta0Error, nearest
from theta0.ops import ACTIVATIONS

Function = Callable[[Tensor], Tensor]

TOLERANCE = 1e-12
"""Of the diagonal: what may be cut off a series, if 512 terms reach it."""
_TERMS = (16, 32, 64, 128, 256, 512)
_ONE = 1 - 1e-10
"""Correlations above it take the integrals of the diagonal, so that no series has to reach one."""
_CHUNK = 2**17
"""Entries of a kernel worked on at a time, some megabytes with what they need."""


@dataclass(frozen=True)
class Activation:
    """A function, its derivative, and the constants that theorems ask for."""

    name: str
    function: Function
    derivative: Function
    slope: float
    """Below zero, where the function is the identity above it; or the slope of a line."""
    kind: str
    """``rectifier`` (slope below zero, the identity above), ``line``, ``erf``, or ``analytic``."""
    odd: bool = False


def _analytic(name: str) -> Activation:
    module = ACTIVATIONS[name]()

    def function(x: Tensor) -> Tensor:
        value: Tensor = module(x)
        return value

    derivatives: dict[str, Function] = {
        "sigmoid": lambda x: torch.sigmoid(x) * torch.sigmoid(-x),
        "tanh": lambda x: 1 - torch.tanh(x).square(),
        "swish": lambda x: torch.sigmoid(x) * (1 + x * torch.sigmoid(-x)),
    }
    return Activation(name, function, derivatives[name], math.nan, "analytic", odd=name != "swish")


def rectifier(name: str, slope: float) -> Activation:
    """max(slope x, x)."""
    return Activation(
        name,
        lambda x: torch.where(x > 0, x, slope * x),
        lambda x: torch.where(x > 0, 1.0, slope).to(x.dtype),
        slope,
        "rectifier",
    )


def line(slope: float) -> Activation:
    """slope x."""
    return Activation(f"{slope:g} x", lambda x: slope * x, lambda x: torch.full_like(x, slope), slope, "line", odd=True)


FUNCTIONS: dict[str, Activation] = {
    "relu": rectifier("relu", 0.0),
    "leaky_relu": rectifier("leaky_relu", ACTIVATIONS["leaky_relu"]().negative_slope),  # type: ignore[arg-type]
    **{name: _analytic(name) for name in ("sigmoid", "tanh", "swish")},
    "erf": Activation(
        "erf", torch.erf, lambda x: 2 / math.sqrt(math.pi) * torch.exp(-x.square()), math.nan, "erf", odd=True
    ),
    "identity": line(1.0),
}
"""Those of the Eigen-NAS space, as its networks have them; and two more that have closed forms."""


def activation(name: str | Activation) -> Activation:
    """The activation called ``name``."""
    if isinstance(name, Activation):
        return name
    if name not in FUNCTIONS:
        raise Theta0Error(f"no dual activation is known for {name!r}; {nearest(name, FUNCTIONS)}")
    return FUNCTIONS[name]


class Moments(NamedTuple):
    """E[s], E[s^2] and E[s'^2] at variances q, each of the shape of q."""

    mean: Tensor
    square: Tensor
    slope: Tensor


def moments(name: str | Activation, q: Tensor) -> Moments:
    """The diagonal of the dual, and the mean."""
    s = activation(name)
    if s.kind == "rectifier":
        mean = (1 - s.slope) * torch.sqrt(q / (2 * math.pi))
        half = (1 + s.slope**2) / 2
        return Moments(mean, half * q, torch.full_like(q, half))
    if s.kind == "line":
        return Moments(torch.zeros_like(q), s.slope**2 * q, torch.full_like(q, s.slope**2))
    if s.kind == "erf":
        slope = 4 / math.pi / torch.sqrt(1 + 4 * q)
        return Moments(torch.zeros_like(q), 2 / math.pi * torch.asin(2 * q / (1 + 2 * q)), slope)
    grid = _grid(_step(q), 16)
    x = torch.sqrt(q)[..., None] * grid.points
    mean = torch.zeros_like(q) if s.odd else s.function(x) @ grid.weights
    return Moments(mean, s.function(x).square() @ grid.weights, s.derivative(x).square() @ grid.weights)


class Dual(NamedTuple):
    """E[s(u) s(v)] and E[s'(u) s'(v)], (..., N, M), and the largest error, relative to the diagonal."""

    value: Tensor
    slope: Tensor
    error: float


def dual(name: str | Activation, c: Tensor, first: Tensor, second: Tensor) -> Dual:
    """The dual of covariances ``c`` (..., N, M) at variances ``first`` (..., N) and ``second`` (..., M), float64.

    Where nothing asks for a gradient it is worked out in pieces of rows that fit a cache.
    """
    s = activation(name)
    if c.dtype != torch.float64:
        raise Theta0Error(f"kernels are worked out in float64; found {c.dtype}: use .double()")
    plan = _Plan(s, first, second, c) if s.kind == "analytic" else None
    if c.requires_grad or first.requires_grad or second.requires_grad:
        value, slope = _piece(s, c, first, second, plan)
        return Dual(value, slope, 0.0 if plan is None else plan.error)
    value, slope = torch.empty_like(c), torch.empty_like(c)
    rows = max(1, _CHUNK // max(1, c[..., :1, :].numel()))
    for start in range(0, c.shape[-2], rows):
        part = slice(start, start + rows)
        found = _piece(s, c[..., part, :], first[..., part], second, plan and plan.rows(part))
        value[..., part, :], slope[..., part, :] = found
    return Dual(value, slope, 0.0 if plan is None else plan.error)


def _piece(s: Activation, c: Tensor, first: Tensor, second: Tensor, plan: _Plan | None) -> tuple[Tensor, Tensor]:
    if s.kind == "line":
        return s.slope**2 * c, torch.full_like(c, s.slope**2)
    if s.kind == "erf":
        norm = (1 + 2 * first)[..., :, None] * (1 + 2 * second)[..., None, :]
        value = 2 / math.pi * torch.asin(2 * c / torch.sqrt(norm))
        return value, 4 / math.pi / torch.sqrt(norm - 4 * c.square())
    one, other = torch.sqrt(first)[..., :, None], torch.sqrt(second)[..., None, :]
    # An input of zero has the correlation zero with everything; its products are zero anyway. Within rounding of one
    # the angle's derivative is not finite, which would spoil gradients: those entries are as good as one.
    r = c / torch.where(one > 0, one, 1.0) / torch.where(other > 0, other, 1.0)
    r = r.clamp(-1 + 1e-15, 1 - 1e-15)
    if plan is not None:
        value, slope = plan.series(r)
        equal = r > _ONE
        return torch.where(equal, plan.ends(0), value), torch.where(equal, plan.ends(1), slope)
    if not r.requires_grad:
        r.masked_fill_(r > 1 - 1e-14, 1.0)  # equal inputs, whose angle would be 1e-7 by rounding
    turned = torch.acos(-r)  # pi less the angle
    arc = torch.addcmul(torch.sin(turned), turned, r)
    share = (1 - s.slope) ** 2 / (2 * math.pi)
    value = arc * (share * one) * other
    # s(x) = eta x + (1 - eta) relu(x), and E[u relu(v)] = c / 2.
    return torch.add(value, c, alpha=s.slope) if s.slope else value, share * turned + s.slope


class _Plan:
    """The coefficients of an activation's series for some rows and columns, and how many there are."""

    def __init__(self, s: Activation, first: Tensor, second: Tensor, c: Tensor) -> None:
        self.odd = s.odd
        constant = not (first.requires_grad or second.requires_grad)
        with torch.no_grad():
            low, high = (f(torch.stack([f(first), f(second)])) for f in (torch.min, torch.max))
            self.equal = constant and bool(high - low <= 1e-13 * high)
            size = torch.sqrt(first)[..., :, None] * torch.sqrt(second)[..., None, :]
            r = c / torch.where(size > 0, size, 1.0)
            largest = float(torch.where(r < _ONE, r.abs(), 0.0).max())
            variances = torch.stack([low, high]).reshape(-1)
            for terms in _TERMS:
                found, slopes, measured = coefficients(s, variances, terms)
                exact = moments(s, variances)
                tails = [
                    float(((whole - part.square().sum(dim=-1)).clamp(min=0) / whole.clamp(min=1e-300)).max())
                    for whole, part in ((exact.square, found), (exact.slope, slopes))
                ]
                self.error = max(tails) * largest**terms + measured
                if max(tails) * largest**terms <= TOLERANCE:
                    break
        if self.equal:
            with torch.no_grad():
                self.polynomials = self._polynomials(s, first.reshape(-1)[:1], terms, r)
        else:
            self.products = tuple(x for q in (first, second) for x in coefficients(s, q, terms)[:2])
        self.terms = terms
        self.diagonals = [[v.sqrt() for v in moments(s, q)[1:]] for q in (first, second)]

    def _polynomials(self, s: Activation, q: Tensor, terms: int, r: Tensor) -> tuple[Any, ...]:
        """Where all variances are equal both duals are functions of the correlation alone.

        Between the least and the largest one a polynomial of a few dozen terms is as exact as the long series, which
        converges slowly near a correlation of one. Its error is measured between its nodes and added.
        """
        inside = torch.where(r < _ONE, r, 0.0)
        low, high = float(inside.min()) - 1e-3, float(inside.max()) + 1e-3
        found = coefficients(s, q, terms)
        values, slopes = (x[0].square().numpy() for x in found[:2])

        def series(of: NDArray[np.float64]) -> Any:
            return lambda t: polyval(np.clip((low + high + t * (high - low)) / 2, -1, 1), of)

        for degree in (16, 32, 64, 128):
            t = np.cos(np.linspace(0.1, 3.1, 301))
            both = [chebinterpolate(series(of), degree) for of in (values, slopes)]
            errors = [
                float(np.abs(chebval(t, found) - series(of)(t)).max() / of.sum())
                for found, of in zip(both, (values, slopes), strict=True)
            ]
            if max(errors) <= TOLERANCE:
                break
        self.error += max(errors)
        return (low, high, *(found.tolist() for found in both))

    def rows(self, part: slice) -> _Plan:
        """The plan of some rows."""
        chosen = object.__new__(_Plan)
        chosen.__dict__ |= self.__dict__
        chosen.diagonals = [[v[..., part] for v in self.diagonals[0]], self.diagonals[1]]
        if not self.equal:
            one, other, *rest = self.products
            chosen.products = (one[..., part, :], other[..., part, :], *rest)
        return chosen

    def ends(self, which: int) -> Tensor:
        """The values, or the slopes, where the correlation is one."""
        first, second = (found[which] for found in self.diagonals)
        return first[..., :, None] * second[..., None, :]

    def series(self, r: Tensor) -> tuple[Tensor, Tensor]:
        """The values and the slopes at correlations r."""
        if self.equal:
            low, high, *both = self.polynomials
            t = (2 * r - (low + high)) / (high - low)
            value, slope = (_clenshaw(t, factors) for factors in both)
            return value, slope
        one, one_slope, two, two_slope = self.products
        value, slope, power = torch.zeros_like(r), torch.zeros_like(r), torch.ones_like(r)
        for k in range(self.terms):
            if not (self.odd and k % 2 == 0):
                value = value + power * one[..., :, None, k] * two[..., None, :, k]
            if not (self.odd and k % 2 == 1):
                slope = slope + power * one_slope[..., :, None, k] * two_slope[..., None, :, k]
            power = power * r
        return value, slope


def _clenshaw(t: Tensor, factors: list[float]) -> Tensor:
    """A Chebyshev series at t."""
    twice, last, before = 2 * t, torch.full_like(t, factors[-1]), torch.zeros_like(t)
    for factor in reversed(factors[1:-1]):
        last, before = torch.addcmul(before.neg_().add_(factor), twice, last), last
    return torch.addcmul(before.neg_().add_(factors[0]), t, last)


class Grid(NamedTuple):
    """Points (n,), the weights of the normal distribution there, and weighted Hermite polynomials (n, terms)."""

    points: Tensor
    weights: Tensor
    hermite: Tensor


def _step(q: Tensor) -> float:
    """A sixth of the strip in which the activations are analytic at the largest variance: errors of 1e-16."""
    if not bool(torch.isfinite(q).all()):
        raise Theta0Error("the kernel's variances are not finite: the network is too deep, or its gain too large")
    return min(0.125, math.pi / 12 / math.sqrt(max(float(q.detach().max()), 1e-300)))


@lru_cache(maxsize=8)
def _grid_of(level: int, terms: int) -> Grid:
    step = 0.125 * 2.0**-level
    count = math.ceil((2 * math.sqrt(terms) + 9) / step)
    z = step * torch.arange(-count, count + 1, dtype=torch.float64)
    root = math.sqrt(step) * torch.exp(-z.square() / 4) / (2 * math.pi) ** 0.25
    rows = [root, z * root]
    for k in range(1, terms - 1):
        rows.append((z * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return Grid(z, root.square(), torch.stack([root * row for row in rows[:terms]], dim=1))


def _grid(step: float, terms: int) -> Grid:
    level = max(0, math.ceil(math.log2(0.125 / step)))
    if level > 7:
        raise Theta0Error(
            f"the variances reach {(math.pi / 12 / step) ** 2:.3g}, where a series needs too fine a grid; "
            f"use fewer layers or a smaller gain"
        )
    return _grid_of(level, terms)


def coefficients(name: str | Activation, q: Tensor, terms: int) -> tuple[Tensor, Tensor, float]:
    """Hermite coefficients of s(sqrt(q) z) and of s'(sqrt(q) z), each (..., terms), and the integrals' error.

    The error is measured: that of every second point, squared as geometric convergence has it, relative to E[s^2].
    """
    s = activation(name)
    if terms < 2:
        raise Theta0Error(f"a series has two terms or more, not {terms}")
    if s.kind == "rectifier":
        raise Theta0Error(f"{s.name} has a corner, where a grid is slow; see theta0.theory.hermite for its series")
    grid = _grid(_step(q), terms)
    x = torch.sqrt(q)[..., None] * grid.points
    values, slopes = s.function(x), s.derivative(x)
    with torch.no_grad():
        error = 0.0
        for known in (values, slopes):
            square = known.square() * grid.weights
            whole, half = square.sum(dim=-1), 2 * square[..., ::2].sum(dim=-1)
            error = max(error, float(((whole - half).abs() / whole.clamp(min=1e-300)).max()) ** 2)
    return values @ grid.hermite, slopes @ grid.hermite, error
