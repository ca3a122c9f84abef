from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.graph import Edge
from theta0.space import Space, Supercell, get_space
from theta0.spaces.nasbench201 import OPERATIONS, PAIRS
from theta0.supernet import MixedCell, evenly, mix, supernet

space = get_space("nasbench201")
SMALL = {"channels": 2, "cells": 1, "shape": (3, 8, 8), "classes": 4}


def images(count: int = 3) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_one_operation_for_each_edge_is_the_network_of_that_cell() -> None:
    model = supernet(space, seed=0, **SMALL)
    cell = space.parse("|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|")
    mix(model, {(source, target): {op: 1.0} for source, target, op in cell.edges})
    network = space.build(cell, seed=1, **SMALL)
    shared, own = model.state_dict(), network.state_dict()
    for name in own:
        before, found, after = name.partition(".operations.")
        if found:
            number, _, rest = after.partition(".")
            source, target, op = cell.edges[int(number)]
            own[name] = shared[f"{before}.operations.{source}->{target} {op}.{rest}"]
        else:
            own[name] = shared[name]
    network.load_state_dict(own)
    torch.testing.assert_close(model(images()), network(images()))


def test_a_node_is_the_sum_of_its_edges_and_an_edge_that_of_its_operations() -> None:
    supercell = Supercell(1, 3, {(0, 1): ("a", "b"), (0, 2): ("a",), (1, 2): ("b",)})
    factors = {"a": 2.0, "b": 5.0}

    class Times(nn.Module):
        def __init__(self, edge: Edge) -> None:
            super().__init__()
            self.factor = factors[edge.op] + edge.source

        def forward(self, x: Tensor) -> Tensor:
            return self.factor * x

    cell = MixedCell(supercell, Times)
    x = torch.ones(1, 1, 1, 1)
    assert cell(x).item() == 2 + (2 + 5) * 6
    mix(cell, evenly({(0, 1): ("a", "b"), (0, 2): ("a",), (1, 2): ("b",)}))
    assert cell(x).item() == 2 + (2 + 5) / 2 * 6
    mix(cell, {(0, 1): {"b": 0.5}, (0, 2): {"a": 3.0}, (1, 2): {"b": 1.0}})
    assert cell(x).item() == 3 * 2 + 0.5 * 5 * 6
    mix(cell, {(1, 2): {"b": 1.0}})
    assert cell(x).item() == 0


def test_what_is_not_in_the_mixture_does_not_run() -> None:
    model = supernet(space, seed=0, **SMALL)
    ran: list[str] = []
    for name, module in model.named_modules():
        if " " in name.rpartition(".")[2]:
            module.register_forward_hook(lambda *_, name=name: ran.append(name.rpartition(".")[2]))
    names = ("skip_connect", "nor_conv_1x1")
    mix(model, evenly(dict.fromkeys(PAIRS, names)))
    model(images())
    assert sorted(ran) == sorted(
        f"{s}->{t} {name}" for s, t in PAIRS for name in names for _ in range(3)
    )  # three cells


def test_gradients_reach_weights_that_are_tensors() -> None:
    model = supernet(space, seed=0, **SMALL)
    alphas = torch.zeros(len(PAIRS), len(OPERATIONS), requires_grad=True)
    weights = alphas.softmax(dim=1)
    mix(model, {pair: dict(zip(OPERATIONS, weights[i], strict=True)) for i, pair in enumerate(PAIRS)})
    model(images()).square().sum().backward()
    assert alphas.grad is not None
    assert (alphas.grad.abs().sum(dim=1) > 0).all()


def test_seeds() -> None:
    before = torch.get_rng_state()
    one, same, other = (supernet(space, seed=seed, **SMALL).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_unknown_operations() -> None:
    model = supernet(space, seed=0, **SMALL)
    with pytest.raises(Theta0Error, match="the supernet has no operation '0->1 nor_conv_5x5'; did you mean"):
        mix(model, {(0, 1): {"nor_conv_5x5": 1.0}})
    with pytest.raises(Theta0Error, match="the supernet has no operation '1->0 none'"):
        mix(model, {(1, 0): {"none": 1.0}})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("darts", "a supernet is made of one cell; darts has normal, reduce"),
        ("nasbench101", "nasbench101 has no supernet form"),
        ("nasbench1shot1_1", "one input and operations on its edges; this one has 1 and operations on 4 nodes"),
    ],
)
def test_spaces_without_such_a_supernet(name: str, reason: str) -> None:
    with pytest.raises(Theta0Error, match=reason):
        supernet(get_space(name), seed=0)


def test_a_skeleton_of_another_kind() -> None:
    class Bare(Space[object]):
        name, title = "bare", "a supercell and no skeleton of its own"
        choices = ()

        def network(self, architecture: object, skeleton: object) -> nn.Module:
            raise AssertionError

        def supercells(self) -> dict[str, Supercell]:
            return {"cell": Supercell(1, 2, {(0, 1): tuple(ops.names()[:2])})}

    with pytest.raises(Theta0Error, match="the skeleton of bare has no channels, cells, affine, track, which a super"):
        supernet(Bare(), seed=0)
