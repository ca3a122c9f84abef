"""A cell: a frozen directed acyclic graph whose operations sit on its edges or on its nodes.

Nodes are numbered in topological order: first the inputs (the outputs of preceding cells), then the intermediate nodes,
last the output. A node holds the sum of what its edges carry. Two edges may join the same nodes, because published
cells do so: NASNet feeds one input twice into a node.

    >>> cell = Cell.parse("2 in; 2 = sep_conv(0) + skip(1); 3 = dil_conv(1) + skip(2); out = 2 + 3")
    >>> width(cell), depth(cell)
    (1.5, 3)

With operations on nodes the same text reads ``1 in; 1:conv3x3 = 0; 2:maxpool3x3 = 0 + 1; out = 1 + 2``; a node without
edges is ``2 = ()``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from theta0.errors import ParseError, Theta0Error


class Edge(NamedTuple):
    """A connection; ``op`` is empty where the edge only passes its value on."""

    source: int
    target: int
    op: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A labelled graph of ``nodes`` nodes: ``inputs`` inputs, the intermediate ones, one output (the last).

    ``ops`` has one operation for each intermediate node where operations sit on nodes, and is empty otherwise.
    Edges are kept sorted by target, source and operation, so that equal graphs with equal numbering are equal objects.
    """

    inputs: int
    nodes: int
    edges: tuple[Edge, ...]
    ops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        edges = tuple(
            sorted((Edge(*edge) for edge in self.edges), key=lambda edge: (edge.target, edge.source, edge.op))
        )
        object.__setattr__(self, "edges", edges)
        if self.inputs < 1 or self.nodes < self.inputs + 1:
            raise Theta0Error(
                f"a cell needs an input and an output; {self.inputs} inputs among {self.nodes} nodes leave none"
            )
        for source, target, op in edges:
            if not 0 <= source < target < self.nodes or target < self.inputs:
                raise Theta0Error(
                    f"edge {source} -> {target} ({op or 'no operation'}) does not fit: sources come before targets, "
                    f"targets are nodes {self.inputs} to {self.nodes - 1}"
                )
        if self.ops and len(self.ops) != len(self.intermediate):
            raise Theta0Error(
                f"{len(self.ops)} node operations for {len(self.intermediate)} intermediate nodes; give one for each"
            )

    @property
    def output(self) -> int:
        """The number of the output node."""
        return self.nodes - 1

    @property
    def intermediate(self) -> range:
        """The numbers of the intermediate nodes."""
        return range(self.inputs, self.nodes - 1)

    def into(self, node: int) -> list[Edge]:
        """The edges that end in ``node``."""
        return [edge for edge in self.edges if edge.target == node]

    def __str__(self) -> str:
        statements = [f"{self.inputs} in"]
        for node in range(self.inputs, self.nodes):
            name = "out" if node == self.output else str(node)
            label = f":{self.ops[node - self.inputs]}" if self.ops and node != self.output else ""
            terms = [f"{op}({source})" if op else str(source) for source, _, op in self.into(node)]
            statements.append(f"{name}{label} = {' + '.join(terms) or '()'}")
        return "; ".join(statements)

    @classmethod
    def parse(cls, text: str) -> Cell:
        """The cell that ``str`` writes; a :class:`ParseError` tells where the text is wrong."""
        return _Parser(text).cell()


def live(cell: Cell, zero: Collection[str] = ()) -> Cell:
    """The part of ``cell`` that carries values from an input to the output, numbered anew.

    Edges whose operation is in ``zero`` are dropped first. A cell that joins nothing to its output has no edges left.
    """
    edges = [edge for edge in cell.edges if edge.op not in zero]
    reached = set(range(cell.inputs))
    for edge in edges:  # sorted by target, so every source was decided before
        if edge.source in reached:
            reached.add(edge.target)
    used = {cell.output}
    for edge in reversed(edges):
        if edge.target in used:
            used.add(edge.source)
    kept = [*range(cell.inputs), *(n for n in cell.intermediate if n in reached and n in used), cell.output]
    number = {node: i for i, node in enumerate(kept)}
    return Cell(
        cell.inputs,
        len(kept),
        tuple(Edge(number[s], number[t], op) for s, t, op in edges if s in number and t in number and s in reached),
        tuple(op for node, op in zip(cell.intermediate, cell.ops, strict=False) if node in number),
    )


