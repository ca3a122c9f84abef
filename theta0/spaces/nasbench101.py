"""NAS-Bench-101 (Ying et al., ICML 2019): cells of at most 7 vertices and 9 edges, an operation on each inner vertex.

    [[0,1,1],[0,0,1],[0,0,0]] ["input","conv3x3-bn-relu","output"]

is the benchmark's pair of adjacency matrix and operations. A cell is kept pruned: every vertex lies on a path from the
input to the output. There are 423,624 of them up to isomorphism.

Sampling, indexing and enumeration work on the classes of unlabelled graphs, which take a second to list: a cell is a
class and a labelling of its vertices, counted once under the symmetries of the class.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from theta0 import space
from theta0.errors import ParseError, Theta0Error
from theta0.graph import Cell, Edge, live
from theta0.isomorphism import canonical
from theta0.space import Choice, Space, spaces

if TYPE_CHECKING:
    from torch import nn

    from theta0.ops import Norm

OPERATIONS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
VERTICES, EDGES = 7, 9
PAIRS = tuple((source, target) for target in range(VERTICES) for source in range(target))
"""All pairs of vertices in the benchmark's order of bits; the pairs of fewer vertices come first."""


@dataclass(frozen=True)
class Skeleton(space.Skeleton):
    """The benchmark's skeleton; momentum and epsilon of the normalisation are those of its TensorFlow code."""

    channels: int = 128
    stacks: int = 3
    cells: int = 3
    affine: bool = True
    track: bool = True


