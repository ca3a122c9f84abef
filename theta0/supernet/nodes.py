"""Cells of a supernet with operations on nodes, as in NAS-Bench-1Shot1: how wide a vertex is depends on the candidate.

The channels of the output are split among the vertices that are joined to it, so that one and the same operation is
wide in one cell and narrow in another. It keeps weights for the widest case, and runs with the first channels of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.forms import Mixture, Place
from theta0.graph import Cell, Edge, live
from theta0.network.cells import NodeCell, vertex_channels
from theta0.ops import Norm
from theta0.space import Supercell
from theta0.supernet.cells import MixedModule, _sum, _times, only, parted, shuffled

Numbering = Callable[[Cell], tuple[int, ...]]
"""For each inner vertex of a cell the number that it has in the network of its own."""


class Plan:
    """What a mixture runs: the cell in its own numbering, and for each of its vertices the one it is here."""

    def __init__(self, cell: Cell, vertices: tuple[int, ...]) -> None:
        self.cell, self.vertices = cell, vertices


class MixedNodeCell(MixedModule):
    """Runs the vertices that reach the output; a vertex applies the weighted sum of operations to the sum of its edges.

    ``numbering`` orders vertices as the network of its own does, on which the split of channels depends. ``partial`` is
    as in :class:`~theta0.supernet.cells.MixedCell`, for the channels of each vertex.
    """

    def __init__(
        self,
        supercell: Supercell,
        c_in: int,
        c_out: int,
        norm: Norm,
        numbering: Numbering,
        *,
        name: str = "cell",
        partial: int = 1,
    ) -> None:
        super().__init__()
        self.name, self.supercell, self.partial = name, supercell, partial
        self.c_in, self.c_out, self.norm = c_in, c_out, norm
        fed = sorted(target for source, target in supercell.edges if source == 0)
        self.projections = nn.ModuleDict({str(v): Sliced(ops.conv_norm_relu(c_in, c_out, 1, norm)) for v in fed})
        self.operations = nn.ModuleDict(
            {
                f"{vertex} {op}": Sliced(ops.build(op, max(1, c_out // partial), norm=norm))
                for vertex, names in enumerate(supercell.ops, start=1)
                for op in names
            }
        )
        # The numbering of a cell is found by trying permutations; searches come back to the same cells.
        self._planned = lru_cache(maxsize=4096)(lambda edges, names: _plan(supercell, edges, names, numbering))
        everything: dict[Place, dict[str, float]] = {pair: {"": 1.0} for pair in supercell.edges}
        for vertex, names in enumerate(supercell.ops, start=1):
            everything[vertex] = dict.fromkeys(names, 1.0)
        self.set_mixture(everything)

    def places(self) -> Mapping[Place, Iterable[str]]:
        """Edges and vertices."""
        found: dict[Place, Iterable[str]] = dict(enumerate(self.supercell.ops, start=1))
        return found | dict(self.supercell.edges)

    def set_mixture(self, mixture: Mixture) -> None:
        """Finds out which vertices run, and how wide they are."""
        self.mixture = mixture
        edges = tuple(sorted(place for place, weights in mixture.items() if isinstance(place, tuple) and weights))
        names = tuple(next(iter(mixture.get(v, {})), "") for v in range(1, self.supercell.nodes - 1))
        self.plan: Plan = self._planned(edges, names)
        self.channels = vertex_channels(self.plan.cell, self.c_in, self.c_out)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) to (N, C_out, H, W)."""
        cell = self.plan.cell
        if not cell.edges:
            return x.new_zeros(len(x), self.c_out, *x.shape[2:])
        values = [x]
        for vertex in cell.intermediate:
            values.append(self._operate(vertex, _sum(self._terms(vertex, values, self.channels[vertex]))))
        joined = [_times(values[edge.source], self._gate(edge)) for edge in cell.into(cell.output) if edge.source != 0]
        terms = self._projected(x, cell.output) + ([torch.cat(joined, dim=1)] if joined else [])
        return _sum(terms)

    def _terms(self, vertex: int, values: list[Tensor], channels: int) -> list[Tensor]:
        inner = [edge for edge in self.plan.cell.into(vertex) if edge.source != 0]
        return self._projected(values[0], vertex) + [
            _times(values[edge.source][:, :channels], self._gate(edge)) for edge in inner
        ]

    def _projected(self, x: Tensor, vertex: int) -> list[Tensor]:
        edges = [edge for edge in self.plan.cell.into(vertex) if edge.source == 0]
        key = str(self.plan.vertices[vertex])
        return [_times(self.projections[key](x, self.channels[vertex]), self._gate(edge)) for edge in edges]

    def _gate(self, edge: Edge) -> Any:
        return self.mixture[self.plan.vertices[edge.source], self.plan.vertices[edge.target]][""]

    def _operate(self, vertex: int, x: Tensor) -> Tensor:
        here = self.plan.vertices[vertex]
        weights = self.mixture.get(here, {})
        if not weights:
            raise Theta0Error(f"vertex {here} of {self.name} has no operation to run; mix at least one")
        part, rest = parted(x, self.partial) if self.partial > 1 else (x, x)
        terms = [_times(self.operations[f"{here} {op}"](part, part.shape[1]), weight) for op, weight in weights.items()]
        return _sum(terms) if self.partial == 1 else shuffled(_sum(terms), rest, self.partial)

    def standalone(self) -> nn.Module:
        """The cell with operations on its vertices."""
        for place, weights in self.mixture.items():
            only(self.name, place, weights)
        if self.partial > 1:
            raise Theta0Error("a candidate with partial channels is no network of its own; take partial=1")
        cell = self.plan.cell
        found = NodeCell(cell, self.c_in, self.c_out, self.norm)
        for target, projection in found.projections.items():
            here = self.projections[str(self.plan.vertices[int(target)])]
            _copy(here.inner, projection)  # type: ignore[arg-type]
        for vertex, op, operation in zip(cell.intermediate, cell.ops, found.operations, strict=True):
            _copy(self.operations[f"{self.plan.vertices[vertex]} {op}"].inner, operation)  # type: ignore[arg-type]
        return found