def depth(cell: Cell, zero: Collection[str] = ()) -> int:
    """Connections along the longest path from an input to the output (thesis 4.2.2); 0 for a dead cell."""
    longest = [0] * cell.nodes
    graph = live(cell, zero)
    for source, target, _ in graph.edges:
        longest[target] = max(longest[target], longest[source] + 1)
    return longest[graph.output]


def width(cell: Cell, zero: Collection[str] = ()) -> float:
    """Width in units of one node's width c (thesis 4.2.2).

    Every intermediate node counts with the share of its connections that come from the cell's inputs.
    """
    graph = live(cell, zero)
    total = 0.0
    for node in graph.intermediate:
        sources = [edge.source for edge in graph.into(node)]
        total += sum(source < graph.inputs for source in sources) / len(sources)
    return total


def neighbours(cell: Cell, candidates: Sequence[str]) -> Iterator[Cell]:
    """All cells that differ in one operation or in the source of one connection.

    Sources of a node stay distinct where they are distinct in ``cell``. Where operations sit on edges, an edge without
    one only collects results for the output and stays.
    """
    for i, edge in enumerate(cell.edges):
        rest = cell.edges[:i] + cell.edges[i + 1 :]
        if edge.op:
            for op in candidates:
                if op != edge.op:
                    yield Cell(cell.inputs, cell.nodes, (*rest, edge._replace(op=op)), cell.ops)
        if edge.op or cell.ops:
            taken = {other.source for other in rest if other.target == edge.target}
            if edge.source in taken:  # a doubled source: any other may take its place
                taken = {edge.source}
            for source in range(edge.target):
                if source != edge.source and source not in taken:
                    yield Cell(cell.inputs, cell.nodes, (*rest, edge._replace(source=source)), cell.ops)
    for i, old in enumerate(cell.ops):
        for op in candidates:
            if op != old:
                yield Cell(cell.inputs, cell.nodes, cell.edges, (*cell.ops[:i], op, *cell.ops[i + 1 :]))


class _Parser:
    """Recursive descent over the text of a cell; keeps the position for messages."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def take(self, pattern: str, expected: str) -> str:
        blank = re.compile(r"\s*").match(self.text, self.position)
        self.position = blank.end() if blank else self.position
        found = re.compile(pattern).match(self.text, self.position)
        if not found:
            raise ParseError(self.text, self.position, expected)
        self.position = found.end()
        return found.group()

    def follows(self, pattern: str) -> bool:
        return re.compile(r"\s*" + pattern).match(self.text, self.position) is not None

    def node(self, limit: int, expected: str) -> int:
        token = self.take(r"\d+", expected)
        if int(token) >= limit:
            raise ParseError(self.text, self.position - len(token), expected)
        return int(token)

    def cell(self) -> Cell:
        inputs = self.node(1_000_000, "the number of inputs")
        self.take(r"in\b", "'in'")
        node, edges, ops, finished = inputs, list[Edge](), list[str](), False
        while not finished:
            self.take(";", "';' and the next node")
            token = self.take(r"out\b|\d+", f"node {node} or 'out'")
            start = self.position - len(token)
            finished = token == "out"
            if not finished and int(token) != node:
                raise ParseError(self.text, start, f"node {node} or 'out'")
            if not finished and self.follows(":"):
                self.take(":", "':'")
                ops.append(self.operation())
            if ops and not finished and len(ops) != node - inputs + 1:
                raise ParseError(
                    self.text, start, f"an operation for each of the nodes {inputs} to {node}, or for none"
                )
            self.take("=", "'='")
            edges.extend(Edge(source, node, op) for source, op in self.terms(node))
            node += 1
        if self.follows(r"\S"):
            self.take(r"$", "the end")
        try:
            return Cell(inputs, node, tuple(edges), tuple(ops))
        except Theta0Error as error:
            raise ParseError(self.text, 0, f"a cell ({error})") from error

    def terms(self, node: int) -> Iterable[tuple[int, str]]:
        if self.follows(r"\(\s*\)"):
            self.take(r"\(\s*\)", "'()'")
            return
        while True:
            if self.follows(r"\d"):
                yield self.node(node, f"a node before {node}"), ""
            else:
                op = self.operation()
                self.take(r"\(", "'('")
                yield self.node(node, f"a node before {node}"), op
                self.take(r"\)", "')'")
            if not self.follows(r"\+"):
                return
            self.take(r"\+", "'+'")

    def operation(self) -> str:
        return self.take(r"[A-Za-z_][\w.\-]*", "an operation or a node number")