@spaces.register("nasbench101")
class NASBench101(Space[Cell]):
    """Architectures are pruned cells with one input and operations on vertices."""

    name = "nasbench101"
    title = "NAS-Bench-101: at most 7 vertices and 9 edges, 3 operations on vertices"
    choices = (
        *(Choice(f"{source}->{target}", (False, True)) for source, target in PAIRS),
        *(Choice(f"vertex {vertex}", OPERATIONS) for vertex in range(1, VERTICES - 1)),
    )
    skeletons = {"paper": Skeleton()}

    def decode(self, codes: Sequence[int]) -> Cell:
        """The pruned cell of 21 edge bits and 5 operations; some codes break the limits of the space."""
        edges = tuple(Edge(*pair) for pair, code in zip(PAIRS, codes, strict=False) if code)
        return self.pruned(Cell(1, VERTICES, edges, tuple(OPERATIONS[code] for code in codes[len(PAIRS) :])))

    def encode(self, architecture: Cell) -> tuple[int, ...]:
        """Codes of 7 vertices; vertices that a smaller cell does not have are placed before the output, unconnected."""
        joined = {(s, VERTICES - 1 if t == architecture.output else t) for s, t, _ in architecture.edges}
        ops = [OPERATIONS.index(op) for op in architecture.ops]
        return (*(int(pair in joined) for pair in PAIRS), *ops, *[0] * (VERTICES - 2 - len(ops)))

    def pruned(self, cell: Cell) -> Cell:
        """``cell`` without vertices that lie on no path, if that is a cell of this space."""
        result = live(cell)
        if not result.edges:
            raise Theta0Error("the cell has no path from input to output; a NAS-Bench-101 cell needs one")
        if result.nodes > VERTICES or len(result.edges) > EDGES:
            raise Theta0Error(
                f"a NAS-Bench-101 cell has at most {VERTICES} vertices and {EDGES} edges; "
                f"this one has {result.nodes} and {len(result.edges)}"
            )
        return result

    @property
    def size(self) -> int:
        """The number of cells up to isomorphism."""
        return _offsets()[-1]

    def __getitem__(self, index: int) -> Cell:
        """Cell number ``index`` in the order of enumeration."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} is not in 0 to {self.size - 1}")
        position = bisect.bisect_right(_offsets(), index) - 1
        graph = _classes()[position]
        return graph.cell(int(_labellings(graph)[index - _offsets()[position]]))

    def __iter__(self) -> Iterator[Cell]:
        """All cells, each class of isomorphic ones once."""
        for graph in _classes():
            for labelling in _labellings(graph):
                yield graph.cell(int(labelling))

    def sample(self, generator: np.random.Generator) -> Cell:
        """A cell, each class of isomorphic ones with the same probability."""
        return self[int(generator.integers(self.size))]

    def neighbours(self, architecture: Cell) -> Iterator[Cell]:
        """Cells with one operation exchanged, one edge added or removed, or one vertex put into an edge."""
        seen = {self.canonical(architecture)}
        for cell in self._steps(architecture):
            try:
                near = self.pruned(cell)
            except Theta0Error:  # a step out of the space
                continue
            if (key := self.canonical(near)) not in seen:
                seen.add(key)
                yield near

    def _steps(self, cell: Cell) -> Iterable[Cell]:
        for i, old in enumerate(cell.ops):
            for op in OPERATIONS:
                if op != old:
                    yield Cell(1, cell.nodes, cell.edges, (*cell.ops[:i], op, *cell.ops[i + 1 :]))
        edges = set(cell.edges)
        for pair in itertools.combinations(range(cell.nodes), 2):
            yield Cell(1, cell.nodes, tuple(edges ^ {Edge(*pair)}), cell.ops)
        for edge, op in itertools.product(cell.edges, OPERATIONS):
            new = edge.source + 1  # the new vertex follows its source; later vertices move up
            moved = [Edge(s + (s >= new), t + (t >= new)) for s, t, _ in edges - {edge}]
            through = [Edge(edge.source, new), Edge(new, edge.target + 1)]
            ops = (*cell.ops[: new - 1], op, *cell.ops[new - 1 :])
            yield Cell(1, cell.nodes + 1, (*moved, *through), ops)

    def canonical(self, architecture: Cell) -> Hashable:
        """The canonical graph; equal exactly for isomorphic cells."""
        return canonical(architecture)

    def representative(self, architecture: Cell) -> Cell:
        """The numbering of an isomorphic cell under which the benchmark trained it.

        It is the first one of the benchmark's enumeration: smallest number of edge bits, then first operations. The
        numbering matters a little, because channels that do not divide are given to the first vertices.
        """
        number = (0, *self.numbering(architecture), architecture.output)
        edges = tuple(Edge(number[source], number[target]) for source, target, _ in architecture.edges)
        ops = tuple(op for _, op in sorted(zip(number[1:-1], architecture.ops, strict=True)))
        return Cell(1, architecture.nodes, edges, ops)

    def numbering(self, architecture: Cell) -> tuple[int, ...]:
        """For each inner vertex its number in :meth:`representative`."""
        place = {pair: bit for bit, pair in enumerate(PAIRS)}
        found: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
        labels = [OPERATIONS.index(op) for op in architecture.ops]
        for inner in itertools.permutations(range(1, architecture.nodes - 1)):
            number = (0, *inner, architecture.output)
            bits = [place.get((number[s], number[t])) for s, t, _ in architecture.edges]
            if None not in bits:
                ops = tuple(label for _, label in sorted(zip(inner, labels, strict=True)))
                code = (sum(1 << bit for bit in bits if bit is not None), ops, inner)
                found = code if found is None else min(found, code)
        assert found is not None
        return found[2]

    def hash(self, architecture: Cell) -> str:
        """The benchmark's hash of a cell, by which its tables are keyed."""
        return graph_hash(architecture)

    def key(self, architecture: Cell) -> str:
        """The hash: isomorphic cells are one row of a table."""
        return graph_hash(architecture)

    def format(self, architecture: Cell) -> str:
        """Matrix and operations as the benchmark's files hold them."""
        return format_matrix(architecture)

    def parse(self, text: str) -> Cell:
        """The cell of a matrix and operations; vertices on no path are pruned, as the benchmark does."""
        return self.pruned(parse_matrix(text))

    @property
    def notation(self) -> str:
        """An example of the notation."""
        return self.format(Cell(1, 3, (Edge(0, 1), Edge(0, 2), Edge(1, 2)), OPERATIONS[:1]))

    def cells(self, architecture: Cell) -> dict[str, Cell]:
        """The one cell."""
        return {"cell": architecture}

    def network(self, architecture: Cell, skeleton: Skeleton) -> nn.Module:
        """The benchmark's network."""
        from theta0.network.cells import NodeCell

        cell = self.representative(architecture)
        return stacked(lambda c_in, c_out, norm: NodeCell(cell, c_in, c_out, norm), skeleton)


