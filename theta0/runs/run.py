"""One run: what a search was asked, what it has found so far, and who works on it.

    with Run.create(None, {"data": "digits", "fingerprint": "...", "space": "nasbench201", "searcher": "hnas",
                           "seed": 0}) as run:
        with run.working() as end:
            run.claim(0, architecture, 12)          # in flight: after a crash it is known, and repeated
            run.add_trial(trial)                    # on the disk when this returns
            end["chosen"] = text

    run = Run.find("latest")                        # for reading: nothing in the folder is changed
    run.state, run.trials(), run.events(), run.path / "scores.npz"

Any number of processes may have one run open. Each opens it by itself: a forked child cannot use its parent's.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from theta0.environment import environment
from theta0.errors import DataError, Theta0Error, nearest
from theta0.places import runs_root
from theta0.runs import database, folders, trials
from theta0.runs.database import Database
from theta0.runs.holding import Hold, held
from theta0.runs.records import Evaluation, Event, Process, State
from theta0.space import Space, get_space

if TYPE_CHECKING:
    from theta0.pool import PoolScores
    from theta0.searching import Trial

SETTINGS = ("data", "fingerprint", "space", "searcher", "seed")
"""What the settings of every run must tell; a search adds all the rest."""
_TURNS: dict[str, State] = {"began": "stopped", "stopped": "stopped", "finished": "finished", "failed": "failed"}
"""Events between which a run is worked on, and what it is after each if no process lives."""


class Run:
    """A run that is open; :meth:`create`, :meth:`open` and :meth:`find` give one."""

    def __init__(self, path: Path, database: Database, hold: Hold | None) -> None:
        self.path, self._database, self._hold = path, database, hold
        self._owner = os.getpid()
        self._process = self._enter(hold) if hold else None

    @classmethod
    def create(cls, root: str | os.PathLike[str] | None, settings: Mapping[str, Any]) -> Run:
        """A new run in a folder of its own, open for writing.

        ``root`` is the folder of runs: by default the environment's THETA0_RUNS, else ``runs`` in the current folder.
        What :data:`SETTINGS` names must be in ``settings``.
        """
        for key in SETTINGS:
            if key not in settings:
                raise Theta0Error(f"the settings of a run tell {', '.join(SETTINGS)}; {key} is missing")
        content = {"settings": dict(settings), "environment": environment(), "created": time.time()}
        texts = {key: _json(value, f"the {key} of a run") for key, value in content.items()}
        path = folders.make(runs_root(root), str(settings["data"]), lambda part: database.make(part, texts))
        return cls.open(path, write=True)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, write: bool = False) -> Run:
        """The run in the folder ``path``; without ``write`` nothing in it is changed."""
        path = Path(path)
        opened = Database(path, write=write)
        hold = None
        try:
            if write:
                hold = Hold(path)
            return cls(path, opened, hold)
        except BaseException as error:
            if hold is not None:
                hold.release()
            opened.close()
            if isinstance(error, OSError):
                raise DataError(
                    f"{path}: the run cannot be written: {error.strerror or error}; make room or get permission, or "
                    f"copy the folder to where you have both"
                ) from error
            raise

    @classmethod
    def find(cls, name: str, root: str | os.PathLike[str] | None = None, *, write: bool = False) -> Run:
        """The run by its name, by the path of its folder, or the ``latest`` of those that can be read."""
        place = runs_root(root)
        if name == "latest":
            begun = {}
            for folder in folders.folders(place):
                with contextlib.suppress(DataError), cls.open(folder) as run:  # `theta0 runs` tells what is wrong
                    begun[run.created] = folder
            if not begun:
                raise Theta0Error(f"there are no runs in {place}; make one, or say where they are (--root)")
            return cls.open(begun[max(begun)], write=write)
        path = place / name if (place / name).is_dir() else Path(name)
        if not path.is_dir():
            known = ["latest", *(folder.name for folder in folders.folders(place)[-20:])]
            raise Theta0Error(f"there is no run {name!r} in {place}; {nearest(name, known)}")
        return cls.open(path, write=write)

    def close(self) -> None:
        """Ends the hold on the run; what was added is there already, and can still be read."""
        self._database.close()
        if self._hold is not None and self._owner == os.getpid():
            self._hold.release()
            self._hold = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What was asked.

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.absolute().name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The full settings of the search."""
        return dict(self._told("settings"))

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The command line, versions, revision and machine of the process that made the run."""
        return dict(self._told("environment"))

    @cached_property
    def created(self) -> float:
        """When, in seconds since 1970."""
        return float(self._told("created"))

    @cached_property
    def space(self) -> Space[Any]:
        """Where it searches."""
        return get_space(self.settings["space"])

    def _told(self, key: str) -> Any:
        return json.loads(self._database.query("SELECT value FROM settings WHERE key = ?", (key,))[0]["value"])

    # Who works on it.

    def processes(self) -> dict[int, Process]:
        """All that ever opened the run for writing, by their number."""
        rows = self._database.query("SELECT * FROM processes ORDER BY id")
        return {
            row["id"]: Process(row["host"], row["pid"], row["opened"], held(self.path, row["lock"])) for row in rows
        }

    @property
    def state(self) -> State:
        """Running while a process that began to work lives; else as the last one left it, or stopped."""
        turns = [event for event in self.events() if event.kind in _TURNS]
        last = {event.process: event.kind for event in turns}
        if any(process.alive and last.get(number) == "began" for number, process in self.processes().items()):
            return "running"
        return _TURNS[turns[-1].kind] if turns else "stopped"

    @contextlib.contextmanager
    def working(self) -> Iterator[dict[str, Any]]:
        """Notes that work on the run begins, and how it ends: finished, failed, or stopped by the user.

        What is put into the dict is kept with a good end.
        """
        self.event("began")
        facts: dict[str, Any] = {}
        try:
            yield facts
        except BaseException as error:
            with contextlib.suppress(DataError):  # a full disk may be why; the error itself goes on
                if isinstance(error, Exception):
                    self.event("failed", error=f"{type(error).__name__}: {error}")
                else:
                    self.event("stopped")
            raise
        self.event("finished", **facts)

    def _enter(self, hold: Hold) -> int:
        with self._database.transaction() as change:
            for row in change.execute("SELECT lock FROM processes").fetchall():
                if not held(self.path, row["lock"]):  # of a process that was killed
                    (self.path / row["lock"]).unlink(missing_ok=True)
            entry = (platform.node(), os.getpid(), time.time(), hold.name)
            made = change.execute("INSERT INTO processes (host, pid, opened, lock) VALUES (?, ?, ?, ?)", entry)
            assert made.lastrowid is not None
            return made.lastrowid

    # Trials.

    def evaluations(self) -> list[Evaluation]:
        """The trials as they are stored, those in flight too, by their number."""
        return [trials.evaluation(row) for row in self._database.query("SELECT * FROM trials ORDER BY number")]

    def unfinished(self) -> list[Evaluation]:
        """The trials in flight: claimed by a process that evaluates them, or that died while it did."""
        return [evaluation for evaluation in self.evaluations() if evaluation.finished is None]

    def trials(self) -> list[Trial]:
        """The finished trials: what :func:`theta0.searching.run` goes on from."""
        from theta0.searching import Trial

        return [
            Trial(
                one.number,
                self.space.parse(one.architecture),
                one.epochs,
                one.value,
                one.seconds,
                one.spent,
                one.note,
                one.why,
            )
            for one in self.evaluations()
            if one.finished is not None
        ]

    @property
    def incumbent(self) -> Evaluation | None:
        """The trial of best accuracy at the longest training; the first of equal ones."""
        rows = self._database.query(
            "SELECT * FROM trials WHERE finished IS NOT NULL AND value IS NOT NULL "
            "ORDER BY epochs DESC, value DESC, number LIMIT 1"
        )
        return trials.evaluation(rows[0]) if rows else None

    def claim(self, number: int | None, architecture: Any, epochs: int, *, seed: int | None = None) -> int:
        """Says that this process evaluates trial ``number``, or the next one if that is None; gives its number.

        Only one process can have a trial. One whose process died is taken over, and begun again.
        """
        text = self.space.format(architecture)
        with self._changing(durable=False) as (change, process):
            number, again = trials.claim(change, self.path, process, number, text, int(epochs), seed)
            if again:
                change.execute("DELETE FROM curves WHERE name = ?", (str(number),))
                self._note(change, "repeats", {"trial": number})
            return number

    def add_trial(self, trial: Trial) -> None:
        """Keeps a trial that is finished; it is on the disk when this returns."""
        done = Evaluation(
            trial.number,
            self.space.format(trial.architecture),
            int(trial.epochs),
            float(trial.value),
            float(trial.seconds),
            float(trial.spent),
            trial.note,
            {name: float(value) for name, value in trial.why.items()},
        )
        with self._changing() as (change, process):
            trials.finish(change, self.path, process, done)

    # Training histories.

    def add_point(self, curve: int | str, epoch: int, **facts: float) -> None:
        """Keeps one epoch of a training: of the trial with this number, or of one with a name, such as final."""
        values = _json({name: float(value) for name, value in facts.items()}, "a point of a curve")
        with self._changing(durable=False) as (change, _):
            change.execute("INSERT OR REPLACE INTO curves VALUES (?, ?, ?)", (str(curve), int(epoch), values))

    def curves(self) -> dict[str, list[dict[str, float]]]:
        """The points of each training, with their ``epoch``, by the number of the trial or the name."""
        found: dict[str, list[dict[str, float]]] = {}
        for row in self._database.query("SELECT * FROM curves ORDER BY name, epoch"):
            found.setdefault(row["name"], []).append({"epoch": row["epoch"], **json.loads(row["facts"])})
        return found

    # Scores.

    def add_scores(self, scores: PoolScores) -> None:
        """Keeps the scores of architectures, in place of earlier ones by the same name.

        For thousands of architectures a file beside the database is smaller: ``scores.save(run.path / "pool.npz")``.
        """
        from theta0.runs.scores import add

        if scores.space != self.space.name:
            raise Theta0Error(f"the run {self.name} is in {self.space.name}, the scores are of {scores.space}")
        with self._changing() as (change, _):
            add(change, scores)
            self._note(change, "scored", scores.facts)

    def scores(self) -> PoolScores:
        """All scores, undefined where one was not asked for; the facts are those of the last that were added."""
        from theta0.runs.scores import read

        rows = self._database.query("SELECT * FROM scores ORDER BY rowid")
        facts = [dict(event.facts) for event in self.events() if event.kind == "scored"]
        return read(self.space.name, rows, facts[-1] if facts else {})

    # Events.

    def event(self, kind: str, **facts: Any) -> None:
        """Notes that something happened."""
        with self._changing() as (change, _):
            self._note(change, kind, facts)

    def events(self) -> list[Event]:
        """What happened, in its order."""
        rows = self._database.query("SELECT * FROM events ORDER BY id")
        return [Event(row["time"], row["kind"], json.loads(row["facts"]), row["process"]) for row in rows]

    @contextlib.contextmanager
    def _changing(self, *, durable: bool = True) -> Iterator[tuple[sqlite3.Connection, int]]:
        """A transaction, and the number of this process."""
        with self._database.transaction(durable=durable) as change:
            assert self._process is not None
            yield change, self._process

    def _note(self, change: sqlite3.Connection, kind: str, facts: Mapping[str, Any]) -> None:
        entry = (time.time(), self._process, kind, _json(facts, f"the event {kind!r}"))
        change.execute("INSERT INTO events (time, process, kind, facts) VALUES (?, ?, ?, ?)", entry)


def _json(value: Any, what: str) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise Theta0Error(f"{what} must be plain texts, numbers, lists and dicts: {error}") from error
