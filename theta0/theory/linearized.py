"""Training of a linearized network: the loss in closed form, and NASI's bound of it (equation 4, Proposition 1).

    losses = closed_form(gram, y - f, rate, steps)          # (len(steps),)
    followed = descend(jacobian, y - f, rate, steps)        # the same by gradient descent on the parameters

Under f(theta) = f_0 + J (theta - theta_0) and gradient descent on |f - y|^2 / 2, the residual r = y - f_0 along the
eigenvector u_i of the NTK shrinks by 1 - rate lambda_i in every step, so that the loss is |r_t|^2 / m with m samples.
Equation 4 and the proposition have Y in place of r: they take f_0 for zero, which the networks of the papers are only
on average; so the bound is asked for with residuals, and holds for all in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error


class Linearized(NamedTuple):
    """A network at theta_0: its outputs (m n,), their Jacobian (m n, P) and the NTK (m n, m n)."""

    outputs: Tensor
    jacobian: Tensor
    gram: Tensor


def linearized(model: nn.Module, x: Tensor) -> Linearized:
    """The outputs of all samples in a row, each sample's classes side by side; a backward pass for each."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    outputs = model(x).flatten()
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters, retain_graph=True)]) for value in outputs
    ]
    jacobian = torch.stack(rows).detach()
    return Linearized(outputs.detach(), jacobian, jacobian @ jacobian.T)


def _spectrum(gram: Tensor, rate: float, *, limit: float) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(gram)
    if not 0 < rate * float(values[-1]) < limit:
        raise Theta0Error(
            f"the learning rate is more than 0 and less than {limit:g} / lambda_max = {limit / float(values[-1]):.4g} "
            f"here, not {rate:g}"
        )
    return values, vectors


def closed_form(gram: Tensor, residual: Tensor, rate: float, steps: Sequence[int], *, samples: int) -> Tensor:
    """The loss |r_t|^2 / samples after each number of ``steps``."""
    values, vectors = _spectrum(gram, rate, limit=2)
    squares = (vectors.T @ residual).square()
    shrink = (1 - rate * values).abs()
    return torch.stack([(shrink ** (2 * step) * squares).sum() / samples for step in steps])


def descend(jacobian: Tensor, residual: Tensor, rate: float, steps: Sequence[int], *, samples: int) -> Tensor:
    """The same losses by gradient descent on the parameters of the linearized network."""
    theta, losses = jacobian.new_zeros(jacobian.shape[1]), {}
    for step in range(max(steps) + 1):
        left = residual - jacobian @ theta
        losses[step] = left.square().sum() / samples
        theta = theta + rate * (jacobian.T @ left)
    return torch.stack([losses[step] for step in steps])


def bound(gram: Tensor, rate: float, steps: Sequence[float], *, samples: int, classes: int) -> Tensor:
    """m n^2 (1 - rate mean lambda)^q, q = 2 t below t = 1/2 and 1 from there on: for residuals in [0, 1]."""
    if len(gram) != samples * classes:
        raise Theta0Error(f"{samples} samples of {classes} classes have a kernel of {samples * classes} rows")
    values, _ = _spectrum(gram, rate, limit=1)
    mean = 1 - rate * float(values.mean())
    return torch.tensor(
        [samples * classes**2 * mean ** (2 * t if t < 0.5 else 1.0) for t in steps], dtype=torch.float64
    )
