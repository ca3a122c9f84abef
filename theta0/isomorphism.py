"""The canonical form of a cell: one graph for all cells that build the same network up to the names of its parts.

A node holds a sum, so an edge that passes its value on unchanged only adds to the next sum, and an edge that carries
zero adds nothing. What remains are the operations themselves, each with the sum of operations and inputs that it
reads. :func:`canonical` writes a cell as this graph of operations (a node for each live operation), numbered so that
isomorphic graphs come out equal: colour refinement first, then individualization where colours tie.

    >>> first = Cell.parse("1 in; 1 = conv(0); 2 = skip(1); out = pool(2)")
    >>> second = Cell.parse("1 in; 1 = conv(0) + none(0); 2 = none(1); out = pool(1) + conv(2)")
    >>> canonical(first, zero={"none"}, identity=lambda edge: edge.op == "skip") == canonical(
    ...     second, zero={"none"}, identity=lambda edge: edge.op == "skip")
    True

Operations that share an input and those that read separate copies of it stay apart: they train different weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from theta0.graph import Cell, Edge, live


def canonical(
    cell: Cell,
    *,
    zero: Collection[str] = (),
    identity: Callable[[Edge], bool] = lambda edge: not edge.op,
    weightless: Collection[str] = (),
) -> Cell:
    """The canonical graph of operations of ``cell``, with operations on nodes.

    ``zero`` names the operations that give zero, ``weightless`` those that have no weights, so that two of them on one
    value are one; ``identity`` tells which edges pass their value on unchanged. An edge without a name that is no
    identity is called ``concat``. Inputs keep their order, since they carry different values. A cell without a live
    path to its output has no edges.
    """
    graph = live(cell, zero)
    return _renumbered(graph if graph.ops else _operations(graph, identity, weightless))


def _operations(cell: Cell, identity: Callable[[Edge], bool], weightless: Collection[str]) -> Cell:
    """The graph of operations: a node for each edge that is not an identity; sums are expanded."""
    terms: list[list[int]] = [[node] for node in range(cell.inputs)] + [[] for _ in range(cell.nodes - cell.inputs)]
    labels: list[str] = []
    edges: list[tuple[int, int]] = []
    known: dict[tuple[str, tuple[int, ...]], int] = {}
    for edge in cell.edges:  # sorted by target: the source's terms are complete
        read = terms[edge.source]
        if identity(edge):
            terms[edge.target] += read
            continue
        value = (edge.op, tuple(sorted(read)))
        node = known.get(value) if edge.op in weightless else None
        if node is None:
            node = known[value] = cell.inputs + len(labels)
            labels.append(edge.op or "concat")
            edges += [(term, node) for term in read]
        terms[edge.target].append(node)
    output = cell.inputs + len(labels)
    edges += [(term, output) for term in terms[cell.output]]
    return Cell(cell.inputs, output + 1, tuple(Edge(s, t) for s, t in edges), tuple(labels))


def _renumbered(cell: Cell) -> Cell:
    """``cell`` (operations on nodes) with its intermediate nodes in canonical order."""
    sources: list[list[int]] = [[] for _ in range(cell.nodes)]
    targets: list[list[int]] = [[] for _ in range(cell.nodes)]
    level = [0] * cell.nodes
    for source, target, _ in cell.edges:
        sources[target].append(source)
        targets[source].append(target)
        level[target] = max(level[target], level[source] + 1)
    # Level first: an order by colour is then a topological order. Inputs are told apart by their number.
    start: list[Hashable] = [(0, "", node) for node in range(cell.inputs)]
    start += [(level[node], cell.ops[node - cell.inputs], -1) for node in cell.intermediate]
    start.append((cell.nodes, "", -1))
    best: tuple[tuple[tuple[int, int], ...], list[int]] | None = None
    pending = [_refined(_ranks(start), sources, targets)]
    while pending:
        colours = pending.pop()
        tied = _first_tie(colours)
        if tied:
            pending += [
                _refined(_ranks([(c, i == chosen) for i, c in enumerate(colours)]), sources, targets)
                for chosen in _representatives(tied, sources, targets)
            ]
            continue
        code = tuple(sorted((colours[target], colours[source]) for source, target, _ in cell.edges))
        if best is None or code < best[0]:
            best = (code, colours)
    assert best is not None
    code, colours = best
    ops = [""] * cell.nodes
    for node in cell.intermediate:
        ops[colours[node]] = cell.ops[node - cell.inputs]
    return Cell(
        cell.inputs, cell.nodes, tuple(Edge(source, target) for target, source in code), tuple(ops[cell.inputs : -1])
    )


def _ranks(signatures: Sequence[Hashable]) -> list[int]:
    """Each signature's number in sorted order, counted so that a class of ties takes the lowest of its places."""
    place: dict[Hashable, int] = {}
    for i, signature in enumerate(sorted(signatures)):  # type: ignore[type-var]
        place.setdefault(signature, i)
    return [place[signature] for signature in signatures]


def _refined(colours: list[int], sources: list[list[int]], targets: list[list[int]]) -> list[int]:
    """Colours split by the colours of their neighbours until nothing changes."""
    while True:
        finer = _ranks(
            [
                (
                    colour,
                    tuple(sorted([colours[s] for s in sources[node]])),
                    tuple(sorted([colours[t] for t in targets[node]])),
                )
                for node, colour in enumerate(colours)
            ]
        )
        if finer == colours:
            return colours
        colours = finer


def _first_tie(colours: list[int]) -> list[int]:
    members: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        members.setdefault(colour, []).append(node)
    tied = [colour for colour, nodes in members.items() if len(nodes) > 1]
    return members[min(tied)] if tied else []


def _representatives(tied: list[int], sources: list[list[int]], targets: list[list[int]]) -> list[int]:
    """One node for each group of twins (same sources, same targets): exchanging twins changes nothing."""
    groups = {(tuple(sorted(sources[n])), tuple(sorted(targets[n]))): n for n in reversed(tied)}
    return sorted(groups.values())
