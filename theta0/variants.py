"""Variants of a cell for the study of its topology (thesis 4.3.1, 4.4 and A.1.2).

Random connections keep the order of the nodes and the operations; random operations keep the connections; the widest
and shallowest adaptation reads every operation from the inputs, the pattern of the SNAS cell in Figure 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from theta0.errors import Theta0Error
from theta0.graph import Cell, Edge


def random_connections(cell: Cell, generator: np.random.Generator, *, distinct: bool = False) -> Cell:
    """``cell`` with the source of every operation drawn uniformly from the nodes before its target.

    ``distinct`` draws the sources of one node without replacement, as the DARTS space asks; appendix A.1.2 draws each
    operation's source on its own. Nodes that nothing reads any more are collected by the output, as NASNet does.
    """
    edges: list[Edge] = []
    for node in range(cell.inputs, cell.nodes):
        into = [edge for edge in cell.into(node) if _operates(cell, edge)]
        if distinct and len(into) > node:
            raise Theta0Error(
                f"node {node} has {len(into)} connections but only {node} nodes before it; use distinct=False"
            )
        if into:
            sources = generator.choice(node, size=len(into), replace=not distinct).tolist()
            edges += [edge._replace(source=source) for edge, source in zip(into, sources, strict=True)]
    return _collected(cell, edges)


def random_operations(cell: Cell, candidates: Sequence[str], generator: np.random.Generator) -> Cell:
    """``cell`` with every operation drawn uniformly from ``candidates``; the connections stay."""
    names = [candidates[i] for i in generator.integers(len(candidates), size=len(cell.edges) + len(cell.ops))]
    edges = tuple(edge._replace(op=name) if edge.op else edge for edge, name in zip(cell.edges, names, strict=False))
    return Cell(cell.inputs, cell.nodes, edges, tuple(names[len(cell.edges) :]))


def widest(cell: Cell, *, collect: bool = False) -> Cell:
    """The widest and shallowest adaptation: every operation keeps its node and reads one of the inputs, in turn.

    The output reads what it read before, as in the thesis: nodes of AmoebaNet that fed other nodes are left loose, so
    that its adapted cell has width 3c (Figure 4.26). ``collect`` adds them to the output; width is then the number of
    intermediate nodes, the largest of the cell's space.
    """
    if cell.ops or not cell.intermediate or any(edge.op and edge.target == cell.output for edge in cell.edges):
        raise Theta0Error(
            f"cannot widen {cell}: the adaptation is for cells whose operations sit on edges into intermediate nodes "
            f"and whose output only collects them, as in the DARTS space"
        )
    edges = [
        edge._replace(source=i % cell.inputs) for node in cell.intermediate for i, edge in enumerate(cell.into(node))
    ]
    return _collected(cell, edges) if collect else Cell(cell.inputs, cell.nodes, (*edges, *cell.into(cell.output)))


def _operates(cell: Cell, edge: Edge) -> bool:
    """Whether an edge leads to an operation, and is not one by which the output only collects results."""
    return bool(edge.op) or (bool(cell.ops) and edge.target != cell.output)


def _collected(cell: Cell, edges: list[Edge]) -> Cell:
    """A cell of ``edges`` whose output collects what it did before, and every node that nothing reads any more."""
    kept = [edge for edge in cell.into(cell.output) if not _operates(cell, edge)]
    read = {edge.source for edge in (*edges, *kept)}
    loose = [Edge(node, cell.output) for node in cell.intermediate if kept and node not in read]
    return Cell(cell.inputs, cell.nodes, (*edges, *kept, *loose), cell.ops)
