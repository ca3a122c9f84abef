"""Slow and obvious versions of what the package does fast."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from theta0.graph import Cell, Edge


def renumbered(cell: Cell, order: tuple[int, ...]) -> Cell:
    """``cell`` with its intermediate nodes in another order; ``order`` lists their old numbers."""
    number = {node: node for node in range(cell.inputs)} | {cell.output: cell.output}
    number |= {old: cell.inputs + i for i, old in enumerate(order)}
    ops = tuple(cell.ops[old - cell.inputs] for old in order) if cell.ops else ()
    return Cell(cell.inputs, cell.nodes, tuple(Edge(number[s], number[t], op) for s, t, op in cell.edges), ops)


def topological_orders(cell: Cell) -> list[tuple[int, ...]]:
    """All orders of the intermediate nodes in which no edge runs backwards."""
    return [
        order
        for order in itertools.permutations(cell.intermediate)
        if all(s < cell.inputs or t == cell.output or order.index(s) < order.index(t) for s, t, _ in cell.edges)
    ]


def shuffled(cell: Cell, generator: np.random.Generator) -> Cell:
    """``cell`` with its intermediate nodes in a random topological order."""
    pending, order = list(cell.intermediate), []
    while pending:
        ready = [n for n in pending if all(e.source not in pending for e in cell.into(n))]
        order.append(ready[int(generator.integers(len(ready)))])
        pending.remove(order[-1])
    return renumbered(cell, tuple(order))


def isomorphic(first: Cell, second: Cell) -> bool:
    """Whether some renumbering of the intermediate nodes makes two cells equal; operations on nodes."""
    if (first.inputs, first.nodes, Counter(first.ops)) != (second.inputs, second.nodes, Counter(second.ops)):
        return False
    wanted = Counter(second.edges)
    inner = list(first.intermediate)
    for image in itertools.permutations(inner):
        number = dict(zip(inner, image, strict=True))
        if all(first.ops[n - first.inputs] == second.ops[number[n] - first.inputs] for n in inner) and (
            Counter(Edge(number.get(s, s), number.get(t, t), op) for s, t, op in first.edges) == wanted
        ):
            return True
    return False


def operation_graph(cell: Cell, zero: str, identity: str, weightless: str) -> Cell:
    """The live operations of an additive cell and what each reads, by following every path backwards."""

    def value(node: int) -> Counter[object]:
        if node < cell.inputs:
            return Counter({node: 1})
        total: Counter[object] = Counter()
        for i, edge in enumerate(cell.edges):
            if edge.target != node or edge.op == zero:
                continue
            if edge.op == identity:
                total += value(edge.source)
            elif read := value(edge.source):
                key = (edge.op, tuple(sorted(map(repr, read.elements()))))
                total[(edge.op, key if edge.op == weightless else i, frozenset(read.items()))] += 1
        return total

    operations: dict[object, int] = {}

    def visit(term: object) -> None:
        if isinstance(term, int) or term in operations:
            return
        for other, _ in term[2]:  # type: ignore[index]
            visit(other)
        operations[term] = cell.inputs + len(operations)

    output = value(cell.output)
    for term in output:
        visit(term)
    number = lambda term: term if isinstance(term, int) else operations[term]  # noqa: E731
    last = cell.inputs + len(operations)
    edges = [Edge(number(o), n) for term, n in operations.items() for o, k in term[2] for _ in range(k)]  # type: ignore[index]
    edges += [Edge(number(term), last) for term in output.elements()]
    return Cell(cell.inputs, last + 1, tuple(edges), tuple(str(term[0]) for term in operations))  # type: ignore[index]
