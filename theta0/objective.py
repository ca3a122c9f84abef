"""What a searcher maximises: the validation accuracy of an architecture after some epochs of training, and its cost.

An objective answers one architecture at a time; it knows which ones are allowed, and never shows a test accuracy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from theta0.errors import Theta0Error
from theta0.space import Space, get_space
from theta0.tables.table import Table

if TYPE_CHECKING:
    from theta0.data.dataset import ImageDataset

A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True)
class Outcome:
    """What evaluating an architecture gave: percent of validation images, NaN if it failed, and seconds."""

    value: float
    seconds: float
    note: str = ""
    """Why it failed, or was cut short."""

    @property
    def failed(self) -> bool:
        """Whether there is no value."""
        return math.isnan(self.value)

    @property
    def ranked(self) -> float:
        """The value, and less than any where there is none."""
        return -math.inf if self.failed else self.value


class Objective(ABC, Generic[A]):
    """Evaluates architectures of a space; ``epochs`` are the training budgets that it can give, smallest first."""

    space: Space[A]
    epochs: Sequence[int]
    images: ImageDataset | None = None
    """What it trains on, where it trains: searchers may train on it too."""
    clock: bool = False
    """Whether its seconds are those of a clock, so that a searcher's own work takes from the same time."""

    @abstractmethod
    def evaluate(self, architecture: A, epochs: int, seconds: float = math.inf) -> Outcome:
        """Trains or looks up; ``seconds`` are all that may be spent."""

    def allowed(self, architecture: A) -> bool:
        """Whether the limits on parameters, FLOPs or latency, and the benchmark, let it be evaluated."""
        return True

    def allowed_all(self, architectures: Sequence[A]) -> NDArray[np.bool_]:
        """The same for many."""
        return np.array([self.allowed(architecture) for architecture in architectures], dtype=bool)

    def cost(self, architecture: A, epochs: int) -> float | None:
        """The seconds that :meth:`evaluate` will take, where they are known."""
        return None


class TableObjective(Objective[Any]):
    """Looks into a table's validation accuracies; the seconds are those that training took when it was made.

    ``run`` is None for the mean of the runs, or the number of one. ``limits`` are named as the table's costs.
    """

    def __init__(
        self,
        table: Table,
        dataset: str,
        *,
        epochs: Sequence[int] | None = None,
        limits: Mapping[str, float] | None = None,
        run: int | None = None,
    ) -> None:
        self.table = table.search_view([dataset])
        self.dataset, self.run = dataset, run
        self.space = get_space(table.space)
        known = self.table.epochs(dataset)
        self.epochs = tuple(known if epochs is None else sorted(set(epochs)))
        if not self.epochs:
            raise Theta0Error(f"an objective needs a budget of epochs; {table.name} has {', '.join(map(str, known))}")
        for budget in self.epochs:
            if budget not in known:
                raise Theta0Error(
                    f"the table {table.name} has no budget of {budget} epochs on {dataset}; it has "
                    f"{', '.join(map(str, known))}"
                )
        self._within = np.zeros(len(table), dtype=bool)
        self._within[self.table.within(limits, dataset) if limits else slice(None)] = True
        # Columns at once: a search looks thousands of them up.
        self._values = {budget: self.table.validation(dataset, budget, run=run) for budget in self.epochs}
        self._seconds = {budget: self.table.seconds(dataset, budget) for budget in self.epochs}

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        """The table's answer."""
        row = self.table.row(architecture)
        return Outcome(float(self._values[epochs][row]), float(self._seconds[epochs][row]))

    def allowed(self, architecture: Any) -> bool:
        """Whether it is in the table and within the limits."""
        return architecture in self.table and bool(self._within[self.table.row(architecture)])

    def cost(self, architecture: Any, epochs: int) -> float:
        """As the table has it."""
        return float(self._seconds[epochs][self.table.row(architecture)])
