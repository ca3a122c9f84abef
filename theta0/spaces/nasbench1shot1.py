"""NAS-Bench-1Shot1 (Zela et al., ICLR 2020): three spaces inside NAS-Bench-101 that have a one-shot form.

Each vertex has a fixed number of parents and one of three operations. Vertices that nothing reads are loose ends: the
supernet holds them, the NAS-Bench-101 cell does not, so that several architectures map to one cell
(:meth:`NASBench1Shot1.nasbench101`). The notation is that of NAS-Bench-101, with the loose ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from theta0 import space
from theta0.errors import ParseError
from theta0.graph import Cell, Edge, live, neighbours
from theta0.space import Choice, Space, Supercell, spaces
from theta0.spaces import nasbench101
from theta0.spaces.nasbench101 import OPERATIONS, format_matrix, parse_matrix
from theta0.spaces.nasbench101 import Skeleton as NASBench101Skeleton

if TYPE_CHECKING:
    from torch import nn


class NASBench1Shot1(Space[Cell]):
    """What the three spaces share; ``parents`` counts the edges into each vertex after the input."""

    parents: ClassVar[tuple[int, ...]]
    skeletons = nasbench101.NASBench101.skeletons

    def __init__(self) -> None:
        self.choices = (
            *(
                Choice(f"parents of {vertex}", tuple(itertools.combinations(range(vertex), count)))
                for vertex, count in enumerate(self.parents, start=1)
            ),
            *(Choice(f"vertex {vertex}", OPERATIONS) for vertex in range(1, len(self.parents))),
        )

    def decode(self, codes: Sequence[int]) -> Cell:
        """The cell with these parents and operations, loose ends included."""
        vertices = len(self.parents)
        edges = (
            Edge(source, vertex)
            for vertex, code in enumerate(codes[:vertices], start=1)
            for source in self.choices[vertex - 1].candidates[code]
        )
        return Cell(1, vertices + 1, tuple(edges), tuple(OPERATIONS[code] for code in codes[vertices:]))

    def encode(self, architecture: Cell) -> tuple[int, ...]:
        """The codes of parents and operations."""
        parents = (
            choice.candidates.index(tuple(edge.source for edge in architecture.into(vertex)))
            for vertex, choice in enumerate(self.choices[: len(self.parents)], start=1)
        )
        return (*parents, *(OPERATIONS.index(op) for op in architecture.ops))

    def neighbours(self, architecture: Cell) -> Iterator[Cell]:
        """Cells that differ in one operation or in one parent."""
        return neighbours(architecture, OPERATIONS)

    def nasbench101(self, architecture: Cell) -> Cell:
        """The NAS-Bench-101 cell that ``architecture`` stands for: itself without loose ends."""
        return live(architecture)

    def canonical(self, architecture: Cell) -> Hashable:
        """The canonical form of the NAS-Bench-101 cell."""
        return _parent.canonical(self.nasbench101(architecture))

    def key(self, architecture: Cell) -> str:
        """The hash of the NAS-Bench-101 cell, whose row answers."""
        return _parent.key(self.nasbench101(architecture))

    def format(self, architecture: Cell) -> str:
        """Matrix and operations."""
        return format_matrix(architecture)

    def parse(self, text: str) -> Cell:
        """The cell of a matrix and operations."""
        cell = parse_matrix(text)
        counts = tuple(len(cell.into(vertex)) for vertex in range(1, cell.nodes))
        if counts != self.parents:
            raise ParseError(text, 0, f"a cell whose vertices have {self.parents} parents, not {counts}")
        return cell

    @property
    def notation(self) -> str:
        """An example of the notation."""
        return self.format(self.decode([0] * len(self.choices)))

    def cells(self, architecture: Cell) -> dict[str, Cell]:
        """The one cell, loose ends included."""
        return {"cell": architecture}

    def supercells(self) -> dict[str, Supercell]:
        """All edges that some architecture has, all operations on all vertices."""
        inner = len(self.parents) - 1
        pairs = {
            (source, vertex): ("",)
            for vertex, choice in enumerate(self.choices[: inner + 1], start=1)
            for sources in choice.candidates
            for source in sources
        }
        keeps = dict(enumerate(self.parents, start=1))
        return {"cell": Supercell(1, inner + 2, pairs, (OPERATIONS,) * inner, keeps)}

    def from_cells(self, cells: Mapping[str, Cell]) -> Cell:
        """The one cell."""
        return cells["cell"]

    def supernet(self, skeleton: NASBench101Skeleton, partial: int = 1) -> nn.Module:
        """The NAS-Bench-101 network of cells that hold all vertices, operations and edges."""
        from theta0.supernet.nodes import MixedNodeCell

        (supercell,) = self.supercells().values()
        return nasbench101.stacked(
            lambda c_in, c_out, norm: MixedNodeCell(supercell, c_in, c_out, norm, _parent.numbering, partial=partial),
            skeleton,
        )

    def network(self, architecture: Cell, skeleton: space.Skeleton) -> nn.Module:
        """The NAS-Bench-101 network of the cell without loose ends."""
        return _parent.build(self.nasbench101(architecture), skeleton)


_parent = nasbench101.NASBench101()


@spaces.register("nasbench1shot1_1")
class NASBench1Shot1S1(NASBench1Shot1):
    """Search space 1."""

    name = "nasbench1shot1_1"
    title = "NAS-Bench-1Shot1, space 1: 4 vertices with 1, 2, 2, 2 parents, output with 2"
    parents = (1, 2, 2, 2, 2)


@spaces.register("nasbench1shot1_2")
class NASBench1Shot1S2(NASBench1Shot1):
    """Search space 2."""

    name = "nasbench1shot1_2"
    title = "NAS-Bench-1Shot1, space 2: 4 vertices with 1, 1, 2, 2 parents, output with 3"
    parents = (1, 1, 2, 2, 3)


@spaces.register("nasbench1shot1_3")
class NASBench1Shot1S3(NASBench1Shot1):
    """Search space 3."""

    name = "nasbench1shot1_3"
    title = "NAS-Bench-1Shot1, space 3: 5 vertices with 1, 1, 1, 2, 2 parents, output with 2"
    parents = (1, 1, 1, 2, 2, 2)
