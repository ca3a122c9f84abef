"""What the store of a run holds, as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["running", "stopped", "finished", "failed"]


@dataclass(frozen=True)
class Evaluation:
    """A trial as it is stored; in flight until it is ``finished``."""

    number: int
    architecture: str
    epochs: int
    value: float
    """Validation accuracy in percent; NaN if the evaluation failed or is in flight."""
    seconds: float
    spent: float
    """Seconds since the search began, this trial included; NaN while in flight, as ``seconds`` is."""
    note: str
    why: Mapping[str, float]
    seed: int | None = None
    process: int | None = None
    """The one that evaluates or evaluated it: a key of :meth:`Run.processes`."""
    started: float | None = None
    """When it was claimed, in seconds since 1970; None if it was added without a claim."""
    finished: float | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened to the run."""

    time: float
    kind: str
    facts: Mapping[str, Any]
    process: int


@dataclass(frozen=True)
class Process:
    """One that opened the run for writing."""

    host: str
    pid: int
    opened: float
    alive: bool
    """Whether it still has the run open."""
