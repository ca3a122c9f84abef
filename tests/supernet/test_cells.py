from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.forms import CHOICE, GATE
from theta0.graph import Edge
from theta0.space import Choice, Chosen, Skeleton, Space, Supercell
from theta0.supernet import Mixed, MixedCell, evenly, mix, supernet
from theta0.supernet.cells import Partial, shuffled

SUPERCELL = Supercell(1, 3, {(0, 1): ("a", "b"), (0, 2): ("a",), (1, 2): ("b",)})
ONE = torch.ones(1, 1, 1, 1)


class Times(nn.Module):
    def __init__(self, edge: Edge) -> None:
        super().__init__()
        self.factor = {"a": 2.0, "b": 5.0}[edge.op] + edge.source

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x


def test_a_node_is_the_sum_of_its_edges_and_an_edge_that_of_its_operations() -> None:
    cell = MixedCell(SUPERCELL, Times)
    assert cell(ONE).item() == 2 + (2 + 5) * 6
    mix(cell, {"cell": evenly({(0, 1): ("a", "b"), (0, 2): ("a",), (1, 2): ("b",)})})
    assert cell(ONE).item() == 2 + (2 + 5) / 2 * 6
    mix(cell, {"cell": {(0, 1): {"b": 0.5}, (0, 2): {"a": 3.0}, (1, 2): {"b": 1.0}}})
    assert cell(ONE).item() == 3 * 2 + 0.5 * 5 * 6
    mix(cell, {"cell": {(1, 2): {"b": 1.0}}})
    assert cell(ONE).item() == 0
    mix(cell, {"cell": {}})
    assert cell(ONE).item() == 0


def test_an_edge_is_weighed_as_a_whole_by_its_gate() -> None:
    cell = MixedCell(SUPERCELL, Times)
    mix(cell, {"cell": {(0, 1): {"a": 1.0, "b": 2.0, GATE: 0.5}, (1, 2): {"b": 1.0, GATE: 3.0}}})
    assert cell(ONE).item() == 0.5 * (2 + 2 * 5) * 6 * 3
    mix(cell, {"cell": {(0, 2): {GATE: 1.0}, (0, 1): {"a": 1.0}, (1, 2): {"b": 1.0}}})
    assert cell(ONE).item() == 2 * 6  # a gate without operations is no edge


def test_partial_channels_by_hand() -> None:
    """PC-DARTS: the weighted sum of operations on the first channels, the others as they are, all shuffled."""
    supercell = Supercell(1, 2, {(0, 1): ("a", "b")})
    cell = MixedCell(supercell, Times, partial=4)
    x = torch.randn(2, 8, 3, 3)
    mix(cell, {"cell": {(0, 1): {"a": 0.25, "b": 0.75, GATE: 2.0}}})
    first = (0.25 * 2 + 0.75 * 5) * x[:, :2]
    wanted = 2 * torch.cat([first, x[:, 2:]], dim=1)
    wanted = torch.stack([wanted[:, i + 2 * j] for i in range(2) for j in range(4)], dim=1)
    torch.testing.assert_close(cell(x), wanted)
    mix(cell, {"cell": {(0, 1): {"b": 1.0}}})
    assert torch.equal(cell(x), cell.standalone()(x))
    assert torch.equal(cell(x), Partial(Times(Edge(0, 1, "b")), 4)(x))
    with pytest.raises(Theta0Error, match="one in 4 channels is less than one of 3"):
        cell(x[:, :3])
    assert torch.equal(shuffled(x[:, :1], x[:, 1:7], 4), x[:, :7])  # seven do not divide


def test_what_passes_by_a_stride_is_pooled() -> None:
    supercell = Supercell(1, 2, {(0, 1): ("nor_conv_3x3",)})
    cell = MixedCell(supercell, lambda edge: ops.build(edge.op, 2, stride=2), partial=2, stride=2)
    x = torch.randn(2, 4, 8, 8)
    rest = nn.functional.max_pool2d(x[:, 2:], 2)
    assert torch.equal(cell(x)[:, 1::2], rest)


def test_zeros_have_the_shape_of_a_stride() -> None:
    supercell = Supercell(2, 4, {(0, 2): ("nor_conv_1x1",), (2, 3): ("",)})
    cell = MixedCell(supercell, lambda edge: ops.build(edge.op, 4, stride=2), concat=True, stride=2)
    mix(cell, {"cell": {(2, 3): {"": 1.0}}})
    x = torch.randn(2, 4, 7, 8)
    assert torch.equal(cell(x, x), torch.zeros(2, 4, 4, 4))


def test_operations_on_nodes_are_for_another_module() -> None:
    with pytest.raises(Theta0Error, match="operations on its edges; this one has 1 on nodes"):
        MixedCell(Supercell(1, 3, {(0, 1): ("",)}, (("a",),)), Times)


def test_choices_of_ones_own() -> None:
    choice = Mixed("kernel.size", {"a": Times(Edge(0, 1, "a")), "1.5": Times(Edge(0, 1, "b"))})
    assert choice(ONE).item() == 7
    mix(choice, {"kernel.size": {CHOICE: {"1.5": 0.5}}})
    assert choice(ONE).item() == 2.5
    with pytest.raises(Theta0Error, match="no operation '0->1 c'"):
        mix(choice, {"kernel.size": {CHOICE: {"c": 1.0}}})
    mix(choice, {"kernel.size": {CHOICE: {}}})
    with pytest.raises(Theta0Error, match=r"the choice 'kernel.size' has no candidate to run"):
        choice(ONE)
    with pytest.raises(Theta0Error, match="the choice 'empty' of a supernet has no candidates"):
        Mixed("empty", {})


class Bare(Space[Chosen]):
    name, title = "bare", "a choice"
    choices = (Choice("a", (1, 2)),)

    def network(self, architecture: Chosen, skeleton: Skeleton) -> nn.Module:
        raise AssertionError

    def supernet(self, skeleton: Skeleton, partial: int = 1) -> nn.Module:
        return nn.Linear(1, 1)


def test_a_supernet_without_choices() -> None:
    with pytest.raises(Theta0Error, match="the supernet of bare has nothing to choose: no Mixed is in it"):
        supernet(Bare(), seed=0)


def test_a_supernet_that_knows_no_partial_channels() -> None:
    class Plain(Bare):
        def supernet(self, skeleton: Skeleton) -> nn.Module:  # type: ignore[override]
            return Mixed("a", {"1": nn.Identity(), "2": nn.ReLU()})

    assert supernet(Plain(), seed=0)
    with pytest.raises(Theta0Error, match="the supernet of bare knows no partial channels; take partial=1"):
        supernet(Plain(), seed=0, partial=2)


def test_the_form_of_a_space_with_cells_and_no_supercells() -> None:
    class Half(Bare):
        def cells(self, architecture: Any) -> dict[str, Any]:
            return {}

    with pytest.raises(Theta0Error, match="the space bare has no supernet form: it does not say what its cells"):
        Half().form()
    with pytest.raises(Theta0Error, match="no form is called 'nods'; did you mean nodes"):
        Bare().form("nods")
    with pytest.raises(Theta0Error, match="does not say which architecture has given cells"):
        Bare().from_cells({})
