"""Modules that run one cell: with operations on edges (NAS-Bench-201, DARTS) or on nodes (NAS-Bench-101)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.graph import Cell, Edge
from theta0.ops import Norm


class DropPath(nn.Module):
    """Drops whole paths of single images while training, and scales the others up (ScheduledDropPath).

    The training loop moves the probability of all such modules along its schedule; see :func:`set_drop_path`.
    """

    keep: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        # A tensor, not a number, so that compiled code need not be compiled again when it changes.
        self.register_buffer("keep", torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, ...) to (N, ...)."""
        if not self.training or not self.active:
            return x
        kept = torch.rand(x.shape[0], *([1] * (x.dim() - 1)), device=x.device) < self.keep
        return x * (kept.to(x.dtype) / self.keep)


def set_drop_path(model: nn.Module, probability: float) -> None:
    """Sets the probability with which every path of ``model`` is dropped."""
    for module in model.modules():
        if isinstance(module, DropPath):
            module.active = probability > 0
            module.keep.fill_(1 - probability)


class EdgeCell(nn.Module):
    """Runs a cell whose operations sit on its edges.

    A node is the sum of its edges. The output is the sum of what reaches it, or the concatenation over channels. A cell
    with no live path gives zeros, of the shape of its last input.
    """

    def __init__(self, cell: Cell, make: Callable[[Edge], nn.Module], *, concat: bool) -> None:
        super().__init__()
        self.cell, self.concat = cell, concat
        self.operations = nn.ModuleList(make(edge) if edge.op else nn.Identity() for edge in cell.edges)

    def forward(self, *inputs: Tensor) -> Tensor:
        """The cell's inputs, each (N, C, H, W), to its output."""
        terms: list[list[Tensor]] = [[x] for x in inputs] + [[] for _ in range(self.cell.nodes - self.cell.inputs)]
        values: list[Tensor | None] = [*inputs, *(None for _ in terms[len(inputs) :])]
        for edge, operation in zip(self.cell.edges, self.operations, strict=True):
            value = values[edge.source]
            if value is None:  # edges are sorted by target, so the sum is complete once it is read
                value = values[edge.source] = _sum(terms[edge.source], inputs[-1])
            terms[edge.target].append(operation(value))
        out = terms[self.cell.output]
        return torch.cat(out, dim=1) if self.concat and out else _sum(out, inputs[-1])


def _sum(terms: Sequence[Tensor], like: Tensor) -> Tensor:
    if not terms:
        return torch.zeros_like(like)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def vertex_channels(cell: Cell, c_in: int, c_out: int) -> list[int]:
    """Channels of each vertex of a NAS-Bench-101 cell, by the benchmark's rule.

    The output's channels are split among the vertices that are concatenated there, the first ones taking one more where
    it does not divide; a vertex that does not reach the output directly is as wide as the widest one it feeds.
    """
    channels = [c_in] + [0] * (cell.nodes - 2) + [c_out]
    joined = [edge.source for edge in cell.into(cell.output) if edge.source != 0]
    for i, vertex in enumerate(joined):
        channels[vertex] = c_out // len(joined) + (i < c_out % len(joined))
    for vertex in reversed(cell.intermediate):
        if vertex not in joined:
            fed = [edge.target for edge in cell.edges if edge.source == vertex]
            channels[vertex] = max(channels[target] for target in fed)
    return channels


class NodeCell(nn.Module):
    """Runs a NAS-Bench-101 cell: operations on vertices, pointwise projections on the edges that leave the input.

    A vertex adds what its edges bring, narrowed to its own channels; the output concatenates the vertices that reach it
    and adds the projected input where an edge joins the two.
    """

    def __init__(self, cell: Cell, c_in: int, c_out: int, norm: Norm) -> None:
        super().__init__()
        self.cell = cell
        self.channels = vertex_channels(cell, c_in, c_out)
        self.projections = nn.ModuleDict(
            {
                str(edge.target): ops.conv_norm_relu(c_in, self.channels[edge.target], 1, norm)
                for edge in cell.edges
                if edge.source == 0
            }
        )
        self.operations = nn.ModuleList(
            ops.build(op, self.channels[vertex], norm=norm)
            for vertex, op in zip(cell.intermediate, cell.ops, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) to (N, C_out, H, W)."""
        values = [x]
        for vertex, operation in zip(self.cell.intermediate, self.operations, strict=True):
            terms = [values[source][:, : self.channels[vertex]] for source in self._interior(vertex)]
            values.append(operation(_sum(self._projected(x, vertex) + terms, x)))
        interior = [values[source] for source in self._interior(self.cell.output)]
        joined = [torch.cat(interior, dim=1)] if interior else []
        return _sum(self._projected(x, self.cell.output) + joined, x)

    def _interior(self, vertex: int) -> list[int]:
        return [edge.source for edge in self.cell.into(vertex) if edge.source != 0]

    def _projected(self, x: Tensor, vertex: int) -> list[Tensor]:
        name = str(vertex)
        return [self.projections[name](x)] if name in self.projections else []
