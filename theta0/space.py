"""The contract of a search space.

A space is a list of :class:`Choice` and a way to build a network from one candidate of each. A space in somebody's own
file needs no more than that:

    class Plain(Space):
        name, title = "plain", "plain convolutional networks"
        choices = (Choice("depth", (1, 2, 3)), Choice("width", (16, 32)))

        def network(self, architecture, skeleton):
            return my_network(architecture.depth, architecture.width, skeleton.shape, skeleton.classes)

``theta0 describe myfile:Plain "depth=2, width=16"`` then works, as does every searcher. A space whose architectures are
cells says so (:meth:`Space.cells`), and takes over notation and canonical form. This file imports no torch: what asks
only about architectures is answered at once.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np

from theta0.errors import ParseError, Theta0Error, nearest
from theta0.graph import Cell
from theta0.registry import Registry

if TYPE_CHECKING:
    from torch import nn

    from theta0.forms import Form

A = TypeVar("A", bound=Hashable)


class Choice(NamedTuple):
    """One decision and its candidates."""

    name: str
    candidates: tuple[Any, ...]


@dataclass(frozen=True)
class Chosen:
    """One candidate for each choice, by name: ``architecture.depth``. It travels between processes."""

    names: tuple[str, ...]
    values: tuple[Any, ...]

    def __getattr__(self, name: str) -> Any:
        names = self.__dict__.get("names", ())  # not there yet while a copy is unpacked
        if name not in names:
            raise AttributeError(f"no choice is called {name!r}; {nearest(name, names)}")
        return self.values[names.index(name)]


class Measured(NamedTuple):
    """The cost of a network."""

    parameters: int
    flops: int
    """Multiply-adds of convolutions and linear layers for one image."""


class Supercell(NamedTuple):
    """The union of a space's cells: what a supernet holds. Every cell of the space is a part of it."""

    inputs: int
    nodes: int
    edges: Mapping[tuple[int, int], tuple[str, ...]]
    """For each pair of nodes that an architecture may join: the operations to choose from, or ("",)."""
    ops: tuple[tuple[str, ...], ...] = ()
    """For each intermediate node its operations to choose from, where operations sit on nodes."""
    keeps: Mapping[int, int] = {}
    """How many of the edges into a node an architecture has; all of them, for a node that is not named."""

    def holds(self, cell: Cell) -> bool:
        """Whether ``cell`` is a part."""
        return (
            (cell.inputs, cell.nodes, len(cell.ops)) == (self.inputs, self.nodes, len(self.ops))
            and all(op in self.edges.get((source, target), ()) for source, target, op in cell.edges)
            and all(op in candidates for op, candidates in zip(cell.ops, self.ops, strict=True))
        )


@dataclass(frozen=True)
class Skeleton:
    """The options of the macro skeleton into which a cell is put; each space adds its own, with the paper's values.

    ``shape`` (channels, height, width) and ``classes`` are those of the data that the paper used.
    """

    shape: tuple[int, int, int] = (3, 32, 32)
    classes: int = 10


