"""DARTS (Liu et al., ICLR 2019): the softmax sum of all operations, its logits trained on the other half of the images.

First order takes weights as they are. Second order takes them after one more step of training, and differentiates that
step too: by the paper's equation 7 with finite differences of width 0.01 / norm (equation 8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.forms import Mixtures
from theta0.oneshot import Method, Run, searcher
from theta0.oneshot.method import Batch, descend_logits
from theta0.searchers import searchers

_WIDTH = 0.01


@dataclass(frozen=True)
class DARTS(Method):
    """First order."""

    def spread(self) -> float:
        """As in the official code."""
        return 1e-3

    def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
        """All operations; the logits get no gradient from this."""
        with torch.no_grad():
            return run.alphas.mixtures(run.alphas.softmax())

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """Down the validation loss."""
        descend_logits(run, run.loss(run.alphas.mixtures(run.alphas.softmax()), validation))


@dataclass(frozen=True)
class SecondOrder(DARTS):
    """Through one step of training."""

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """Down the validation loss of the weights that a step of training gives."""
        buffers = [run.sgd.state[w].get("momentum_buffer") if w in run.sgd.state else None for w in run.weights]

        def step(gradients: Sequence[Tensor | None]) -> list[Tensor]:
            """What SGD subtracts, in units of the learning rate; what takes no part stays."""
            found = []
            for weight, gradient, buffer in zip(run.weights, gradients, buffers, strict=True):
                if gradient is None:
                    found.append(torch.zeros_like(weight))
                    continue
                moved = gradient + self.weight_decay * weight.detach()
                found.append(moved if buffer is None else moved + self.momentum * buffer)
            return found

        def loss(batch: Batch) -> Tensor:
            return run.loss(run.alphas.mixtures(run.alphas.softmax()), batch)

        run.step_logits(
            unrolled(
                lambda: loss(train), lambda: loss(validation), run.weights, run.alphas.parameters(), step, run.rate()
            )
        )


def unrolled(
    train: Callable[[], Tensor],
    validation: Callable[[], Tensor],
    weights: Sequence[Tensor],
    logits: Sequence[Tensor],
    step: Callable[[Sequence[Tensor | None]], list[Tensor]],
    rate: float,
    width: float = _WIDTH,
) -> list[Tensor]:
    """The gradient with respect to ``logits`` of the validation loss at weights - rate * step(training gradient).

    Weights are left as they were found.
    """
    before = [weight.detach().clone() for weight in weights]

    def put(change: Sequence[Tensor], scale: float) -> None:
        with torch.no_grad():
            for weight, start, moved in zip(weights, before, change, strict=True):
                weight.copy_(start + scale * moved)

    def by_logits(loss: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(loss, logits, allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(logits, found, strict=True)]

    try:
        put(step(torch.autograd.grad(train(), weights, allow_unused=True)), -rate)
        found = torch.autograd.grad(validation(), [*logits, *weights], allow_unused=True)
        direct = [torch.zeros_like(p) if g is None else g for p, g in zip(logits, found, strict=False)]
        direction = [
            torch.zeros_like(w) if g is None else g for w, g in zip(weights, found[len(logits) :], strict=True)
        ]
        norm = float(torch.stack([d.square().sum() for d in direction]).sum().sqrt())
        if not norm:
            return direct
        if not norm < float("inf"):  # NaN too
            raise Theta0Error(
                f"the gradient of the validation loss has the norm {norm} after a step of training at a learning rate "
                f"of {rate:g}; lower learning_rate, or take the first order (searcher darts)"
            )
        put(direction, width / norm)
        above = by_logits(train())
        put(direction, -width / norm)
        below = by_logits(train())
    finally:
        with torch.no_grad():
            for weight, start in zip(weights, before, strict=True):
                weight.copy_(start)
    scale = rate * norm / (2 * width)
    return [d - scale * (a - b) for d, a, b in zip(direct, above, below, strict=True)]


darts: Any = searchers.register("darts")(searcher(DARTS))
darts_second: Any = searchers.register("darts-second")(searcher(SecondOrder))