def stacked(make_cell: Callable[[int, int, Norm], nn.Module], skeleton: Skeleton) -> nn.Module:
    """The benchmark's network of the cells that ``make_cell`` gives for numbers of channels and a normalisation."""
    from theta0 import ops
    from theta0.network.nasbench import nasbench101

    norm = ops.batch_norm(affine=skeleton.affine, track=skeleton.track, momentum=0.003)
    return nasbench101(
        lambda c_in, c_out: make_cell(c_in, c_out, norm),
        skeleton.shape[0],
        skeleton.classes,
        skeleton.channels,
        skeleton.stacks,
        skeleton.cells,
        norm,
    )


def format_matrix(cell: Cell) -> str:
    """The adjacency matrix and the operations of ``cell``."""
    matrix = [[0] * cell.nodes for _ in range(cell.nodes)]
    for source, target, _ in cell.edges:
        matrix[source][target] = 1
    operations = ["input", *cell.ops, "output"]
    return json.dumps(matrix, separators=(",", ":")) + " " + json.dumps(operations, separators=(",", ":"))


def parse_matrix(text: str) -> Cell:
    """The cell that :func:`format_matrix` writes, not pruned."""
    decoder = json.JSONDecoder()

    def value(position: int, expected: str) -> tuple[list[object], int]:
        blank = re.compile(r"[\s,]*").match(text, position)
        position = blank.end() if blank else position
        try:
            found, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise ParseError(text, min(error.pos, len(text)), expected) from error
        if not isinstance(found, list):
            raise ParseError(text, position, expected)
        return found, end

    matrix, end = value(0, "an adjacency matrix such as [[0,1],[0,0]]")
    operations, last = value(end, 'operations such as ["input","conv3x3-bn-relu","output"]')
    if text[last:].strip():
        raise ParseError(text, last, "the end")
    n = len(matrix)
    rows = [row for row in matrix if isinstance(row, list) and len(row) == n and all(entry in (0, 1) for entry in row)]
    if n < 2 or len(rows) < n:
        raise ParseError(text, 0, "a square matrix of zeros and ones with at least two rows")
    ones = [(s, t) for s, row in enumerate(rows) for t, entry in enumerate(row) if entry]
    if any(s >= t for s, t in ones):
        raise ParseError(text, 0, "an upper triangular matrix (edges lead from lower to higher vertices)")
    inner = operations[1:-1]
    if len(operations) != n or operations[0] != "input" or operations[-1] != "output":
        raise ParseError(text, end, f"{n} operations that begin with 'input' and end with 'output'")
    for op in inner:
        if op not in OPERATIONS:
            place = text.find(json.dumps(op), end)
            raise ParseError(text, max(place, end), f"one of {', '.join(OPERATIONS)}")
    return Cell(1, n, tuple(Edge(s, t) for s, t in ones), tuple(str(op) for op in inner))


def graph_hash(cell: Cell) -> str:
    """The benchmark's hash: labels and degrees of the vertices, mixed with their neighbours' in as many rounds."""
    sources: list[list[int]] = [[] for _ in range(cell.nodes)]
    targets: list[list[int]] = [[] for _ in range(cell.nodes)]
    for source, target, _ in cell.edges:
        sources[target].append(source)
        targets[source].append(target)
    labels = (-1, *(OPERATIONS.index(op) for op in cell.ops), -2)
    md5 = hashlib.md5
    marks = [
        md5(f"({len(targets[v])}, {len(sources[v])}, {labels[v]})".encode()).hexdigest() for v in range(cell.nodes)
    ]
    for _ in range(cell.nodes):
        marks = [
            md5(
                (
                    "".join(sorted([marks[w] for w in sources[v]]))
                    + "|"
                    + "".join(sorted([marks[w] for w in targets[v]]))
                    + "|"
                    + marks[v]
                ).encode()
            ).hexdigest()
            for v in range(cell.nodes)
        ]
    return md5(str(sorted(marks)).encode()).hexdigest()


