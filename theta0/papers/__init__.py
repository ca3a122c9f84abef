"""Tables and figures of the documents as functions: the paper's number, ours, and the difference.

    @reproduces("hnas", "table 6", "correlation of scores and bounds with test errors")
    def table_6(given: Given) -> Report: ...

A file for each document, found by scanning. What is not here (a benchmark's table, images) is said beside the number.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from theta0.errors import Theta0Error, nearest
from theta0.registry import Registry
from theta0.tables.table import Table

if TYPE_CHECKING:
    from theta0.data import Data


@dataclass(frozen=True)
class Row:
    """One number of a paper."""

    label: str
    paper: float | None
    ours: float
    spread: float | None = None
    """Our deviation over seeds or data sets, where the number is a mean."""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.paper is None else self.ours - self.paper


@dataclass
class Report:
    """A reproduced table."""

    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    figures: list[Path] = field(default_factory=list)

    def text(self) -> str:
        """For the screen, or as Markdown."""
        lines = [self.title, "", "| | paper | ours | difference |", "|---|---|---|---|"]
        for row in self.rows:
            digits = 3 if abs(row.ours) < 2 else 2
            spread = "" if row.spread is None else f" ± {row.spread:.{digits}f}"
            paper = "" if row.paper is None else f"{row.paper:.{digits}f}"
            difference = "" if row.difference is None else f"{row.difference:+.{digits}f}"
            lines.append(f"| {row.label} | {paper} | {row.ours:.{digits}f}{spread} | {difference} |")
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes), *(f"\n{path}" for path in self.figures)])

    def save(self, path: Path) -> None:
        """Writes a .csv or .md file."""
        if path.suffix == ".md":
            path.write_text(self.text() + "\n", encoding="utf-8")
            return
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["what", "paper", "ours", "spread", "difference"])
            writer.writerows([row.label, row.paper, row.ours, row.spread, row.difference] for row in self.rows)


@dataclass
class Given:
    """What the user has: tables and images, where figures go, and how much may be computed."""

    nasbench201: str | None = None
    nasbench101: str | None = None
    seeds: int = 10
    processes: int = 1
    folder: Path | None = None
    progress: TextIO | None = None
    images: str | None = None
    device: str = "cpu"
    full: bool = False
    """The paper's sizes, where networks are scored or trained; otherwise those that a CPU can do."""

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.processes < 1:
            raise Theta0Error(f"at least one seed and one process are needed, not {self.seeds} and {self.processes}")

    @cached_property
    def table201(self) -> Table:
        """NAS-Bench-201 with test accuracies."""
        return self._table(self.nasbench201, "nasbench201")

    @cached_property
    def table101(self) -> Table | None:
        """NAS-Bench-101, if it was given."""
        return None if self.nasbench101 is None else self._table(self.nasbench101, "nasbench101")

    @cached_property
    def data(self) -> Data:
        """The images, on the device; with a test set."""
        from theta0.data import load

        if self.images is None:
            raise Theta0Error(
                "this part scores and trains networks: give the paper's CIFAR-10, or other images (--images)"
            )
        found = load(self.images).to(self.device)
        if found.test is None:
            raise Theta0Error(f"errors are of test images, and {self.images} has none; give a data set with both parts")
        return found

    def read(self) -> None:
        """Reads the tables that were named, so that a wrong one is known before anything is made."""
        _ = self.table101
        if self.nasbench201 is not None:
            _ = self.table201

    def _table(self, source: str | None, name: str) -> Table:
        from theta0 import tables

        found = tables.load(source or name)
        if found.space != name:
            raise Theta0Error(f"a table of {name} is needed; {source or name} is of {found.space}: give --{name} FILE")
        return found


Made = Callable[[Given], Report]
papers: Registry[Any] = Registry("paper", "theta0.papers")
_TABLES: dict[str, dict[str, tuple[str, Made]]] = {}


def reproduces(paper: str, what: str, title: str) -> Callable[[Made], Made]:
    """Decorator: makes a table or figure of a paper known."""

    def add(function: Made) -> Made:
        _TABLES.setdefault(paper, {})[what] = (title, function)
        papers.register(f"{paper} {what}")(function)
        return function

    return add


def known() -> dict[str, dict[str, str]]:
    """The titles by paper and by table or figure."""
    papers.names()  # scans
    return {paper: {what: title for what, (title, _) in found.items()} for paper, found in sorted(_TABLES.items())}


def check(paper: str, what: str) -> None:
    """An error for a paper, table or figure that is not known."""
    found = known()
    if paper not in found:
        raise Theta0Error(f"no paper is called {paper!r}; {nearest(paper, found)}")
    if what not in found[paper]:
        raise Theta0Error(f"of {paper} there is no {what!r}; {nearest(what, found[paper])}")


def reproduce(paper: str, what: str, given: Given) -> Report:
    """One table or figure."""
    check(paper, what)
    return _TABLES[paper][what][1](given)
