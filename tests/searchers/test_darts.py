from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.searchers.darts import unrolled

DOUBLE = {"dtype": torch.float64}


def problem() -> tuple[list[Tensor], list[Tensor], Any, Any]:
    """A mixed layer in float64: two operations between two linear layers, logits over them."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, **DOUBLE)  # type: ignore[call-overload, no-any-return]

    weights = [draw(3, 4).requires_grad_(), draw(4, 4).requires_grad_(), draw(4, 2).requires_grad_()]
    logits = [draw(2).requires_grad_(), draw(3).requires_grad_()]
    data = [(draw(6, 3), torch.arange(6) % 2), (draw(6, 3), (torch.arange(6) + 1) % 2)]

    def loss(part: int, given: Sequence[Tensor]) -> Tensor:
        x, y = data[part]
        first, second = logits[0].softmax(dim=0), logits[1].softmax(dim=0)
        hidden = x @ given[0]
        hidden = first[0] * torch.tanh(hidden @ given[1]) + first[1] * hidden
        hidden = second[0] * hidden + second[1] * torch.sigmoid(hidden) + second[2] * hidden.square() / 4
        return torch.nn.functional.cross_entropy(hidden @ given[2], y)

    return weights, logits, (lambda: loss(0, weights)), loss


def test_the_unrolled_gradient_is_that_of_autograd_through_the_step() -> None:
    weights, logits, _, loss = problem()
    buffers = [torch.ones_like(w) * 0.1 for w in weights]
    rate, momentum, decay = 0.05, 0.9, 3e-2

    def step(gradients: Sequence[Tensor | None]) -> list[Tensor]:
        return [
            g + decay * w.detach() + momentum * b  # type: ignore[operator]
            for g, w, b in zip(gradients, weights, buffers, strict=True)
        ]

    before = [w.detach().clone() for w in weights]
    found = unrolled(lambda: loss(0, weights), lambda: loss(1, weights), weights, logits, step, rate)
    assert all(torch.equal(w, b) for w, b in zip(weights, before, strict=True))
    first = torch.autograd.grad(loss(0, weights), weights, create_graph=True)
    after = [
        w - rate * (g + decay * w.detach() + momentum * b) for w, g, b in zip(weights, first, buffers, strict=True)
    ]
    wanted = torch.autograd.grad(loss(1, after), logits)
    plain = torch.autograd.grad(loss(1, [a.detach() for a in after]), logits)
    for f, w, p in zip(found, wanted, plain, strict=True):
        torch.testing.assert_close(f, w, rtol=1e-4, atol=1e-7)
        assert (w - p).abs().max() > 1e-3  # the second order counts here


def test_the_first_order_is_a_rate_of_zero() -> None:
    weights, logits, _, loss = problem()

    def step(gradients: Sequence[Tensor | None]) -> list[Tensor]:
        return [g for g in gradients if g is not None]

    found = unrolled(lambda: loss(0, weights), lambda: loss(1, weights), weights, logits, step, 0.0)
    wanted = torch.autograd.grad(loss(1, weights), logits)
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, w)


def test_a_gradient_that_is_not_finite_is_named_and_weights_are_put_back() -> None:
    weights, logits, _, loss = problem()
    before = [w.detach().clone() for w in weights]

    def broken() -> Tensor:
        return loss(1, weights) * math.nan

    with pytest.raises(
        Theta0Error, match=r"has the norm nan after a step of training at a learning rate of 0.1; lower"
    ):
        unrolled(lambda: loss(0, weights), broken, weights, logits, lambda g: [x for x in g if x is not None], 0.1)
    assert all(torch.equal(w, b) for w, b in zip(weights, before, strict=True))
