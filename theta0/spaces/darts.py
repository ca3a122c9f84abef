"""The DARTS space (Liu et al., ICLR 2019): a normal and a reduction cell, each of four nodes with two inputs.

    Genotype(normal=[('sep_conv_3x3', 0), ...], normal_concat=[2, 3, 4, 5], reduce=[...], reduce_concat=[2, 3, 4, 5])

lists two (operation, source) pairs for each node from 2 on. Seven operations, without ``none`` (NASI, appendix B.2):
1,037,664,180 cells of each kind. The notation, the networks and the measures also take cells that are not in the space
but made alike, such as NASNet's with five nodes; :mod:`theta0.spaces.catalogue` has the published ones by name.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from theta0 import space
from theta0.errors import ParseError, Theta0Error, nearest
from theta0.graph import Cell, Edge, neighbours
from theta0.isomorphism import canonical
from theta0.space import Choice, Space, Supercell, spaces

if TYPE_CHECKING:
    from torch import nn

    from theta0.ops import Norm

OPERATIONS = (
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
PUBLISHED = (*OPERATIONS, "sep_conv_7x7", "conv_7x1_1x7")
"""What the notation takes: the candidates, and the operations of NASNet and AmoebaNet beside them."""
INPUTS, NODES = 2, 4
KINDS = ("normal", "reduce")


class Genotype(NamedTuple):
    """An architecture: the cell that keeps the resolution and the cell that halves it."""

    normal: Cell
    reduce: Cell


@dataclass(frozen=True)
class Skeleton(space.Skeleton):
    """The stack of cells; ``large`` is the ImageNet stem, ``max_flops`` a limit of multiply-adds to build by.

    ``pooled``: reduction cells max-pool their inputs, and their operations keep the resolution, as when NASI searches.
    """

    channels: int = 36
    layers: int = 20
    large: bool = False
    auxiliary: bool = False
    affine: bool = True
    track: bool = True
    max_flops: int | None = None
    pooled: bool = False


@spaces.register("darts")
class DARTS(Space[Genotype]):
    """Architectures are pairs of cells whose output concatenates the nodes."""

    name = "darts"
    identity: ClassVar[frozenset[str]] = frozenset({"skip_connect"})
    title = "DARTS: normal and reduction cell, 7 operations, 4 nodes of 2 inputs"
    skeletons = {
        "cifar": Skeleton(),
        "imagenet": Skeleton(
            shape=(3, 224, 224), classes=1000, channels=46, layers=14, large=True, max_flops=600_000_000
        ),
        "search": Skeleton(channels=16, layers=8, affine=False),
        "nasi": Skeleton(channels=16, layers=8, affine=False, pooled=True),
    }
    choices = tuple(
        choice
        for kind in KINDS
        for node in range(INPUTS, INPUTS + NODES)
        for choice in (
            Choice(f"{kind} {node} inputs", tuple(itertools.combinations(range(node), 2))),
            Choice(f"{kind} {node} first", OPERATIONS),
            Choice(f"{kind} {node} second", OPERATIONS),
        )
    )

    def decode(self, codes: Sequence[int]) -> Genotype:
        """The genotype of two sources and two operations for each node."""
        values = [choice.candidates[code] for choice, code in zip(self.choices, codes, strict=True)]
        cells = []
        for start in (0, 3 * NODES):
            pairs = []
            for i in range(start, start + 3 * NODES, 3):
                pairs.append(list(zip(values[i + 1 : i + 3], values[i], strict=True)))
            cells.append(make_cell(pairs))
        return Genotype(*cells)

    def encode(self, architecture: Genotype) -> tuple[int, ...]:
        """The codes of sources and operations."""
        values = [
            value
            for cell in architecture
            for node in cell.intermediate
            for value in (tuple(e.source for e in cell.into(node)), *(e.op for e in cell.into(node)))
        ]
        if not self.holds(architecture):
            raise Theta0Error(
                f"{self.format(architecture)} is not in the space darts: it asks for {NODES} nodes with two different "
                f"sources, all of them in the output, and the operations {', '.join(OPERATIONS)}"
            )
        return tuple(choice.candidates.index(value) for choice, value in zip(self.choices, values, strict=True))

    def holds(self, architecture: Genotype) -> bool:
        """Whether a genotype is one of the space's, and not only made alike."""
        return all(
            (cell.inputs, cell.nodes) == (INPUTS, INPUTS + NODES + 1)
            and [edge.source for edge in cell.into(cell.output)] == list(cell.intermediate)
            and all(
                len({edge.source for edge in cell.into(node)}) == 2 == len(cell.into(node))
                for node in cell.intermediate
            )
            and all(edge.op in OPERATIONS for edge in cell.edges if edge.target != cell.output)
            for cell in architecture
        )

    def neighbours(self, architecture: Genotype) -> Iterator[Genotype]:
        """Genotypes that differ in one operation or one source of one cell."""
        for kind in KINDS:
            for cell in neighbours(getattr(architecture, kind), OPERATIONS):
                yield architecture._replace(**{kind: cell})

    def canonical(self, architecture: Genotype) -> Hashable:
        """The canonical graphs of the two cells; in the reduction cell a skip from an input has weights."""
        return Genotype(*(_canonical(cell, kind == "reduce") for kind, cell in zip(KINDS, architecture, strict=True)))

    def format(self, architecture: Genotype) -> str:
        """The notation of the DARTS code."""
        parts = []
        for kind, cell in zip(KINDS, architecture, strict=True):
            pairs = [(edge.op, edge.source) for edge in cell.edges if edge.target != cell.output]
            parts += [f"{kind}={pairs}", f"{kind}_concat={[edge.source for edge in cell.into(cell.output)]}"]
        return f"Genotype({', '.join(parts)})"

    @property
    def notation(self) -> str:
        """The second-order DARTS cells."""
        return self.format(self.parse("DARTS_V2"))

    def parse(self, text: str) -> Genotype:
        """The genotype of a text in the DARTS notation, or of the name of a published one."""
        if re.fullmatch(r"\s*[\w.-]+\s*", text):
            from theta0.spaces.catalogue import CATALOGUE

            name = text.strip().lower().replace("-", "_")
            known = {entry.lower(): genotype for entry, genotype in CATALOGUE.items()}
            if name not in known:
                raise Theta0Error(f"no published cell is called {text.strip()!r}; {nearest(name, CATALOGUE)}")
            return known[name]
        return _parse(text)

    def cells(self, architecture: Genotype) -> dict[str, Cell]:
        """The two cells."""
        return architecture._asdict()

    def supercells(self) -> dict[str, Supercell]:
        """All operations between all pairs of nodes, in both cells."""
        output = INPUTS + NODES
        pairs = {(s, t): OPERATIONS for t in range(INPUTS, output) for s in range(t)}
        collected = {(node, output): ("",) for node in range(INPUTS, output)}
        keeps = dict.fromkeys(range(INPUTS, output), 2)
        return {kind: Supercell(INPUTS, output + 1, {**pairs, **collected}, keeps=keeps) for kind in KINDS}

    def from_cells(self, cells: Mapping[str, Cell]) -> Genotype:
        """The two cells."""
        return Genotype(**cells)

    def supernet(self, skeleton: Skeleton, partial: int = 1) -> nn.Module:
        """The stack of cells that hold all operations on all edges."""
        from theta0.network.darts import edge_maker
        from theta0.supernet.cells import MixedCell

        supercells = self.supercells()

        def make_cell(i: int, channels: int, reduction: bool, norm: Norm) -> nn.Module:
            kind = "reduce" if reduction else "normal"
            strided = reduction and not skeleton.pooled
            make = edge_maker(INPUTS, channels // partial, strided, norm)
            stride = 2 if strided else 1
            return MixedCell(supercells[kind], make, name=kind, concat=True, partial=partial, stride=stride)

        return stacked(make_cell, [NODES] * skeleton.layers, skeleton)

    def network(self, architecture: Genotype, skeleton: Skeleton) -> nn.Module:
        """The evaluation network, or the search network, by the skeleton."""
        if skeleton.max_flops is not None:
            self._check_flops(architecture, skeleton)
        reductions = (skeleton.layers // 3, 2 * skeleton.layers // 3)
        return stack(
            [architecture.reduce if i in reductions else architecture.normal for i in range(skeleton.layers)], skeleton
        )

    def _check_flops(self, architecture: Genotype, skeleton: Skeleton) -> None:
        free = replace(skeleton, max_flops=None)
        limit, flops = skeleton.max_flops, self.measure(architecture, free).flops
        if limit is None or flops < limit:
            return
        for channels in range(skeleton.channels - 2, 0, -2):
            if self.measure(architecture, free, channels=channels).flops < limit:
                way_out = f"channels={channels} fits"
                break
        else:
            way_out = "no number of channels fits"
        raise Theta0Error(
            f"{flops:,} multiply-adds with {skeleton.channels} channels, but the limit max_flops is {limit:,}; "
            f"{way_out}"
        )


def make_cell(pairs: Sequence[Sequence[tuple[str, int]]], concat: Sequence[int] | None = None) -> Cell:
    """The cell whose node 2 + i adds the (operation, source) ``pairs[i]`` and whose output concatenates ``concat``."""
    output = INPUTS + len(pairs)
    edges = [Edge(source, INPUTS + i, op) for i, node in enumerate(pairs) for op, source in node]
    edges += [Edge(node, output) for node in (range(INPUTS, output) if concat is None else concat)]
    return Cell(INPUTS, output + 1, tuple(edges))


def stack(cells: Sequence[Cell], skeleton: Skeleton) -> nn.Module:
    """The network of these cells, one after the other; those at a third and two thirds halve the resolution."""
    from theta0.network.darts import make_edge_cell

    def make_cell(i: int, channels: int, reduction: bool, norm: Norm) -> nn.Module:
        return make_edge_cell(cells[i], channels, reduction and not skeleton.pooled, norm)

    return stacked(make_cell, [len(cell.into(cell.output)) for cell in cells], skeleton)


def stacked(
    make_cell: Callable[[int, int, bool, Norm], nn.Module], multipliers: Sequence[int], skeleton: Skeleton
) -> nn.Module:
    """The network of what ``make_cell`` gives for the number of a cell, its channels and whether it reduces."""
    from theta0 import ops
    from theta0.network.darts import DartsNetwork

    if len(multipliers) < 3:
        raise Theta0Error(f"a stack of {len(multipliers)} cells has no place for two reductions; use at least 3 layers")
    norm = ops.batch_norm(affine=skeleton.affine, track=skeleton.track)
    return DartsNetwork(
        lambda i, channels, reduction: make_cell(i, channels, reduction, norm),
        multipliers,
        skeleton.shape,
        skeleton.classes,
        skeleton.channels,
        large=skeleton.large,
        auxiliary=skeleton.auxiliary,
        pooled=skeleton.pooled,
        norm=norm,
    )


def _canonical(cell: Cell, reduction: bool) -> Cell:
    def identity(edge: Edge) -> bool:
        return edge.op == "skip_connect" and not (reduction and edge.source < cell.inputs)

    return canonical(cell, identity=identity, weightless={"max_pool_3x3", "avg_pool_3x3"})


def _parse(text: str) -> Genotype:
    """Reads the notation with Python's own parser, which gives the positions; nothing is evaluated."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ParseError(
            text, max(0, min((error.offset or 1) - 1, len(text))), "Genotype(normal=[...], ...)"
        ) from error
    shift = len(text) - len(text.lstrip())
    lines = [0, *itertools.accumulate(len(line) for line in text.strip().splitlines(keepends=True))]

    def wrong(node: ast.AST, expected: str) -> ParseError:
        position = lines[getattr(node, "lineno", 1) - 1] + getattr(node, "col_offset", 0) + shift
        return ParseError(text, position, expected)

    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Genotype"):
        raise wrong(call, "Genotype(normal=[...], normal_concat=[...], reduce=[...], reduce_concat=[...])")
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = {f"{kind}{part}" for kind in KINDS for part in ("", "_concat")}
    if set(given) != wanted or call.args:
        raise wrong(call, f"Genotype with {', '.join(sorted(wanted))} by name")

    def integers(node: ast.AST) -> list[int]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            return list(range(*(integer(argument) for argument in node.args)))
        if not isinstance(node, ast.List | ast.Tuple):
            raise wrong(node, "a list of node numbers, or range(first, last)")
        return [integer(element) for element in node.elts]

    def integer(node: ast.AST, below: int = 1000) -> int:
        if not (isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < below):
            raise wrong(node, f"a node number below {below}")
        return node.value

    def cell(kind: str) -> Cell:
        listed = given[kind]
        if not isinstance(listed, ast.List | ast.Tuple) or len(listed.elts) % 2 or not listed.elts:
            raise wrong(listed, "two (operation, source) pairs for each node")
        pairs = []
        for i, element in enumerate(listed.elts):
            if not (isinstance(element, ast.Tuple | ast.List) and len(element.elts) == 2):
                raise wrong(element, "an (operation, source) pair")
            op, source = element.elts
            if not (isinstance(op, ast.Constant) and op.value in PUBLISHED):
                raise wrong(op, f"one of {', '.join(PUBLISHED)}")
            pairs.append((str(op.value), integer(source, INPUTS + i // 2)))
        concat = integers(given[f"{kind}_concat"])
        output = INPUTS + len(pairs) // 2
        if not concat or len(set(concat)) < len(concat) or not set(concat) <= set(range(INPUTS, output)):
            raise wrong(given[f"{kind}_concat"], f"different nodes from {INPUTS} to {output - 1}")
        return make_cell([pairs[i : i + 2] for i in range(0, len(pairs), 2)], concat)

    return Genotype(cell("normal"), cell("reduce"))
