"""The records of the official NAS-Bench-201 and NATS-Bench files, collected to a table.

A schedule (12 or 200 epochs) of a cell has trials by (data set, seed); a trial has accuracies by "set@epoch", seconds
by epoch, parameters and multiply-adds in millions, latencies in seconds for a batch of 256. The splits are those of the
paper: CIFAR-10's validation accuracy comes from the trials called ``cifar10-valid``, trained on half of the training
images, its test accuracy from ``cifar10``, trained on all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from theta0.errors import DataError
from theta0.tables.table import Table, Trained

SCHEDULES = {"12": 12, "200": 200, "less": 12, "full": 200}
"""Epochs by the name of a schedule: NATS-Bench's, then NAS-Bench-201's. The schedule of one epoch is left out."""


class _Split(NamedTuple):
    dataset: str
    validation: tuple[str, str]
    test: tuple[str, str]


_SPLITS = (
    _Split("cifar10", ("cifar10-valid", "x-valid"), ("cifar10", "ori-test")),
    _Split("cifar100", ("cifar100", "x-valid"), ("cifar100", "x-test")),
    _Split("imagenet16", ("ImageNet16-120", "x-valid"), ("ImageNet16-120", "x-test")),
)
_CURVES = ("train_acc1es", "train_acc5es", "train_losses", "train_times", "eval_acc1es", "eval_times", "eval_losses")


def shrink(filled: dict[Any, Any]) -> None:
    """Leaves of a trial that has just been read only what :class:`Collector` asks for: a hundredth of it."""
    if not all(name in filled for name in (*_CURVES, "epochs", "latency", "params", "flop")):
        return
    last = f"@{_number(filled['epochs']) - 1:.0f}"
    times = filled["train_times"]
    for name in _CURVES:
        curve = filled[name]
        if not isinstance(curve, dict):
            continue
        if name == "eval_acc1es":
            kept = {key: value for key, value in curve.items() if isinstance(key, str) and key.endswith(last)}
        else:
            kept = {"sum": _total(times)} if curve is times else {}
        # In place: the pickle's memory holds on to the dictionary itself.
        curve.clear()
        curve.update(kept)


class Collector:
    """Takes one cell after the other and makes the table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cells: list[str] = []
        self._seen: dict[int, str] = {}
        self._accuracies: dict[tuple[str, int, str], list[list[float]]] = defaultdict(list)
        self._seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        self._costs: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, index: int, cell: str, schedules: Mapping[Any, Any]) -> None:
        """The records of cell number ``index``."""
        known = {SCHEDULES[name]: state for name, state in schedules.items() if name in SCHEDULES}
        if not known:
            raise self._error(index, f"one of the schedules {', '.join(SCHEDULES)}", f"{list(schedules)[:5]}")
        if index in self._seen:
            raise self._error(index, "each cell once", "it a second time")
        self._seen[index] = cell
        self._cells.append(cell)
        longest = max(known)
        for epochs, state in known.items():
            trials = state.get("all_results") if isinstance(state, dict) else None
            if not isinstance(trials, dict):
                raise self._error(index, "a schedule with all_results", type(state).__name__)
            if state.get("arch_str", cell) != cell:
                raise self._error(index, f"the records of {cell}", f"those of {state['arch_str']}")
            for split in _SPLITS:
                self._split(index, split, trials, epochs, costs=epochs == longest)

    def _split(self, index: int, split: _Split, trials: dict[Any, Any], epochs: int, costs: bool) -> None:
        chosen = self._trials(index, trials, split.validation[0], epochs)
        if not chosen:
            return
        for kind, (name, part) in (("validation", split.validation), ("test", split.test)):
            tested = chosen if name == split.validation[0] else self._trials(index, trials, name, epochs)
            if tested:
                values = [self._accuracy(index, trial, f"{part}@{epochs - 1}") for trial in tested]
                self._accuracies[split.dataset, epochs, kind].append(values)
        times = [trial["train_times"] for trial in chosen if isinstance(trial["train_times"], dict)]
        if times:
            self._seconds[split.dataset, epochs].append(float(np.mean([_total(each) for each in times])))
        if costs:
            millions = {"parameters": "params", "flops": "flop"}
            for name, field in millions.items():
                self._costs[split.dataset, name].append(round(_number(chosen[0][field]) * 1e6))
            latencies = [_number(value) for trial in chosen for value in trial["latency"] or () if _number(value) > 0]
            if latencies:
                self._costs[split.dataset, "gpu_latency"].append(1000 * float(np.mean(latencies)))

    def _trials(self, index: int, trials: dict[Any, Any], name: str, epochs: int) -> list[dict[str, Any]]:
        """The trials on a data set by seed, each with what is needed."""
        found = []
        for key in sorted(key for key in trials if isinstance(key, tuple) and len(key) == 2 and key[0] == name):
            trial = trials[key]
            wanted = ("eval_acc1es", "train_times", "params", "flop", "epochs", "latency")
            if not isinstance(trial, dict) or any(field not in trial for field in wanted):
                raise self._error(index, f"a trial with {', '.join(wanted)}", f"{key} without")
            if trial["epochs"] != epochs:
                raise self._error(index, f"a trial of {epochs} epochs", f"{trial['epochs']} for {key}")
            found.append(trial)
        return found

    def _accuracy(self, index: int, trial: dict[str, Any], key: str) -> float:
        accuracies = trial["eval_acc1es"]
        if not isinstance(accuracies, dict) or key not in accuracies:
            raise self._error(index, f"an accuracy {key}", "none")
        return _number(accuracies[key])

    def table(self, name: str, source: str) -> Table:
        """All of it."""
        if not self._cells:
            raise DataError(f"{self.path}: expected cells with results, found none; this is another file")
        # The order of the benchmark, whatever the order of the file.
        order = np.argsort(list(self._seen))
        trained: dict[tuple[str, int], Trained] = {}
        for dataset, epochs, kind in sorted(self._accuracies, key=_rank):
            if kind == "test":
                continue
            test = self._accuracies.get((dataset, epochs, "test"))
            trained[dataset, epochs] = Trained(
                self._padded(self._accuracies[dataset, epochs, kind], f"{dataset}, {epochs} epochs", order),
                self._time(dataset, epochs, order),
                None if test is None else self._padded(test, f"{dataset}, {epochs} epochs, test", order),
            )
        costs = {
            key: self._whole(values, f"{key[1]} on {key[0]}")[order]
            for key, values in self._costs.items()
            if key[1] != "gpu_latency" or len(values) == len(self._cells)
        }
        return Table(name, "nasbench201", source, tuple(self._cells[i] for i in order), trained, costs)

    def _time(self, dataset: str, epochs: int, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """The recorded seconds; else a part of those of the longest schedule."""
        longest = max(known for name, known, _ in self._accuracies if name == dataset)
        used = epochs if self._seconds[dataset, epochs] else longest
        return self._whole(self._seconds[dataset, used], f"seconds on {dataset}, {used} epochs")[order] * epochs / used

    def _whole(self, values: list[float], what: str) -> NDArray[np.float64]:
        if len(values) != len(self._cells):
            raise DataError(
                f"{self.path}: expected {what} for all of {len(self._cells):,} cells, found {len(values):,}; "
                f"the file is cut short or another one"
            )
        return np.array(values, dtype=np.float64)

    def _padded(self, runs: list[list[float]], what: str, order: NDArray[np.int64]) -> NDArray[np.float64]:
        if len(runs) != len(self._cells):
            raise DataError(
                f"{self.path}: expected accuracies for all of {len(self._cells):,} cells, found {len(runs):,}: {what}; "
                f"the file is cut short or another one"
            )
        values = np.full((max(map(len, runs)), len(runs)), np.nan)
        for row, each in enumerate(runs):
            values[: len(each), row] = each
        return np.ascontiguousarray(values[:, order])

    def _error(self, index: int, expected: str, found: str) -> DataError:
        return DataError(f"{self.path}: cell {index}: expected {expected}, found {found}; this is another layout")


def _rank(key: tuple[str, int, str]) -> tuple[int, int]:
    return [split.dataset for split in _SPLITS].index(key[0]), key[1]


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"a {type(value).__name__} where a number belongs")
    return float(value)


def _total(times: object) -> float:
    """Seconds of all epochs."""
    if not isinstance(times, dict):
        return np.nan
    return sum(_number(value) for value in times.values())
