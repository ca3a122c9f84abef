"""What a run's folder holds, read once and with nothing taken for granted: a run in flight has only some of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.pool import PoolScores
from theta0.report.numbers import number
from theta0.runs import Evaluation, Event, Run, State

POOL = "pool.npz"


@dataclass(frozen=True)
class Material:
    """A run as the report shows it."""

    run: Run
    path: Path
    name: str
    state: State
    created: float
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    events: list[Event]
    evaluations: list[Evaluation]
    curves: Mapping[str, list[dict[str, float]]]
    pool: PoolScores | None
    pool_problem: str
    """Why there are no scores although there should be."""
    working: frozenset[int]
    """The processes that live."""

    @classmethod
    def of(cls, run: Run) -> Material:
        """Reads all but the pictures."""
        pool, problem = _pool(run)
        return cls(
            run,
            run.path.absolute(),
            run.name,
            run.state,
            run.created,
            run.settings,
            run.environment,
            run.events(),
            run.evaluations(),
            run.curves(),
            pool,
            problem,
            frozenset(number for number, process in run.processes().items() if process.alive),
        )

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """What the run ended with; empty if it did not."""
        return self.last("finished")

    @cached_property
    def plan(self) -> Mapping[str, Any]:
        """What the run set out to do."""
        return self.last("planned")

    def last(self, kind: str) -> Mapping[str, Any]:
        """The facts of the last event of a kind."""
        return next((event.facts for event in reversed(self.events) if event.kind == kind), {})

    @cached_property
    def done(self) -> list[Evaluation]:
        """The trials that have an accuracy."""
        return [one for one in self.evaluations if one.finished is not None and not math.isnan(one.value)]

    @cached_property
    def failed(self) -> list[Evaluation]:
        """The trials that ended without one."""
        return [one for one in self.evaluations if one.finished is not None and math.isnan(one.value)]

    @cached_property
    def unfinished(self) -> list[Evaluation]:
        """The trials in flight."""
        return [one for one in self.evaluations if one.finished is None]

    @cached_property
    def incumbent(self) -> Evaluation | None:
        """The trial of best accuracy at the longest training."""
        return max(self.done, key=lambda one: (one.epochs, one.value, -one.number), default=None)

    @cached_property
    def chosen(self) -> str:
        """The architecture that the run chose, or its incumbent; empty without either."""
        if said := self.result.get("chosen"):
            return str(said)
        return self.incumbent.architecture if self.incumbent else ""

    @property
    def test(self) -> Mapping[str, Any]:
        """What was measured on the test images."""
        return mapping(self.result.get("test"))

    @property
    def random(self) -> Mapping[str, Any]:
        """What random architectures reached."""
        return mapping(self.result.get("random"))

    @cached_property
    def classes(self) -> list[str]:
        """The names of the classes, if they are known."""
        for holder in (self.settings, mapping(self.settings.get("skeleton")), self.result, self.plan):
            found = holder.get("classes")
            if isinstance(found, list | tuple):
                return [str(name) for name in found]
        return []

    @cached_property
    def candidates(self) -> Candidates | None:
        """The pool as searchers see it; architectures stay texts."""
        if self.pool is None:
            return None
        columns = dict(zip(self.pool.names, self.pool.values.T, strict=True))
        codes = dict(zip(self.pool.names, self.pool.validity.T, strict=True))
        return Candidates(self.pool.architectures, columns, {name: code == 0 for name, code in codes.items()})

    @cached_property
    def rows(self) -> dict[str, int]:
        """Where an architecture stands in the pool."""
        return {} if self.pool is None else {text: row for row, text in enumerate(self.pool.architectures)}


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def accuracies(random: Mapping[str, Any]) -> list[float]:
    """Those of the random architectures that ended well."""
    given = random.get("accuracies")
    found = [number(value) for value in given] if isinstance(given, list) else []
    return [value for value in found if math.isfinite(value)]


def _pool(run: Run) -> tuple[PoolScores | None, str]:
    try:
        pool = PoolScores.load(run.path / POOL) if (run.path / POOL).is_file() else run.scores()
    except Theta0Error as error:
        return None, str(error)
    return (pool, "") if pool.names and pool.architectures else (None, "")