class Space(ABC, Generic[A]):
    """A set of architectures that can be sampled, written, compared and built."""

    name: ClassVar[str]
    title: ClassVar[str]
    choices: Sequence[Choice]
    skeletons: ClassVar[Mapping[str, Skeleton]] = {"default": Skeleton()}
    """Skeletons by name; the first one is used if nothing else is asked for."""

    @abstractmethod
    def network(self, architecture: A, skeleton: Any) -> nn.Module:
        """The network of ``architecture`` on a skeleton; layers draw their own start."""

    # What an architecture is: a `Chosen`, where a space has nothing else of its own.

    def decode(self, codes: Sequence[int]) -> A:
        """The architecture that takes candidate ``codes[i]`` of choice i."""
        values = tuple(choice.candidates[code] for choice, code in zip(self.choices, codes, strict=True))
        return cast(A, Chosen(tuple(choice.name for choice in self.choices), values))

    def encode(self, architecture: A) -> tuple[int, ...]:
        """The codes of ``architecture``, so that ``decode`` gives it back."""
        values = cast(Chosen, architecture).values
        return tuple(choice.candidates.index(value) for choice, value in zip(self.choices, values, strict=True))

    @property
    def size(self) -> int:
        """The number of architectures."""
        return math.prod(len(choice.candidates) for choice in self.choices)

    def sample(self, generator: np.random.Generator) -> A:
        """An architecture, each with the same probability."""
        return self.decode([int(generator.integers(len(choice.candidates))) for choice in self.choices])

    def neighbours(self, architecture: A) -> Iterator[A]:
        """The architectures one step away: here, those that differ in one choice."""
        codes = self.encode(architecture)
        for i, choice in enumerate(self.choices):
            for other in range(len(choice.candidates)):
                if other != codes[i]:
                    yield self.decode((*codes[:i], other, *codes[i + 1 :]))

    def mutate(self, architecture: A, generator: np.random.Generator) -> A:
        """A neighbour, each with the same probability."""
        near = list(self.neighbours(architecture))
        return near[int(generator.integers(len(near)))]

    def canonical(self, architecture: A) -> Hashable:
        """A key that is equal for architectures that build the same network."""
        return architecture

    # Notation.

    def format(self, architecture: A) -> str:
        """The text of ``architecture``, in the notation that its benchmark uses."""
        chosen = cast(Chosen, architecture)
        return ", ".join(f"{name}={value}" for name, value in zip(chosen.names, chosen.values, strict=True))

    def parse(self, text: str) -> A:
        """The architecture that ``text`` writes; :class:`~theta0.errors.ParseError` tells where it is wrong."""
        codes, position = [], 0
        for i, choice in enumerate(self.choices):
            start = re.compile(rf"\s*{',' if i else ''}\s*").match(text, position)
            if i and not start:
                raise ParseError(text, position, f"', {choice.name}='")
            position = start.end() if start else position
            found = re.compile(rf"{re.escape(choice.name)}\s*=\s*").match(text, position)
            if not found:
                raise ParseError(text, position, f"'{choice.name}='")
            position = found.end()
            written = re.compile(r"[^,\s]*").match(text, position)
            token = written.group() if written else ""
            names = [str(candidate) for candidate in choice.candidates]
            if token not in names:
                raise ParseError(text, position, f"one of {', '.join(names)} for {choice.name}")
            codes.append(names.index(token))
            position += len(token)
        if text[position:].strip():
            raise ParseError(text, position, "the end")
        return self.decode(codes)

    def key(self, architecture: A) -> str:
        """The text by which tables know ``architecture``: here its notation."""
        return self.format(architecture)

    @property
    def notation(self) -> str:
        """An example of the notation."""
        return self.format(self.decode([0] * len(self.choices)))

    # Cells, for spaces that have them.

    def cells(self, architecture: A) -> dict[str, Cell]:
        """The cells of ``architecture`` by name, as parts of :meth:`supercells`; empty where a space has none."""
        return {}

    def supercells(self) -> dict[str, Supercell]:
        """What a supernet holds, by the names of :meth:`cells`."""
        raise Theta0Error(f"the space {self.name} has no supernet form: it does not say what its cells may hold")

    def from_cells(self, cells: Mapping[str, Cell]) -> A:
        """The architecture of which :meth:`cells` gives these back."""
        raise Theta0Error(
            f"the space {self.name} does not say which architecture has given cells: from_cells is needed"
        )

    zero: ClassVar[frozenset[str]] = frozenset()
    """The operations that give zero."""
    identity: ClassVar[frozenset[str]] = frozenset()
    """The operations that pass their input on, to which searches in supernets may collapse."""

    # Supernets.

    def supernet(self, skeleton: Any, partial: int = 1) -> nn.Module:
        """The network that holds the candidates of every choice: see :mod:`theta0.supernet`.

        One in ``partial`` channels goes through the operations, where that is more than 1.
        """
        raise Theta0Error(
            f"the space {self.name} has no supernet form; give it a method supernet(skeleton) whose network holds a "
            f"theta0.supernet.Mixed for each choice, or search it with a searcher that needs none"
        )

    def form(self, kind: str = "edges") -> Form[A]:
        """How a distribution over the candidates of a supernet stands for architectures: see :mod:`theta0.forms`."""
        from theta0.forms import form

        return form(self, kind)

    # Networks.

    def options(self, skeleton: Skeleton | str | None = None, **changes: Any) -> Skeleton:
        """A skeleton, by name or as it is, with some options changed."""
        if skeleton is None:
            skeleton = next(iter(self.skeletons))
        if isinstance(skeleton, str):
            if skeleton not in self.skeletons:
                raise Theta0Error(f"{self.name} has no skeleton {skeleton!r}; {nearest(skeleton, self.skeletons)}")
            skeleton = self.skeletons[skeleton]
        known = [field.name for field in fields(skeleton)]
        for name in changes:
            if name not in known:
                raise Theta0Error(f"the skeleton of {self.name} has no option {name!r}; {nearest(name, known)}")
        skeleton = replace(skeleton, **changes)
        if len(skeleton.shape) != 3 or min(*skeleton.shape, skeleton.classes) < 1:
            raise Theta0Error(
                f"a network needs images (channels, height, width) and classes of at least one; "
                f"these are {skeleton.shape} and {skeleton.classes}"
            )
        channels, height, width = skeleton.shape  # a list would not be hashable
        return replace(skeleton, shape=(channels, height, width))

    def build(
        self,
        architecture: A,
        skeleton: Skeleton | str | None = None,
        *,
        seed: int | None = None,
        initialization: str = "torch",
        **changes: Any,
    ) -> nn.Module:
        """The network of ``architecture`` at its initial parameters.

        ``skeleton`` is the name of one or one of this space's; ``changes`` are options of it, such as ``shape`` and
        ``classes`` of the data. A ``seed`` makes the parameters reproducible and leaves the global random state as it
        was; without one they come from that state.
        """
        import torch

        from theta0.initialize import check_scheme, initialize, seeded

        check_scheme(initialization)
        options = self.options(skeleton, **changes)
        if seed is None:
            seed = int(torch.randint(2**31, (), device="cpu"))
        with seeded(seed):
            model = self.network(architecture, options)
        if initialization != "torch":  # what the layers drew already
            initialize(model, initialization, seed)
        return model

    def measure(self, architecture: A, skeleton: Skeleton | str | None = None, **changes: Any) -> Measured:
        """Parameters, and multiply-adds for one image, of the built network; no weight is ever allocated."""
        import torch

        from theta0 import count

        options = self.options(skeleton, **changes)
        with torch.device("meta"):
            model = self.build(architecture, options, seed=0)
        return Measured(count.parameters(model), count.flops(model, options.shape))


spaces: Registry[type[Space[Any]]] = Registry("space", "theta0.spaces")


def get_space(name: str) -> Space[Any]:
    """The space called ``name``, or the user's own at ``module:Class``."""
    component = spaces.get(name)
    if not (isinstance(component, type) and issubclass(component, Space)):
        raise Theta0Error(f"{name!r} is not a space: it must be a class derived from theta0.Space")
    return component()
