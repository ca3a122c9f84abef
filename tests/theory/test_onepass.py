from __future__ import annotations

import copy
import math

import pytest
import torch

from theta0.errors import DivergedError, Theta0Error
from theta0.spaces.mlp import Layers, MLPSpace
from theta0.theory.mlp import unit
from theta0.theory.onepass import one_pass, step_size


def network() -> torch.nn.Module:
    space = MLPSpace(layers=3)
    return space.build(Layers(("relu", "tanh"), (True,)), seed=0, width=16, shape=(1, 1, 5), classes=1).double()


def data(samples: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    x = unit(torch.randn(samples, 5, generator=torch.Generator().manual_seed(0)))
    return x, torch.where(x[:, 0] > 0, 1.0, -1.0).double()


def test_iterates_by_hand() -> None:
    """The same updates, written with an optimizer and the printed loss; the drawn iterate is one of them."""
    x, y = data(10)
    model, other = network(), network()
    found = one_pass(model, x, y, rate=0.1, seed=3)
    optimizer, iterates = torch.optim.SGD(other.parameters(), lr=0.1), []
    for i in range(10):
        iterates.append(copy.deepcopy(other.state_dict()))
        optimizer.zero_grad()
        torch.log(1 + torch.exp(-y[i] * other(x[i : i + 1]).squeeze())).backward()
        optimizer.step()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, iterates[found.iterate][name], rtol=1e-12, atol=1e-14)
    for name, value in found.last.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name], rtol=1e-12, atol=1e-14)


def test_every_iterate_is_drawn_alike() -> None:
    x, y = data(4)
    drawn = [one_pass(network(), x, y, rate=0.01, seed=seed).iterate for seed in range(200)]
    assert [round(drawn.count(i) / 200, 1) for i in range(4)] == pytest.approx([0.25] * 4, abs=0.11)


def test_it_learns() -> None:
    x, y = data(600)
    found = one_pass(network(), x, y, rate=0.5, seed=0)
    assert sum(found.errors[400:]) < 0.6 * sum(found.errors[:200]) + 10


def test_the_step_size_of_theorem_3() -> None:
    gram, y = 2 * torch.eye(9).double(), torch.ones(9).double()
    expected = math.sqrt(3) / 4**2 * math.sqrt(9 / 2) / (100 * 3)
    assert step_size(gram, y, 3, 1.0, 100) == pytest.approx(expected)


def test_what_cannot_be_done() -> None:
    x, y = data(4)
    for call, message in (
        (lambda: one_pass(network(), x, y * 2, rate=0.1, seed=0), "labels are -1 and 1"),
        (lambda: one_pass(network(), x, y[:3], rate=0.1, seed=0), "4 samples and 3 labels"),
        (lambda: one_pass(network(), x, y, rate=0.0, seed=0), "more than 0, not 0.0"),
        (
            lambda: one_pass(torch.nn.Linear(5, 2).double(), x, y, rate=0.1, seed=0),
            "trains one output; this network has 2",
        ),
    ):
        with pytest.raises(Theta0Error, match=message):
            call()
    broken = network()
    with torch.no_grad():
        next(broken.parameters()).fill_(math.nan)
    with pytest.raises(DivergedError, match="the output is nan at sample 0"):
        one_pass(broken, x, y, rate=0.1, seed=0)