class _Class(NamedTuple):
    """A class of isomorphic graphs without operations, and the symmetries of its inner vertices."""

    vertices: int
    edges: tuple[Edge, ...]
    symmetries: tuple[tuple[int, ...], ...]

    def cell(self, labelling: int) -> Cell:
        """The cell whose inner vertices take the digits of ``labelling`` in base 3 as operations, first digit first."""
        digits = (labelling // 3**i % 3 for i in reversed(range(self.vertices - 2)))
        return Cell(1, self.vertices, self.edges, tuple(OPERATIONS[digit] for digit in digits))


@cache
def _classes() -> list[_Class]:
    """All unlabelled graphs of the space up to isomorphism, small ones first."""
    return [graph for vertices in range(2, VERTICES + 1) for graph in _classes_of(vertices)]


def _classes_of(n: int) -> Iterator[_Class]:
    pairs = PAIRS[: n * (n - 1) // 2]
    codes = np.arange(2 ** len(pairs), dtype=np.int64)
    codes = codes[np.bitwise_count(codes) <= EDGES]
    for vertex in range(n):  # every vertex but the input is reached, every one but the output goes on
        if vertex:
            codes = codes[(codes & _mask(pairs, target=vertex)) != 0]
        if vertex < n - 1:
            codes = codes[(codes & _mask(pairs, source=vertex)) != 0]
    # The smallest code among all renumberings of the inner vertices stands for the class.
    smallest = codes.copy()
    images = []
    for inner in itertools.permutations(range(1, n - 1)):
        image = _renumbered(codes, pairs, (0, *inner, n - 1))
        images.append((inner, image))
        np.minimum(smallest, image, out=smallest)
    for row in np.flatnonzero(smallest == codes):
        edges = tuple(Edge(*pair) for bit, pair in enumerate(pairs) if codes[row] >> bit & 1)
        symmetries = tuple(inner for inner, image in images if image[row] == codes[row])
        yield _Class(n, edges, symmetries)


def _mask(pairs: Sequence[tuple[int, int]], source: int | None = None, target: int | None = None) -> int:
    return sum(1 << bit for bit, (s, t) in enumerate(pairs) if s == source or t == target)


def _renumbered(codes: NDArray[np.int64], pairs: Sequence[tuple[int, int]], order: Sequence[int]) -> NDArray[np.int64]:
    """Codes of the graphs whose vertex v becomes ``order[v]``; the largest number where an edge would run backwards."""
    place = {pair: bit for bit, pair in enumerate(pairs)}
    image = np.zeros_like(codes)
    backwards = np.zeros(codes.shape, dtype=bool)
    for bit, (source, target) in enumerate(pairs):
        present = codes >> bit & 1
        new = place.get((order[source], order[target]))
        if new is None:
            backwards |= present.astype(bool)
        else:
            image |= present << new
    image[backwards] = np.iinfo(np.int64).max
    return image


@cache
def _labellings(graph: _Class) -> NDArray[np.int64]:
    """The labellings of a class that are smallest under its symmetries, so that each cell comes once."""
    inner = graph.vertices - 2
    codes = np.arange(3**inner, dtype=np.int64)
    weights = [3**i for i in reversed(range(inner))]
    smallest = codes.copy()
    for symmetry in graph.symmetries:
        places = (weights[vertex - 1] for vertex in symmetry)
        image = sum((codes // w % 3 * place for w, place in zip(weights, places, strict=True)), np.zeros_like(codes))
        np.minimum(smallest, image, out=smallest)
    return np.flatnonzero(smallest == codes)


@cache
def _offsets() -> list[int]:
    """For each class the number of cells before it, and at the end the number of all."""
    return [0, *itertools.accumulate(len(_labellings(graph)) for graph in _classes())]
