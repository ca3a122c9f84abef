"""Cells that run the operations of a mixture: those on edges, and single choices of a space of one's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error, nearest
from theta0.forms import CHOICE, GATE, Mixture, Mixtures, Place
from theta0.graph import Cell, Edge
from theta0.network.cells import EdgeCell
from theta0.space import Supercell

Pair = tuple[int, int]


def evenly(active: Mapping[Pair, Iterable[str]]) -> Mixture:
    """The mean of the active operations of each edge."""
    return {pair: {name: 1 / len(list(names)) for name in names} for pair, names in active.items()}


class MixedModule(nn.Module):
    """A part of a supernet that runs what its mixture says; ``name`` is that of a cell or a choice of the space."""

    name: str
    mixture: Mixture

    def places(self) -> Mapping[Place, Iterable[str]]:
        """What may be mixed where."""
        raise NotImplementedError

    def set_mixture(self, mixture: Mixture) -> None:
        """What :func:`mix` calls."""
        self.mixture = mixture

    def standalone(self) -> nn.Module:
        """The module of the one architecture that the mixture runs, with a copy of the weights that it has here."""
        raise NotImplementedError


class MixedCell(MixedModule):
    """Runs the operations of a mixture: an edge gives their weighted sum, and a node is the sum of its edges.

    ``make`` makes an operation; those on edges from the cell's inputs have the ``stride``. With ``partial`` K they are
    operations of the first K-th of the channels; the others pass by (max-pooled, where there is a stride), and all are
    shuffled, as in PC-DARTS. The output is the sum of what reaches it, or the concatenation over channels. Before
    :func:`mix` has set a mixture, all operations run with weight one.
    """

    def __init__(
        self,
        supercell: Supercell,
        make: Callable[[Edge], nn.Module],
        *,
        name: str = "cell",
        concat: bool = False,
        partial: int = 1,
        stride: int = 1,
    ) -> None:
        super().__init__()
        if supercell.ops:
            raise Theta0Error(f"a mixed cell has operations on its edges; this one has {len(supercell.ops)} on nodes")
        self.name, self.supercell, self.concat, self.partial, self.stride = name, supercell, concat, partial, stride
        self.operations = nn.ModuleDict(
            {
                _key(pair, op): make(Edge(*pair, op)) if partial == 1 else Partial(make(Edge(*pair, op)), partial)
                for pair, names in supercell.edges.items()
                for op in names
                if op
            }
        )
        self.set_mixture({pair: dict.fromkeys(names, 1.0) for pair, names in supercell.edges.items()})

    def places(self) -> Mapping[Place, Iterable[str]]:
        """The edges."""
        return dict(self.supercell.edges.items())

    def set_mixture(self, mixture: Mixture) -> None:
        """Sorts the edges by the nodes that they lead to."""
        self.mixture = mixture
        self._into: dict[int, list[Pair]] = {}
        for place, weights in mixture.items():
            if isinstance(place, tuple) and set(weights) - {GATE}:
                self._into.setdefault(place[1], []).append(place)
        for pairs in self._into.values():
            pairs.sort()

    def forward(self, *inputs: Tensor) -> Tensor:
        """The cell's inputs, each (N, C, H, W), to its output."""
        values, last = list(inputs), self.supercell.nodes - 1
        for node in range(self.supercell.inputs, last):
            terms = [self._edge(pair, values[pair[0]]) for pair in self._into.get(node, ())]
            values.append(_sum(terms) if terms else self._zeros(inputs[-1]))
        terms = [self._edge(pair, values[pair[0]]) for pair in self._into.get(last, ())]
        if not terms:
            return self._zeros(inputs[-1])
        return torch.cat(terms, dim=1) if self.concat else _sum(terms)

    def _zeros(self, like: Tensor) -> Tensor:
        height, width = (-(-side // self.stride) for side in like.shape[2:])
        return like.new_zeros(*like.shape[:2], height, width)

    def _edge(self, pair: Pair, x: Tensor) -> Tensor:
        weights = self.mixture[pair]
        named = [(name, weight) for name, weight in weights.items() if name != GATE]
        if self.partial == 1 or named[0][0] == "":
            found = _sum([_times(self._run(pair, name, x), weight) for name, weight in named])
        else:
            part, rest = parted(x, self.partial)
            found = _sum([_times(self._partial(pair, name).inner(part), weight) for name, weight in named])
            found = shuffled(found, self._partial(pair, named[0][0]).bypass(rest, found), self.partial)
        return _times(found, weights.get(GATE, 1.0))

    def _run(self, pair: Pair, name: str, x: Tensor) -> Tensor:
        if not name:
            return x
        result: Tensor = self.operations[_key(pair, name)](x)
        return result

    def _partial(self, pair: Pair, name: str) -> Partial:
        module = self.operations[_key(pair, name)]
        assert isinstance(module, Partial)
        return module

    def standalone(self) -> nn.Module:
        """The cell with operations on its edges."""
        edges = []
        for pair, weights in self.mixture.items():
            assert isinstance(pair, tuple)
            edges += [Edge(*pair, op) for op in only(self.name, pair, weights)]
        cell = Cell(self.supercell.inputs, self.supercell.nodes, tuple(edges))
        return EdgeCell(cell, lambda e: copy.deepcopy(self.operations[_key(e[:2], e.op)]), concat=self.concat)


class Mixed(MixedModule):
    """The candidates of one choice of a space of one's own, as modules by the text of the candidate.

        Mixed("activation", {"relu": nn.ReLU(), "tanh": nn.Tanh()})

    Candidates take and give the same shapes. A choice may govern several of them.
    """

    def __init__(self, name: str, candidates: Mapping[str, nn.Module]) -> None:
        super().__init__()
        if not candidates:
            raise Theta0Error(f"the choice {name!r} of a supernet has no candidates; give at least one")
        self.name = name
        self.candidates = nn.ModuleDict({_plain(key): module for key, module in candidates.items()})
        self.names = {key: _plain(key) for key in candidates}
        self.set_mixture({CHOICE: dict.fromkeys(candidates, 1.0)})

    def places(self) -> Mapping[Place, Iterable[str]]:
        """The one place there is."""
        return {CHOICE: self.names}

    def forward(self, *inputs: Any) -> Any:
        """The weighted sum of what the candidates give."""
        weights = self.mixture.get(CHOICE, {})
        if not weights:
            raise Theta0Error(f"the choice {self.name!r} has no candidate to run; mix at least one")
        return _sum([_times(self.candidates[self.names[key]](*inputs), weight) for key, weight in weights.items()])

    def standalone(self) -> nn.Module:
        """The one candidate."""
        names = only(self.name, CHOICE, self.mixture[CHOICE])
        return copy.deepcopy(self.candidates[self.names[names[0]]])


class Partial(nn.Module):
    """An operation on the first K-th of the channels; the others pass by, and all are shuffled (PC-DARTS)."""

    def __init__(self, inner: nn.Module, partial: int) -> None:
        super().__init__()
        self.inner, self.partial = inner, partial

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same number of channels."""
        part, rest = parted(x, self.partial)
        found = self.inner(part)
        return shuffled(found, self.bypass(rest, found), self.partial)

    @staticmethod
    def bypass(rest: Tensor, like: Tensor) -> Tensor:
        """What passes by, max-pooled where the operation has a stride."""
        if rest.shape[2:] == like.shape[2:]:
            return rest
        return nn.functional.max_pool2d(rest, 2, 2, ceil_mode=True)


def parted(x: Tensor, partial: int) -> tuple[Tensor, Tensor]:
    """The channels that go through operations, and the others."""
    count = x.shape[1] // partial
    if not count:
        raise Theta0Error(f"one in {partial} channels is less than one of {x.shape[1]}; take more channels")
    return x[:, :count], x[:, count:]


def shuffled(part: Tensor, rest: Tensor, partial: int) -> Tensor:
    """Both, so mixed that the next cell operates on others; as they are, where that does not divide."""
    x = torch.cat([part, rest], dim=1)
    if x.shape[1] % partial:
        return x
    samples, channels, height, width = x.shape
    return x.view(samples, partial, channels // partial, height, width).transpose(1, 2).reshape(x.shape)


def only(name: str, place: Place, weights: Mapping[str, Any]) -> list[str]:
    """The one operation of a place, or none; an error where several run, or with another weight than one."""
    values = {key: float(weight.detach()) if isinstance(weight, Tensor) else weight for key, weight in weights.items()}
    taken = [key for key in values if key != GATE]
    if len(taken) > 1 or any(value != 1 for value in values.values()):
        raise Theta0Error(
            f"{name} does not run one candidate but a mixture at {place}: {values}; mix(model, single(space, "
            f"architecture)) first"
        )
    return taken


def _key(pair: tuple[int, int], name: str) -> str:
    return f"{pair[0]}->{pair[1]} {name}"


def _plain(name: str) -> str:
    """What a module may be called."""
    return f"candidate {name}".replace(".", "_")


def _sum(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _times(x: Tensor, weight: Any) -> Tensor:
    """Nothing is computed for a weight that is the number one."""
    return x if isinstance(weight, float | int) and weight == 1 else x * weight


def mix(model: nn.Module, mixtures: Mixtures) -> None:
    """Sets the mixture of every cell and choice of ``model`` that ``mixtures`` names; the others keep theirs."""
    parts = [module for module in model.modules() if isinstance(module, MixedModule)]
    known = {part.name: part for part in parts}
    for name, mixture in mixtures.items():
        if name not in known:
            raise Theta0Error(f"the supernet has nothing called {name!r} to mix; {nearest(name, known)}")
        places = known[name].places()
        for place, weights in mixture.items():
            for op in weights:
                if op != GATE and op not in places.get(place, ()):
                    names = [_label(where, key) for where, keys in places.items() for key in keys]
                    raise Theta0Error(
                        f"the supernet has no operation {_label(place, op)!r}; {nearest(_label(place, op), names)}"
                    )
    for part in parts:
        if part.name in mixtures:
            part.set_mixture(mixtures[part.name])


def _label(place: Place, name: str) -> str:
    return _key(place, name) if isinstance(place, tuple) else f"{place} {name}"


def inherited(model: nn.Module, mixtures: Mixtures) -> nn.Module:
    """The network of its own of the architecture that ``mixtures`` runs, with the weights that it has in ``model``."""
    mix(model, mixtures)
    found = copy.deepcopy(_bare(model))
    for name, module in list(found.named_modules()):
        if isinstance(module, MixedModule):
            if not name:
                return module.standalone()
            parent, _, last = name.rpartition(".")
            setattr(found.get_submodule(parent), last, module.standalone())
    return found


def _bare(model: nn.Module) -> nn.Module:
    """The model, once the weights of its mixtures are plain numbers: tensors of a graph cannot be copied."""
    for module in model.modules():
        if isinstance(module, MixedModule):
            plain = {
                place: {op: float(w.detach()) if isinstance(w, Tensor) else w for op, w in weights.items()}
                for place, weights in module.mixture.items()
            }
            module.set_mixture(plain)
    return model
