"""The runs in a folder, each in one line."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from theta0.errors import DataError
from theta0.places import runs_root
from theta0.runs.folders import folders
from theta0.runs.records import State
from theta0.runs.run import Run


@dataclass(frozen=True)
class Summary:
    """A run in short; an unreadable one has its name and the ``problem``."""

    path: Path
    state: State | Literal["unreadable"]
    data: str = ""
    space: str = ""
    searcher: str = ""
    trials: int = 0
    """Those that are finished."""
    best: float = math.nan
    """Of the incumbent; NaN without one."""
    seconds: float = 0.0
    """That the evaluations took."""
    started: float = math.nan
    """In seconds since 1970."""
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.absolute().name


def runs(root: str | os.PathLike[str] | None = None) -> list[Summary]:
    """The runs in the folder ``root`` (by default as :meth:`Run.create` has it), the oldest first."""
    found = [_summary(path) for path in folders(runs_root(root))]
    return sorted(found, key=lambda one: (-math.inf if math.isnan(one.started) else one.started, one.name))


def _summary(path: Path) -> Summary:
    try:
        with Run.open(path) as run:
            done = [evaluation for evaluation in run.evaluations() if evaluation.finished is not None]
            best = run.incumbent
            return Summary(
                path,
                run.state,
                str(run.settings["data"]),
                str(run.settings["space"]),
                str(run.settings["searcher"]),
                len(done),
                math.nan if best is None else best.value,
                max((evaluation.spent for evaluation in done), default=0.0),
                run.created,
            )
    except (DataError, OSError) as error:  # one that is damaged must not hide the others
        return Summary(path, "unreadable", problem=str(error))
