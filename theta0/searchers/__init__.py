"""Searchers: each is a generator function in a file of its own, found by its name.

    @searchers.register("random")
    def random(task, generator):
        while True:
            (outcome,) = yield [task.proposal(task.sample(generator))]

A searcher yields lists of proposals, gets their outcomes in the same order, and may return the architecture that it
chose; without that the best validation accuracy is chosen. It draws all its random numbers from ``generator``, so that
the same seed and the same outcomes give the same search: that is how a search is resumed. When the budget is spent,
:class:`BudgetSpentError` comes out of the ``yield``; a searcher that has its own rule for the choice catches it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.objective import Objective, Outcome
from theta0.registry import Registry
from theta0.space import Space

if TYPE_CHECKING:
    from theta0.data.dataset import ImageDataset

OWN = 0.5
"""The share of a budget's seconds that a searcher may spend before its first evaluation: on a supernet, say."""
_TRIES = 10_000
"""How many draws may miss the limits before they are called impossible."""


class Proposal(NamedTuple):
    """An architecture to be evaluated, and for how many epochs."""

    architecture: Any
    epochs: int
    why: Mapping[str, float] = MappingProxyType({})
    """Numbers that led to it, by name: they are kept with the trial."""
    choice: Any = None
    """What the searcher would choose were this the end, unless that is the best validation accuracy."""


class BudgetSpentError(Theta0Error):
    """Nothing more can be evaluated."""


@dataclass(frozen=True)
class Budget:
    """What a search may spend; None is without limit. No evaluation is begun that would overrun it."""

    evaluations: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if value is not None and not value > 0:
                raise Theta0Error(f"a budget must be more than zero; {name} is {value}")


Search = Generator[list[Proposal], list[Outcome], Any]
"""A search under way."""
Searcher = Callable[..., Search]
"""``searcher(task, generator, **options)``."""

searchers: Registry[Searcher] = Registry("searcher", "theta0.searchers")


@dataclass(frozen=True, eq=False)
class Task:
    """What a searcher knows: the space, training budgets and limits; a scored pool and images, if there are any."""

    objective: Objective[Any]
    budget: Budget
    candidates: Candidates | None = None
    images: ImageDataset | None = None
    """Those that it may train on, on the device that it may use."""

    @property
    def space(self) -> Space[Any]:
        """Where it searches."""
        return self.objective.space

    @property
    def epochs(self) -> tuple[int, ...]:
        """Training budgets, smallest first."""
        return tuple(self.objective.epochs)

    def allowed(self, architecture: Any) -> bool:
        """Whether it may be evaluated."""
        return self.objective.allowed(architecture)

    def proposal(self, architecture: Any, epochs: int | None = None, **why: float) -> Proposal:
        """For the smallest training budget, unless another is named; ``why`` are the numbers that led to it."""
        return Proposal(architecture, self.epochs[0] if epochs is None else epochs, why)

    def pool(self) -> Candidates:
        """The scored pool, which must be there."""
        if self.candidates is None:
            raise Theta0Error("this searcher chooses from a scored pool; give one (scores=, or --scores FILE)")
        return self.candidates

    def stop(self) -> Callable[[], bool]:
        """Whether a searcher's own work has taken :data:`OWN` of the seconds, from now on, if they are a clock's."""
        seconds = self.budget.seconds if self.objective.clock else None
        start = time.perf_counter()
        return lambda: seconds is not None and time.perf_counter() - start > OWN * seconds

    def labelled(self) -> ImageDataset:
        """The images, which must be there."""
        if self.images is None:
            raise Theta0Error("this searcher trains a supernet on images; give some (images=, or --images NAME)")
        return self.images

    def sample(self, generator: np.random.Generator) -> Any:
        """An allowed architecture, each with the same probability: of the pool, if there is one."""
        if self.candidates is not None:
            place = int(generator.integers(len(self.candidates)))
            return self.candidates.architectures[place]
        for _ in range(_TRIES):
            architecture = self.space.sample(generator)
            if self.allowed(architecture):
                return architecture
        raise Theta0Error(f"none of {_TRIES:,} random architectures is within the limits; raise them")

    def mutate(self, architecture: Any, generator: np.random.Generator) -> Any:
        """An allowed architecture some mutations away: one, unless the limits or a table with gaps are in the way."""
        changed = architecture
        for _ in range(_TRIES):
            changed = self.space.mutate(changed, generator)
            if self.allowed(changed) and changed != architecture:
                return changed
        raise Theta0Error(f"{_TRIES:,} mutations in a row are beyond the limits; raise them")
