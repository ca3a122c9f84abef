"""Scores of many architectures of a space: equal ones count once, dead parts are not built, processes share the work.

pool = score_pool(space, architectures, x, y, ["snip", "kappa"], device="cuda", processes=8)
pool["snip"]                    # (n,) float64, in the order of the architectures
pool.save("scores.npz")         # or .csv, .parquet; PoolScores.load reads .npz
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import random
import sys
import time
import zipfile
import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
import torch.multiprocessing as multiprocessing
from numpy.typing import NDArray
from torch import Tensor

from theta0 import kernel
from theta0.errors import DataError, Theta0Error, nearest
from theta0.memory import keep_blocks
from theta0.scoring import ALWAYS, chosen, score
from theta0.space import Measured, Skeleton, Space

_ATTEMPTS = 6
"""How often a network is tried where memory runs out, before its scores are refused."""
_DAMAGE = (OSError, ValueError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What a damaged .npz file, or another file under that name, raises."""
_VALIDITIES = ("ok", "dead", "singular", "overflow", "undefined", "refused")


def check_file(path: str | Path) -> Path:
    """A path to which scores can be written; asked before hours of work."""
    path = Path(path)
    if path.suffix not in (".npz", ".csv", ".parquet"):
        raise Theta0Error(f"scores are written to .npz, .csv or .parquet files, not to {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise Theta0Error(f"there is no folder {path.absolute().parent} to write {path.name!r} to; make it first")
    return path


@dataclass
class PoolScores:
    """A table: a row for each architecture, a column for each score (and the validities beside them)."""

    space: str
    architectures: list[str]
    names: list[str]
    values: NDArray[np.float64]
    """(architectures, names); NaN where an architecture was not reached before a stop."""
    validity: NDArray[np.uint8]
    """The same shape; a place in the list of validities."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Batch, seed, dtype, skeleton, machine, seconds: how the scores were made."""

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """The column called ``name``, or its only variant."""
        return self.values[:, self._column(name)]

    def _column(self, name: str) -> int:
        found = [i for i, known in enumerate(self.names) if name in (known, known.partition(":")[0])]
        if name in self.names:
            return self.names.index(name)
        if len(found) != 1:
            raise Theta0Error(f"{len(found) or 'none'} of these scores is {name!r}; {nearest(name, self.names)}")
        return found[0]

    def valid(self, name: str) -> list[str]:
        """What is to be said of each value of a column."""
        return [_VALIDITIES[code] for code in self.validity[:, self._column(name)]]

    @staticmethod
    def said(code: int) -> str:
        """The validity of a code."""
        return _VALIDITIES[code]

    @staticmethod
    def code(said: str) -> int:
        """The code of a validity."""
        return _VALIDITIES.index(said)

    def frame(self) -> Any:
        """A pandas DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise Theta0Error("a DataFrame needs pandas; pip install pandas") from error
        columns: dict[str, Any] = {"architecture": self.architectures}
        for name in self.names:
            columns[name] = self[name]
            columns[f"{name} validity"] = self.valid(name)
        return pandas.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Writes .npz (with all facts), .csv or .parquet; the file appears whole or not at all."""
        path = check_file(path)
        writers = {".npz": self._npz, ".csv": self._csv, ".parquet": self._parquet}
        part = path.with_name(f".{path.name}.part{path.suffix}")
        try:
            writers[path.suffix](part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def _npz(self, path: Path) -> None:
        np.savez_compressed(
            path,
            space=self.space,
            architectures=np.array(self.architectures),
            names=np.array(self.names),
            values=self.values,
            validity=self.validity,
            facts=json.dumps(self.facts),
        )

    def _csv(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["architecture", *(part for name in self.names for part in (name, f"{name} validity"))])
            for text, values, codes in zip(self.architectures, self.values.tolist(), self.validity, strict=True):
                pairs = zip(values, codes, strict=True)
                writer.writerow([text, *(part for value, code in pairs for part in (repr(value), _VALIDITIES[code]))])

    def _parquet(self, path: Path) -> None:
        self.frame().to_parquet(path, index=False)

    @classmethod
    def load(cls, path: str | Path) -> PoolScores:
        """Reads what ``save`` wrote to a .npz file."""
        wanted = ("space", "architectures", "names", "values", "validity", "facts")
        try:
            # numpy leaves a file open that it cannot read.
            with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                missing = [key for key in wanted if key not in file.files]
                if missing:
                    raise DataError(f"{path}: expected a score file, found no {', '.join(missing)}; another file")
                entries = {key: file[key] for key in wanted}
                facts = json.loads(str(entries["facts"]))
        except _DAMAGE as error:
            if isinstance(error, Theta0Error):
                raise
            raise DataError(f"{path}: expected a score file (.npz), found: {error}") from error
        texts, names = entries["architectures"].tolist(), entries["names"].tolist()
        if entries["values"].shape != (len(texts), len(names)) or entries["validity"].shape != entries["values"].shape:
            raise DataError(
                f"{path}: expected values for {len(texts)} architectures and {len(names)} scores, "
                f"found {entries['values'].shape}; the file is damaged"
            )
        return cls(
            str(entries["space"]), texts, names, entries["values"].astype(np.float64), entries["validity"], facts
        )


STAND_IN = {"imagenet16": "tiny16"}
"""Scores come with theta0 of these images in place of those, which are not free to get."""


def _shipped(space: str, data: str) -> Path:
    return Path(__file__).parent / "scores" / f"{space}-{STAND_IN.get(data, data)}.npz"


def is_shipped(space: str, data: str) -> bool:
    """Whether scores of this space on this data come with theta0."""
    return _shipped(space, data).is_file()


def shipped(space: str, data: str) -> PoolScores:
    """The scores of a whole space that come with theta0: made by ``theta0 score``, see the table's facts."""
    path = _shipped(space, data)
    if not path.is_file():
        known = [file.stem for file in path.parent.glob("*.npz")]
        raise Theta0Error(f"no scores of {space} on {data} come with theta0; {nearest(path.stem, known)}")
    return PoolScores.load(path)


@dataclass(frozen=True)
class _Work:
    """What every process needs to know."""

    space: Space[Any]
    skeleton: Skeleton
    """As it is built."""
    whole: Skeleton
    """As it is counted: with parts that cannot reach the output."""
    x: Tensor
    y: Tensor
    scores: list[str]
    seed: int
    initialization: str
    device: str
    dtype: torch.dtype | None


Task = tuple[Any, list[Any]]
"""An architecture whose network is scored, and all that share its scores."""
Row = tuple[list[float], list[int], list[Measured]]
"""Scores and validities of one network, and what each of its architectures costs."""


def score_pool(
    space: Space[Any],
    architectures: Iterable[Any],
    x: Tensor,
    y: Tensor,
    scores: Iterable[str] | str | None = None,
    *,
    skeleton: Skeleton | str | None = None,
    seed: int = 0,
    initialization: str = "torch",
    device: str = "cpu",
    processes: int = 1,
    fold: bool = True,
    dtype: torch.dtype | None = None,
    progress: TextIO | None = None,
    **changes: Any,
) -> PoolScores:
    """Scores of architectures of a space, on one batch x (N, C, H, W), y (N,); parameters and FLOPs stand beside them.

    All networks are built with the same ``seed``, so that a value depends neither on the order nor on the rest of the
    pool. ``fold`` scores architectures with one canonical form once. Stopped by the keyboard, it returns what is done.
    """
    listed = list(architectures)
    if not listed:
        raise Theta0Error("the pool is empty; give at least one architecture")
    if processes < 1:
        raise Theta0Error(f"processes must be at least 1, not {processes}")
    options = space.options(skeleton, **{"shape": tuple(x.shape[1:]), **changes})
    if int(y.max()) >= options.classes:
        raise Theta0Error(f"labels run from 0 to {options.classes - 1}; found {int(y.max())}; say classes=")
    live = "live" in {one.name for one in dataclass_fields(options)}
    built = space.options(options, live=True) if live else options
    names = [f"{name}:{variant}" for name, variant, _ in chosen(scores) if name not in ALWAYS]
    groups: dict[Hashable, list[int]] = {}
    for i, architecture in enumerate(listed):
        groups.setdefault(space.canonical(architecture) if fold else i, []).append(i)
    work = _Work(space, built, options, x.cpu(), y.cpu(), names, seed, initialization, device, dtype)
    values = np.full((len(listed), len(names)), np.nan)
    costs = np.full((len(listed), 2), np.nan)
    validity = np.full((len(listed), len(names)), _VALIDITIES.index("undefined"), dtype=np.uint8)
    start, done = time.perf_counter(), 0
    members = list(groups.values())
    try:
        tasks = [(listed[places[0]], [listed[place] for place in places]) for places in members]
        for number, (row, codes, counted) in _results(work, tasks, processes):
            places = members[number]
            values[places], validity[places], costs[places] = row, codes, counted
            done += 1
            _show(progress, done, len(members), time.perf_counter() - start)
    except KeyboardInterrupt:
        print(f"\nstopped: {done} of {len(members)} networks are scored", file=sys.stderr)
    facts = {
        "batch": len(x),
        "seed": seed,
        "initialization": initialization,
        "dtype": str(dtype or torch.float32).removeprefix("torch."),
        "skeleton": {one.name: getattr(built, one.name) for one in dataclass_fields(built)},
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "networks": len(members),
        "scored": done,
        "seconds": round(time.perf_counter() - start, 2),
        "processes": processes,
        "torch": torch.__version__,
    }
    return PoolScores(
        space.name,
        [space.format(architecture) for architecture in listed],
        [*ALWAYS, *names],
        np.concatenate([costs, values], axis=1),
        np.concatenate(
            [np.where(np.isnan(costs), _VALIDITIES.index("undefined"), 0).astype(np.uint8), validity], axis=1
        ),
        facts,
    )


def _results(work: _Work, tasks: Sequence[Task], processes: int) -> Iterator[tuple[int, Row]]:
    if processes == 1:
        for number, task in enumerate(tasks):
            yield number, _row(work, task)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _start, (work, max(1, torch.get_num_threads() // processes))) as pool:
        yield from pool.imap_unordered(_task, enumerate(tasks), chunksize=1)


_work: _Work | None = None


def _start(work: _Work, threads: int) -> None:
    global _work
    torch.set_num_threads(threads)
    keep_blocks()
    _work = work


def _task(numbered: tuple[int, Task]) -> tuple[int, Row]:
    assert _work is not None
    number, task = numbered
    return number, _row(_work, task)


def _row(work: _Work, task: Task) -> Row:
    architecture, sharing = task
    return *_scored(work, architecture), [work.space.measure(one, work.whole) for one in sharing]


def _scored(work: _Work, architecture: Any) -> tuple[list[float], list[int]]:
    """One network; where memory runs out, again in smaller pieces, and later, when other processes have less."""
    model = work.space.build(architecture, work.skeleton, seed=work.seed, initialization=work.initialization)
    for attempt in range(_ATTEMPTS):
        try:
            with kernel.small_pieces() if attempt else contextlib.nullcontext():
                model = model.to(work.device)
                x, y = work.x.to(work.device), work.y.to(work.device)
                records = score(model, x, y, work.scores, dtype=work.dtype, seed=work.seed)
        except torch.cuda.OutOfMemoryError:
            _give_back(work.device, at_once=True)
            time.sleep(attempt * random.uniform(1, 3))
            continue
        _give_back(work.device)
        return [record.value for record in records], [_VALIDITIES.index(record.validity) for record in records]
    return [math.nan] * len(work.scores), [_VALIDITIES.index("refused")] * len(work.scores)


def _give_back(device: str, *, at_once: bool = False) -> None:
    """Leaves memory that this process only keeps in store to the others, where little is left."""
    if device.startswith("cuda") and torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        if at_once or free < 0.2 * total:
            torch.cuda.empty_cache()


def _show(out: TextIO | None, done: int, total: int, seconds: float) -> None:
    """A line that tells how far it is and how long it will take."""
    if out is None:
        return
    left = seconds / done * (total - done)
    end = "\n" if done == total else ""
    if out.isatty():
        print(f"\r{done} of {total} networks, {left:.0f} s left ", end=end, file=out, flush=True)
    elif done == total or done % max(1, total // 20) == 0:
        print(f"{done} of {total} networks, {left:.0f} s left", file=out, flush=True)
