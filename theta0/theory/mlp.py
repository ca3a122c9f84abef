"""The neural tangent kernel of the Eigen-NAS space at infinite width (Zhu et al., NeurIPS 2022, Lemma 1, corrected).

    kernel = infinite(space.parse("relu tanh+ swish"), x)           # x (N, d), rows on the unit sphere
    kernel.ntk, kernel.covariance, kernel.error

With F_l = sqrt(m) f_l, a network of the space is F_l = sqrt(g) s_l(h_l) + a_{l-1} F_{l-1}, where the h_l are
independent normal variables, one for each unit, of covariance A_l = E[F_{l-1} F_{l-1}']. So

    A_{l+1} = G + a (A_l + sqrt(g) (E[s] M' + M E[s'])),    G = g E[s(h) s(h')],    M the mean of F_{l-1},
    T_l = Gdot o (A_l + T_{l-1}) + a T_{l-1},               Gdot = g E[s'(h) s'(h')],
    K = A_L + T_{L-1},

with T_l the kernel of f_l's units. Lemma 1 as printed differs in two ways, and ``form="printed"`` computes it: the
gradient of W_l multiplies by f_{l-1}, whose covariance is A_l, where the lemma has G_l; and the product of a unit with
its skip connection is left out, which vanishes only for activations of mean zero (Sigmoid - 1/2, Tanh).

Three parametrizations:

``lemma``  f_l = sqrt(2 / m) s(W f_{l-1}), W of N(0, 1): the factor 2 of Lemma 1, g = 2
``ntk``    the NTK parametrization of :mod:`theta0.initialize`: g = 1, and the first layer divides by sqrt(d)
``paper``  weights of N(0, 1 / m) as printed and as the space builds them: h_l is of size 1 / sqrt(m), so that in the
           limit every activation is what it is at zero: Sigmoid - 1/2 is x / 4, Tanh is x, Swish is x / 2; g = 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory.duals import Activation, activation, dual, line, moments

Parametrization = Literal["lemma", "ntk", "paper"]
Form = Literal["exact", "printed"]


class Kernel(NamedTuple):
    """Kernels (..., N, M) in float64."""

    ntk: Tensor
    covariance: Tensor
    """A_L: the covariance of the network's output, but for the head's own variance."""
    error: float
    """The largest bound of what a layer's dual leaves out, relative to its diagonal; 0 where all have closed forms."""
    depth: int


class Depths(NamedTuple):
    """The NTK's after each number of layers: what a network of that depth has."""

    layers: list[int]
    kernels: list[Kernel]


def infinite(
    architecture: tuple[Sequence[str | Activation], Sequence[bool]],
    x: Tensor,
    other: Tensor | None = None,
    *,
    parametrization: Parametrization = "lemma",
    form: Form = "exact",
    sphere: bool = True,
) -> Kernel:
    """The kernel of inputs ``x`` (..., N, d) with ``other`` (..., M, d), or with themselves.

    ``sphere=False`` takes inputs of any length; Assumption 1 of the paper has them on the unit sphere.
    """
    return _Recursion(architecture, x, other, parametrization, form, sphere).run()[-1]


def by_depth(
    architecture: tuple[Sequence[str | Activation], Sequence[bool]],
    x: Tensor,
    *,
    parametrization: Parametrization = "lemma",
    form: Form = "exact",
) -> Depths:
    """The kernels of the networks of the first 2, 3, ... layers (the linear output among them), in one recursion."""
    found = _Recursion(architecture, x, None, parametrization, form, True).run()
    return Depths([kernel.depth for kernel in found], found)


def at_zero(name: str | Activation) -> Activation:
    """What is left of an activation under ever smaller arguments: the rectifiers themselves, lines for the others."""
    s = activation(name)
    if s.kind in ("rectifier", "line"):
        return s
    return line(float(s.derivative(torch.zeros((), dtype=torch.float64))))


def unit(x: Tensor) -> Tensor:
    """Inputs (N, ...) as float64 rows (N, d) of length one."""
    rows: Tensor = x.double().flatten(1)
    length = rows.norm(dim=1, keepdim=True)
    if bool((length == 0).any()):
        raise Theta0Error("an input of zeros has no place on the unit sphere; leave it out")
    result: Tensor = rows / length
    return result


