"""NAS-Bench-201 (Dong and Yang, ICLR 2020): a cell of four nodes, an operation on each of its six edges.

    |nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|

names, node by node, the operation on the edge from each earlier node. 5^6 = 15,625 cells.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from theta0 import space
from theta0.errors import ParseError
from theta0.graph import Cell, Edge
from theta0.isomorphism import canonical
from theta0.space import Choice, Measured, Space, Supercell, spaces

if TYPE_CHECKING:
    from torch import nn

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
PAIRS = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))


@dataclass(frozen=True)
class Skeleton(space.Skeleton):
    """The benchmark's skeleton; ``cells`` is its N. ``live`` leaves out what cannot reach the cell's output."""

    channels: int = 16
    cells: int = 5
    affine: bool = True
    track: bool = True
    live: bool = False


@spaces.register("nasbench201")
class NASBench201(Space[Cell]):
    """Architectures are cells with one input; every edge is there, ``none`` included."""

    name = "nasbench201"
    title = "NAS-Bench-201: 4-node cell, 5 operations on 6 edges"
    choices = tuple(Choice(f"{source}->{target}", OPERATIONS) for source, target in PAIRS)
    skeletons = {"paper": Skeleton(), "search": Skeleton(affine=False, track=False)}
    zero: ClassVar[frozenset[str]] = frozenset({"none"})
    identity: ClassVar[frozenset[str]] = frozenset({"skip_connect"})

    def __iter__(self) -> Iterator[Cell]:
        """All cells."""
        return (self.decode(codes) for codes in itertools.product(range(len(OPERATIONS)), repeat=len(PAIRS)))

    def decode(self, codes: Sequence[int]) -> Cell:
        """The cell with operation ``codes[i]`` on edge i, edges in the order of the notation."""
        return Cell(1, 4, tuple(Edge(*pair, OPERATIONS[code]) for pair, code in zip(PAIRS, codes, strict=True)))

    def encode(self, architecture: Cell) -> tuple[int, ...]:
        """The number of the operation on each edge."""
        return tuple(OPERATIONS.index(edge.op) for edge in architecture.edges)

    def format(self, architecture: Cell) -> str:
        """The benchmark's string."""
        nodes = ("".join(f"{op}~{source}|" for source, _, op in architecture.into(node)) for node in (1, 2, 3))
        return "+".join(f"|{node}" for node in nodes)

    @property
    def notation(self) -> str:
        """The cell of best mean test accuracy on CIFAR-100."""
        return "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"

    def parse(self, text: str) -> Cell:
        """The cell of the benchmark's string."""
        position, edges = 0, []

        def take(pattern: str, expected: str) -> str:
            nonlocal position
            found = re.compile(pattern).match(text, position)
            if not found:
                raise ParseError(text, position, expected)
            position = found.end()
            return found.group()

        for target in (1, 2, 3):
            take(r"\|" if target == 1 else r"\+\|", "'|'" if target == 1 else "'+|'")
            for source in range(target):
                start = position
                op = take(r"\w+", f"one of {', '.join(OPERATIONS)}")
                if op not in OPERATIONS:
                    raise ParseError(text, start, f"one of {', '.join(OPERATIONS)}")
                take(rf"~{source}\|", f"'~{source}|'")
                edges.append(Edge(source, target, op))
        if position < len(text):
            raise ParseError(text, position, "the end")
        return Cell(1, 4, tuple(edges))

    def canonical(self, architecture: Cell) -> Hashable:
        """The graph of live operations; equal exactly for cells that build the same network at theta_0.

        There are 5,260 of them. The benchmark's own count is coarser in one way and finer in another, see
        :func:`published_topology`.
        """
        return canonical(
            architecture,
            zero=self.zero,
            identity=lambda edge: edge.op == "skip_connect",
            weightless={"avg_pool_3x3"},
        )

    def cells(self, architecture: Cell) -> dict[str, Cell]:
        """The one cell."""
        return {"cell": architecture}

    def supercells(self) -> dict[str, Supercell]:
        """All operations on all edges."""
        return {"cell": Supercell(1, 4, dict.fromkeys(PAIRS, OPERATIONS))}

    def from_cells(self, cells: Mapping[str, Cell]) -> Cell:
        """The one cell."""
        return cells["cell"]

    def supernet(self, skeleton: Skeleton, partial: int = 1) -> nn.Module:
        """The benchmark's network of cells that hold all operations."""
        from theta0.supernet.cells import MixedCell

        (supercell,) = self.supercells().values()
        return self._stacked(lambda make: MixedCell(supercell, make, partial=partial), skeleton, partial)

    def network(self, architecture: Cell, skeleton: Skeleton) -> nn.Module:
        """The benchmark's network."""
        from theta0.graph import live
        from theta0.network.cells import EdgeCell

        cell = live(architecture, self.zero) if skeleton.live else architecture
        return self._stacked(lambda make: EdgeCell(cell, make, concat=False), skeleton)

    def _stacked(
        self, make_cell: Callable[[Callable[[Edge], nn.Module]], nn.Module], skeleton: Skeleton, partial: int = 1
    ) -> nn.Module:
        """``make_cell`` gives a cell for a maker of operations."""
        from theta0 import ops
        from theta0.network.nasbench import nasbench201

        norm = ops.batch_norm(affine=skeleton.affine, track=skeleton.track)

        def make(channels: int) -> nn.Module:
            return make_cell(lambda edge: ops.build(edge.op, channels // partial, norm=norm))

        return nasbench201(make, skeleton.shape[0], skeleton.classes, skeleton.channels, skeleton.cells, norm)

    def measure(self, architecture: Cell, skeleton: space.Skeleton | str | None = None, **changes: object) -> Measured:
        """As for any space; built once for all cells with the same operations, since all edges keep the shape."""
        options = self.options(skeleton, **changes)
        if not getattr(options, "live", False):
            architecture = self.decode(sorted(self.encode(architecture)))
        return _measured(self, architecture, options)


@cache
def _measured(of: NASBench201, cell: Cell, options: space.Skeleton) -> Measured:
    return Space.measure(of, cell, options)


def published_topology(cell: Cell) -> str:
    """The string by which the benchmark counts 6,466 distinct cells.

    It writes each node as an expression and leaves out ``skip_connect`` and ``none``, but it does not see whether two
    equal expressions share their weights, keeps zeros that other terms make irrelevant, and does not sort sums across
    nodes; tables that group cells by it (``canon_id``) inherit this.
    """
    text = ["0", "", "", ""]
    for node in (1, 2, 3):
        terms = []
        for source, _, op in cell.into(node):
            if op == "none" or text[source] == "#":
                terms.append("#")
            else:
                terms.append(text[source] if op == "skip_connect" else f"({text[source]})@{op}")
        text[node] = "+".join(sorted(terms))
    return text[3]