class Sliced(nn.Module):
    """An operation that runs with the first of its channels."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, channels: int) -> Tensor:
        """(N, C, H, W) to (N, channels, H, W)."""
        for layer in self.inner if isinstance(self.inner, nn.Sequential) else [self.inner]:
            if isinstance(layer, nn.Conv2d) and layer.weight.shape[:2] != (channels, x.shape[1]):
                x = F.conv2d(x, layer.weight[:channels, : x.shape[1]], stride=layer.stride, padding=layer.padding)
            elif isinstance(layer, nn.BatchNorm2d) and layer.num_features != channels:
                x = _batch_norm(layer, x, channels)
            else:
                x = layer(x)
        return x


def _batch_norm(layer: nn.BatchNorm2d, x: Tensor, channels: int) -> Tensor:
    """The first channels of a normalisation; running statistics are updated in place."""
    mean, variance, weight, bias = (
        None if tensor is None else tensor[:channels]
        for tensor in (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    )
    by_batch = layer.training or layer.running_mean is None
    if layer.training and layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
    if layer.momentum is None:
        raise Theta0Error("a normalisation that runs with some of its channels needs a momentum, not a plain average")
    return F.batch_norm(x, mean, variance, weight, bias, by_batch, layer.momentum, layer.eps)


def _copy(wide: nn.Module, narrow: nn.Module) -> None:
    """The first channels of each weight and statistic."""
    source = wide.state_dict()
    state = {
        name: source[name][tuple(slice(size) for size in value.shape)] for name, value in narrow.state_dict().items()
    }
    narrow.load_state_dict(state)
    reference = next((tensor for tensor in source.values() if tensor.is_floating_point()), None)
    if reference is not None:
        narrow.to(reference)


def _plan(
    supercell: Supercell, edges: tuple[tuple[int, int], ...], names: tuple[str, ...], numbering: Numbering
) -> Plan:
    labels = tuple(str(vertex) for vertex in range(1, supercell.nodes - 1))
    kept = live(Cell(1, supercell.nodes, tuple(Edge(*pair) for pair in edges), labels))
    vertices = (0, *map(int, kept.ops), supercell.nodes - 1)
    if not kept.edges:
        return Plan(kept, vertices)
    named = Cell(1, kept.nodes, kept.edges, tuple(names[vertex - 1] for vertex in vertices[1:-1]))
    number = (0, *numbering(named), named.output)
    order = tuple(vertices[number.index(place)] for place in range(named.nodes))
    ops_by_number = {number[vertex]: op for vertex, op in zip(named.intermediate, named.ops, strict=True)}
    cell = Cell(
        1,
        named.nodes,
        tuple(Edge(number[source], number[target]) for source, target, _ in named.edges),
        tuple(ops_by_number[vertex] for vertex in named.intermediate),
    )
    return Plan(cell, order)
