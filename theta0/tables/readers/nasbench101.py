"""The official NAS-Bench-101 files (Ying et al., ICML 2019): ``nasbench_full.tfrecord``, ``nasbench_only108.tfrecord``.

A record is one training, a JSON list of the cell's hash, the epochs, the adjacency matrix row by row as zeros and ones,
the operations with commas between, and in base64 a message with the parameters and evaluations at the start, halfway
and at the end. Accuracies of the end are taken, and the seconds of training until then.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from theta0.errors import DataError
from theta0.spaces.nasbench101 import NASBench101, format_matrix, graph_hash
from theta0.tables.meter import Meter
from theta0.tables.protobuf import double, fields
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table, Trained
from theta0.tables.tfrecord import records

DATASET = "cifar10"
_EVALUATIONS = 3  # start, halfway, end


class _Training(NamedTuple):
    seconds: float
    validation: float
    test: float
    parameters: int


@readers.register("nasbench101")
class NASBench101File(Reader):
    """One .tfrecord file."""

    wants = "a file nasbench_full.tfrecord or nasbench_only108.tfrecord"
    slow = True

    def matches(self, path: Path) -> bool:
        """By its suffix."""
        return path.suffix == ".tfrecord"

    def read(self, path: Path, meter: Meter) -> Table:
        """The table, rows in the order of the file."""
        size, rows = path.stat().st_size, _Rows()
        for number, record in enumerate(records(path, lambda position: meter.show(position, size))):
            try:
                rows.add(record)
            except (ValueError, TypeError, KeyError, binascii.Error) as error:
                raise DataError(
                    f"{path}: record {number}: expected a training of NAS-Bench-101, found {error}; another file"
                ) from error
        return rows.table(path)


class _Rows:
    """Trainings in flat arrays by budget: five million of them are too many for objects."""

    def __init__(self) -> None:
        self.space = NASBench101()
        self.rows: dict[str, int] = {}
        self.cells: list[str] = []
        self.parameters: list[float] = []
        self.trainings: dict[int, tuple[array[int], array[float], array[float], array[float]]] = {}

    def add(self, record: bytes) -> None:
        content = json.loads(record)
        if not isinstance(content, list) or len(content) != 5:
            raise ValueError("a record without its five parts")
        key, epochs, adjacency, operations, message = content
        if not isinstance(key, str) or type(epochs) is not int or epochs < 1:
            raise ValueError(f"the hash {key!r} and {epochs!r} epochs")
        training = _training(base64.b64decode(message, validate=True), epochs)
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = len(self.rows)
            self.cells.append(self._cell(key, adjacency, operations))
            self.parameters.append(training.parameters)
        lists = self.trainings.setdefault(epochs, (array("q"), array("d"), array("d"), array("d")))
        lists[0].append(row)
        for values, value in zip(lists[1:], (training.validation, training.test, training.seconds), strict=True):
            values.append(value)

    def _cell(self, key: str, adjacency: str, operations: str) -> str:
        side, ops = math.isqrt(len(adjacency)), operations.split(",")
        if side**2 != len(adjacency) or not set(adjacency) <= {"0", "1"}:
            raise ValueError(f"the matrix {adjacency!r:.60}")
        matrix = [[int(entry) for entry in adjacency[side * i : side * (i + 1)]] for i in range(side)]
        cell = self.space.parse(f"{json.dumps(matrix)} {json.dumps(ops)}")
        if (found := graph_hash(cell)) != key:
            raise ValueError(f"a cell whose hash is {found}, not {key}")
        return format_matrix(cell)

    def table(self, path: Path) -> Table:
        trained: dict[tuple[str, int], Trained] = {}
        count = len(self.rows)
        for epochs, (row_list, *value_lists) in sorted(self.trainings.items()):
            rows = np.frombuffer(row_list, dtype=np.int64)
            repeats = np.bincount(rows, minlength=count)
            if repeats.min() != repeats.max():
                short = int(repeats.argmin())
                raise DataError(
                    f"{path}: expected as many trainings of {epochs} epochs for each of {count:,} cells, found "
                    f"{repeats[short]} for {self.cells[short]} and {repeats.max()} for another; the file was cut "
                    f"short: download it again"
                )
            # Stable: the runs of a cell stay in the order of the file.
            order = np.argsort(rows, kind="stable").reshape(count, -1).T
            validation, test, seconds = (np.frombuffer(values, dtype=np.float64)[order] for values in value_lists)
            trained[DATASET, epochs] = Trained(100 * validation, seconds.mean(axis=0), 100 * test)
        if not trained:
            raise DataError(f"{path}: expected trainings of NAS-Bench-101, found an empty file; download it again")
        return Table(
            "NAS-Bench-101",
            "nasbench101",
            f"NAS-Bench-101, {path.name}",
            tuple(self.cells),
            trained,
            {(DATASET, "parameters"): np.array(self.parameters, dtype=np.float64)},
            keys=tuple(self.rows),
        )


def _training(message: bytes, epochs: int) -> _Training:
    """What the message of a training says of its end."""
    evaluations, parameters = [], None
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            evaluations.append(value)
        elif number == 2 and isinstance(value, int):
            parameters = value
    if len(evaluations) != _EVALUATIONS or parameters is None:
        raise ValueError(f"{len(evaluations)} evaluations and {parameters} parameters, not {_EVALUATIONS} and some")
    end = {number: double(value) for number, value in fields(evaluations[-1]) if number in (1, 2, 4, 5)}
    if len(end) != 4 or round(end[1]) != epochs:
        raise ValueError(f"a last evaluation after {end.get(1)} of {epochs} epochs with {len(end)} of 4 numbers")
    return _Training(end[2], end[4], end[5], parameters)