def check_sphere(x: Tensor) -> None:
    """An error for inputs that are not on the unit sphere."""
    length = x.detach().norm(dim=-1)
    if not bool((length - 1).abs().max() < 1e-6):
        raise Theta0Error(
            f"this needs inputs on the unit sphere; their lengths are {float(length.min()):.4g} to "
            f"{float(length.max()):.4g}: use theta0.theory.mlp.unit(x)"
        )


class _Recursion:
    def __init__(
        self,
        architecture: tuple[Sequence[str | Activation], Sequence[bool]],
        x: Tensor,
        other: Tensor | None,
        parametrization: Parametrization,
        form: Form,
        sphere: bool,
    ) -> None:
        names, skips = architecture
        if not names or len(skips) != len(names) - 1:
            raise Theta0Error(
                f"an architecture has an activation for each hidden layer and a skip for each but the first; "
                f"found {len(names)} and {len(skips)}"
            )
        for value, kinds in ((parametrization, Parametrization), (form, Form)):
            if value not in get_args(kinds):
                raise Theta0Error(f"{value!r} is not one of {', '.join(get_args(kinds))}")
        self.itself = other is None
        other = x if other is None else other
        for rows in (x, other):
            if rows.dtype != torch.float64 or rows.dim() < 2:
                raise Theta0Error(f"inputs are float64 rows (..., N, d); found {rows.dtype} {tuple(rows.shape)}")
            if not bool(torch.isfinite(rows).all()):
                raise Theta0Error("inputs must be finite")
            if sphere:
                check_sphere(rows)
        self.skips = (False, *skips)
        self.activations = [at_zero(name) if parametrization == "paper" else activation(name) for name in names]
        self.gain = 2.0 if parametrization == "lemma" else 1.0
        self.exact = form == "exact"
        scale = 1 / x.shape[-1] if parametrization == "ntk" else 1.0
        self.A = scale * x @ other.transpose(-1, -2)
        self.q = [scale * rows.square().sum(dim=-1) for rows in (x, other)]
        self.M = [torch.zeros_like(q) for q in self.q]
        self.T = torch.zeros_like(self.A)
        self.printed = self.A
        self._diagonal(self.A, self.q[0])

    def _diagonal(self, matrix: Tensor, values: Tensor) -> None:
        """Sets what is known without rounding."""
        if self.itself and not matrix.requires_grad:
            matrix.diagonal(dim1=-2, dim2=-1).copy_(values)

    def run(self) -> list[Kernel]:
        found, error = [], 0.0
        for layer, (s, skip) in enumerate(zip(self.activations, self.skips, strict=True), start=2):
            error = max(error, self._layer(s, skip))
            if not math.isfinite(float(self.T.detach().sum() + self.A.detach().sum())):
                raise Theta0Error(f"the kernel overflows at layer {layer}; use fewer layers")
            head = self.A if self.exact else self.printed
            found.append(Kernel(head + self.T, head, error, layer))
        return found

    def _layer(self, s: Activation, skip: bool) -> float:
        g = self.gain
        pair = dual(s, self.A, *self.q)
        diagonals = [moments(s, q) for q in self.q]
        G, slope = (pair.value, pair.slope) if g == 1 else (g * pair.value, g * pair.slope)
        if self.itself and G.requires_grad:
            eye = torch.eye(G.shape[-1], dtype=torch.bool)
            G = torch.where(eye, g * diagonals[0].square[..., None, :], G)
            slope = torch.where(eye, g * diagonals[0].slope[..., None, :], slope)
        self._diagonal(G, g * diagonals[0].square)
        self._diagonal(slope, g * diagonals[0].slope)
        means = [math.sqrt(g) * found.mean for found in diagonals]
        carried = self.A if self.exact else self.printed
        T = carried + self.T
        T = slope * T if T.requires_grad or slope.requires_grad else T.mul_(slope)
        self.printed = G
        q = [g * found.square for found in diagonals]
        if skip:
            T = T + self.T
            G = G + self.A
            q = [new + old for new, old in zip(q, self.q, strict=True)]
            if self.exact:
                (one, other), (before, other_before) = means, self.M
                G = G + one[..., :, None] * other_before[..., None, :] + before[..., :, None] * other[..., None, :]
                q = [new + 2 * mean * old for new, mean, old in zip(q, means, self.M, strict=True)]
            means = [new + old for new, old in zip(means, self.M, strict=True)]
        self.A, self.T, self.q, self.M = G, T, q, means
        return pair.error
