"""The trials of a run in its database: claimed before they are evaluated, finished in one step, never both or neither.

A claim belongs to a process. While that lives nobody else can have the trial; when it has died anybody may take it.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from pathlib import Path

from theta0.errors import Theta0Error
from theta0.runs.holding import held
from theta0.runs.records import Evaluation


def claim(
    change: sqlite3.Connection,
    folder: Path,
    process: int,
    number: int | None,
    architecture: str,
    epochs: int,
    seed: int | None,
) -> tuple[int, bool]:
    """Gives trial ``number``, or the next one, to ``process``: its number, and whether it was begun before."""
    if number is None:
        number = int(change.execute("SELECT coalesce(max(number) + 1, 0) FROM trials").fetchone()[0])
    again = _free(change, folder, process, number, architecture, epochs)
    if not again:
        _insert(change, process, number, architecture, epochs)
    change.execute(
        "UPDATE trials SET seed = ?, process = ?, started = ? WHERE number = ?", (seed, process, time.time(), number)
    )
    return number, again


def finish(change: sqlite3.Connection, folder: Path, process: int, done: Evaluation) -> None:
    """Keeps a finished trial, claimed by ``process`` or by nobody; seed and start are those of the claim."""
    if not _free(change, folder, process, done.number, done.architecture, done.epochs):
        _insert(change, process, done.number, done.architecture, done.epochs)
    value = None if math.isnan(done.value) else done.value  # SQLite has no NaN
    change.execute(
        "UPDATE trials SET process = ?, value = ?, seconds = ?, spent = ?, note = ?, why = ?, finished = ? "
        "WHERE number = ?",
        (process, value, done.seconds, done.spent, done.note, json.dumps(dict(done.why)), time.time(), done.number),
    )


def evaluation(row: sqlite3.Row) -> Evaluation:
    """A row of the table."""
    values = dict(row)
    for name in ("value", "seconds", "spent"):
        values[name] = math.nan if values[name] is None else values[name]
    return Evaluation(**{**values, "why": json.loads(values["why"])})


def _insert(change: sqlite3.Connection, process: int, number: int, architecture: str, epochs: int) -> None:
    change.execute(
        "INSERT INTO trials (number, architecture, epochs, process) VALUES (?, ?, ?, ?)",
        (number, architecture, epochs, process),
    )


def _free(change: sqlite3.Connection, folder: Path, process: int, number: int, architecture: str, epochs: int) -> bool:
    """Whether trial ``number`` has a claim, which ``process`` must be free to take, for the same evaluation."""
    known = change.execute("SELECT * FROM trials WHERE number = ?", (number,)).fetchone()
    if known is None:
        return False
    if known["finished"] is not None:
        raise Theta0Error(f"trial {number} of {folder.name} is finished already; go on with the one after the last")
    if known["process"] != process:
        owner = change.execute("SELECT * FROM processes WHERE id = ?", (known["process"],)).fetchone()
        if held(folder, owner["lock"]):
            raise Theta0Error(
                f"trial {number} of {folder.name} is being evaluated by process {owner['pid']} of {owner['host']}; "
                f"wait for it, or stop it"
            )
    if (known["architecture"], known["epochs"]) != (architecture, epochs):
        raise Theta0Error(
            f"trial {number} of {folder.name} was begun with {known['architecture']}, {known['epochs']} epochs, but "
            f"now it is {architecture}, {epochs}; the run is of another search, seed or version"
        )
    return True
