"""Eigen-NAS, Algorithm 1: one epoch of stochastic gradient descent, one sample a step, and an iterate at random.

    found = one_pass(model, x, y, rate=0.01, seed=0)        # y of -1 and 1; the model gets the drawn iterate

The loss is log(1 + exp(-y f)), the step size constant, and the output W is uniform among the iterates W_1 to W_N, the
first of which is the initialization: that is what Theorem 3 bounds the error of.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.errors import DivergedError, Theta0Error
from theta0.theory.bounds import check_signs


class Pass(NamedTuple):
    """What the pass did."""

    iterate: int
    """The number of updates behind the drawn weights, from 0 to N - 1."""
    errors: list[bool]
    """Whether each sample was wrong when it was met, before the update by it."""
    last: nn.Module
    """The network after all updates."""


def one_pass(model: nn.Module, x: Tensor, y: Tensor, *, rate: float, seed: int) -> Pass:
    """Trains ``model``, which has one output, in the order of the samples; it is left with the drawn iterate."""
    check_signs(y)
    if len(x) != len(y) or not len(x):
        raise Theta0Error(f"a label for each sample is needed; found {len(x)} samples and {len(y)} labels")
    if not rate > 0:
        raise Theta0Error(f"a step size is more than 0, not {rate}")
    chosen = int(np.random.default_rng(seed).integers(len(x)))
    parameters, kept, errors = list(model.parameters()), None, []
    for i in range(len(x)):
        if i == chosen:
            kept = copy.deepcopy(model.state_dict())
        value = model(x[i : i + 1]).squeeze()
        if value.dim() != 0:
            raise Theta0Error(f"Algorithm 1 trains one output; this network has {value.numel()}: build it for 1 class")
        if not math.isfinite(float(value.detach())):
            raise DivergedError(f"the output is {float(value.detach())} at sample {i}; lower the step size")
        errors.append(bool(value.detach() * y[i] <= 0))
        gradients = torch.autograd.grad(F.softplus(-y[i] * value), parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(rate * gradient)
    last = copy.deepcopy(model)
    assert kept is not None
    model.load_state_dict(kept)
    return Pass(chosen, errors, last)


def step_size(gram: Tensor, y: Tensor, layers: int, lipschitz: float, width: int, *, kappa: float = 1.0) -> float:
    """Theorem 3's: kappa C_1 sqrt(y' K^-1 y) / (m sqrt(N)), C_1 = sqrt(L) / (3 Lip + 1)^(L - 1)."""
    factor = math.sqrt(layers) / (3 * lipschitz + 1) ** (layers - 1)
    return kappa * factor * math.sqrt(float(y @ torch.linalg.solve(gram, y))) / (width * math.sqrt(len(y)))
