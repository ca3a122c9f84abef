"""Forms: how weights on the candidates of a supernet's decisions stand for mixtures and for architectures.

    form = get_space("darts").form("nodes")
    form.decisions[0]                       # Decision("normal 2 operation", ("max_pool_3x3", ...), keep=2, draw=1)
    form.mixtures(weights)                  # what theta0.supernet.mix takes
    form.derive(strengths)                  # the architecture of the strongest candidates

A decision is taken for itself; an architecture has the ``keep`` strongest candidates of each. Spaces of cells have
these kinds of forms, which differ only where an architecture keeps some of the edges into a node:

``edges``       an operation, or none, for each edge; a node keeps the edges of the strongest operations (DARTS)
``normalised``  the same, and a weight for each edge among those into its node (PC-DARTS's edge normalisation)
``nodes``       the inputs and the operations of a node, independently of each other, or the operation of an edge,
                without those that give zero (NASI, appendix B.2)

Where operations sit on nodes, as in NAS-Bench-1Shot1, all three are the last one. A space without cells has a decision
for each of its choices. This file imports no torch: weights may be numbers or tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from theta0.errors import Theta0Error, nearest
from theta0.graph import Cell, Edge

if TYPE_CHECKING:
    from theta0.space import Space, Supercell

A = TypeVar("A")

KINDS = ("edges", "normalised", "nodes")
NONE = "none"
"""The candidate that leaves an edge out."""
GATE = "*"
"""In the mixture of an edge: what its result is multiplied by, after its operations are summed."""

Place = tuple[int, int] | int
"""An edge, or a node with an operation."""
Mixture = Mapping[Place, Mapping[str, Any]]
"""The weights of operations by name, for each place; what is not named does not run."""
Mixtures = Mapping[str, Mixture]
"""A mixture for each cell, by name."""
Weights = Mapping[str, Mapping[str, Any]]
"""For each decision the weights of candidates by name; what is not named is not taken."""
Strengths = Mapping[str, Sequence[float]]
"""For each decision a number for each candidate; the highest are taken."""

CHOICE: Place = (0, 1)
"""The one place in the mixture of a choice of a space without cells."""


class Decision(NamedTuple):
    """Something to decide for itself."""

    name: str
    candidates: tuple[str, ...]
    keep: int = 1
    """How many candidates an architecture has."""
    draw: int = 1
    """How many a draw of a single path takes."""


class Form(ABC, Generic[A]):
    """The decisions of a supernet."""

    decisions: tuple[Decision, ...]
    on_nodes = False
    """Whether operations sit on nodes, so that the edges that are there decide about shapes."""

    @abstractmethod
    def mixtures(self, weights: Weights) -> Mixtures:
        """What a supernet runs under these weights."""

    @abstractmethod
    def derive(self, strengths: Strengths) -> A:
        """The architecture of the strongest candidates."""


def form(space: Space[A], kind: str = "edges") -> Form[A]:
    """The form of a space."""
    from theta0.space import Space

    if kind not in KINDS:
        raise Theta0Error(f"no form is called {kind!r}; {nearest(kind, KINDS)}")
    without = type(space).supercells is Space.supercells and type(space).cells is Space.cells
    return ChoiceForm(space) if without else CellForm(space, kind)


def single(space: Space[A], architecture: A) -> Mixtures:
    """The mixtures that run one architecture and nothing else."""
    cells = space.cells(architecture)
    if not cells:
        codes = space.encode(architecture)
        return {
            choice.name: {CHOICE: {str(choice.candidates[code]): 1.0}}
            for choice, code in zip(space.choices, codes, strict=True)
        }
    return {name: _whole(cell) for name, cell in cells.items()}


def _whole(cell: Cell) -> Mixture:
    places: dict[Place, dict[str, float]] = {}
    for source, target, op in cell.edges:
        places.setdefault((source, target), {})[op] = 1.0
    return {**places, **{node: {op: 1.0} for node, op in zip(cell.intermediate, cell.ops, strict=False)}}


class ChoiceForm(Form[A]):
    """A decision for each choice of a space without cells."""

    def __init__(self, space: Space[A]) -> None:
        self.space = space
        self.decisions = tuple(Decision(choice.name, tuple(map(str, choice.candidates))) for choice in space.choices)

    def mixtures(self, weights: Weights) -> Mixtures:
        """By the names of choices."""
        return {decision.name: {CHOICE: weights[decision.name]} for decision in self.decisions}

    def derive(self, strengths: Strengths) -> A:
        """The strongest candidate of each choice."""
        return self.space.decode([_strongest(strengths[decision.name])[0] for decision in self.decisions])


class CellForm(Form[A]):
    """The decisions of the cells of a space, by what its supercells hold."""

    def __init__(self, space: Space[A], kind: str) -> None:
        self.space, self.supercells = space, space.supercells()
        self.cells = {
            name: _Decided(supercell, f"{name} " if len(self.supercells) > 1 else "", kind, space.zero)
            for name, supercell in self.supercells.items()
        }
        self.decisions = tuple(decision for cell in self.cells.values() for decision in cell.decisions.values())
        self.on_nodes = any(supercell.ops for supercell in self.supercells.values())

    def mixtures(self, weights: Weights) -> Mixtures:
        """By the names of cells."""
        return {name: cell.mixture(weights) for name, cell in self.cells.items()}

    def derive(self, strengths: Strengths) -> A:
        """Each node with the strongest edges and operations."""
        return self.space.from_cells({name: cell.derive(strengths) for name, cell in self.cells.items()})


class _Decided:
    """The decisions of one cell: ``operations`` by edge or node, ``inputs`` by node."""

    def __init__(self, supercell: Supercell, prefix: str, kind: str, zero: frozenset[str]) -> None:
        self.supercell, self.zero = supercell, zero
        self.decisions: dict[str, Decision] = {}
        self.operations: dict[Place, str] = {}
        self.inputs: dict[int, str] = {}
        self.ranked = kind == "nodes" and not supercell.ops
        first = supercell.inputs
        for node, names in enumerate(supercell.ops, start=first):
            self.operations[node] = self._add(Decision(f"{prefix}{node} operation", names))
        for node in range(first, supercell.nodes):
            into = {source: names for (source, target), names in sorted(supercell.edges.items()) if target == node}
            if kind == "nodes":
                into = {source: tuple(name for name in names if name not in zero) for source, names in into.items()}
            keep = supercell.keeps.get(node, len(into))
            sources = tuple(map(str, into))
            plain = all(names == ("",) for names in into.values())
            if supercell.ops:
                if keep < len(into):
                    self.inputs[node] = self._add(Decision(f"{prefix}{node} input", sources, keep, keep))
            elif plain:
                continue
            elif self.ranked and node in supercell.keeps:
                names = next(iter(into.values()))
                if any(other != names for other in into.values()):
                    raise Theta0Error(f"the edges into node {node} have different operations; take the form 'edges'")
                operation = self._add(Decision(f"{prefix}{node} operation", names, keep))
                self.operations.update({(source, node): operation for source in into})
                self.inputs[node] = self._add(Decision(f"{prefix}{node} input", sources, keep))
            else:
                for source, names in into.items():
                    left_out = (NONE,) if node in supercell.keeps and not zero & set(names) else ()
                    decision = Decision(f"{prefix}{source}->{node}", (*left_out, *names))
                    self.operations[source, node] = self._add(decision)
                if kind == "normalised" and len(into) > 1:
                    self.inputs[node] = self._add(Decision(f"{prefix}{node} input", sources, keep, len(into)))

    def _add(self, decision: Decision) -> str:
        self.decisions[decision.name] = decision
        return decision.name

    def mixture(self, weights: Weights) -> Mixture:
        found: dict[Place, Mapping[str, Any]] = {}
        for (source, target), names in self.supercell.edges.items():
            gate: Any = 1.0
            if target in self.inputs:
                gates = weights[self.inputs[target]]
                if str(source) not in gates:
                    continue
                gate = gates[str(source)]
            if names == ("",):
                found[source, target] = {"": gate}
                continue
            taken = weights[self.operations[source, target]]
            known = {name: weight for name, weight in taken.items() if name in names}
            found[source, target] = {**known, GATE: gate} if target in self.inputs else known
        for node, _ in enumerate(self.supercell.ops, start=self.supercell.inputs):
            found[node] = weights[self.operations[node]]
        return found

    def derive(self, strengths: Strengths) -> Cell:
        whole = self.supercell
        edges: list[Edge] = []
        for node in range(whole.inputs, whole.nodes):
            sources = sorted(source for source, target in whole.edges if target == node)
            keep = whole.keeps.get(node, len(sources))
            into = strengths[self.inputs[node]] if node in self.inputs else [1.0] * len(sources)
            if self.ranked and node in self.inputs:
                candidates = self.decisions[self.operations[sources[0], node]].candidates
                best = _strongest(strengths[self.operations[sources[0], node]])[:keep]
                pairs = zip(_strongest(into)[:keep], best, strict=True)
                edges += [Edge(sources[place], node, candidates[op]) for place, op in pairs]
                continue
            names, worth = [], []
            for place, source in enumerate(sources):
                name, strength = self._operation((source, node), strengths, keep < len(sources))
                names.append(name)
                worth.append(strength * into[place])
            edges += [Edge(sources[place], node, names[place]) for place in _strongest(worth)[:keep]]
        ops = []
        for node, candidates in enumerate(whole.ops, start=whole.inputs):
            ops.append(candidates[_strongest(strengths[self.operations[node]])[0]])
        return Cell(whole.inputs, whole.nodes, tuple(edges), tuple(ops))

    def _operation(self, place: Place, strengths: Strengths, chosen: bool) -> tuple[str, float]:
        """The strongest operation of an edge, and how strong it is; an edge that is ``chosen`` does not give zero."""
        if place not in self.operations:
            return "", 1.0
        name, names = self.operations[place], self.supercell.edges[place]  # type: ignore[index]
        candidates = self.decisions[name].candidates
        for code in _strongest(strengths[name]):
            if candidates[code] in names and not (chosen and candidates[code] in self.zero):
                return candidates[code], strengths[name][code]
        raise Theta0Error(f"the edge {place} has no operation but those that give zero")


def _strongest(strengths: Sequence[float]) -> list[int]:
    """Places from the strongest on; the first of equal ones first."""
    return sorted(range(len(strengths)), key=lambda place: -strengths[place])
