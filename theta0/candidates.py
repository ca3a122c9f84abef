"""A scored pool: the architectures that a searcher may choose from, with their scores.

The numbers of a score are the searcher's to read as it likes; :meth:`Candidates.ranks` reads all alike: higher is
better, ties share a rank, and what is not a number, dead or infinite in the bad direction comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.errors import DataError, ParseError, Theta0Error, nearest
from theta0.pool import PoolScores
from theta0.space import Space

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Architectures and columns of scores, by name and variant."""

    architectures: Sequence[Any]
    scores: Mapping[str, Floats]
    """(n,) each, as they were computed."""
    valid: Mapping[str, NDArray[np.bool_]]
    """(n,) each: the validity is ``ok``."""

    @classmethod
    def of(cls, table: PoolScores, space: Space[Any]) -> Candidates:
        """Those of a table of scores, which must be of the same space."""
        if table.space != space.name:
            raise Theta0Error(f"these scores are of {table.space}, and the search is in {space.name}; take others")
        return cls(
            [_parsed(text, row, space) for row, text in enumerate(table.architectures)],
            {name: table.values[:, i] for i, name in enumerate(table.names)},
            {name: (table.validity[:, i] == 0) & np.isfinite(table.values[:, i]) for i, name in enumerate(table.names)},
        )

    def __len__(self) -> int:
        return len(self.architectures)

    def name(self, score: str) -> str:
        """The full name of a score; of one without its variant, the first that is there."""
        if score in self.scores:
            return score
        found = [name for name in self.scores if name.partition(":")[0] == score]
        if not found:
            known = {*self.scores, *(name.partition(":")[0] for name in self.scores)}
            raise Theta0Error(f"the pool has no score {score!r}; {nearest(score, known)}")
        return found[0]

    def column(self, score: str) -> Floats:
        """A score by name."""
        return self.scores[self.name(score)]

    def ok(self, score: str) -> NDArray[np.bool_]:
        """Where a score is valid."""
        return self.valid[self.name(score)]

    def ranks(self, score: str) -> Floats:
        """From 0 for the worst to 1 for the best."""
        from theta0.metrics import metrics

        values = np.where(self.ok(score), self.column(score), np.nan)
        if metrics.get(self.name(score).partition(":")[0]).direction == "lower":
            values = -values
        values = np.where(np.isnan(values), -np.inf, values)
        ordered = np.sort(values)
        low, high = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
        return np.asarray((low + high - 1) / 2 / max(1, len(values) - 1), dtype=np.float64)

    def select(self, places: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """Some of them."""
        chosen = np.flatnonzero(places) if places.dtype == bool else places
        return Candidates(
            [self.architectures[place] for place in chosen],
            {name: values[chosen] for name, values in self.scores.items()},
            {name: values[chosen] for name, values in self.valid.items()},
        )


def _parsed(text: str, row: int, space: Space[Any]) -> Any:
    try:
        return space.parse(text)
    except ParseError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"the scores name {text[:80]!r} in row {row}, no architecture of {space.name}: {reason}"
        ) from error
