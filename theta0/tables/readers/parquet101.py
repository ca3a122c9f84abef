"""Cells of NAS-Bench-101 as a compact Parquet file: validation accuracy of one run at four budgets, no test accuracy.

Columns: ``hash``, ``adj`` (the matrix row by row as zeros and ones), ``ops`` (operations of the inner vertices, commas
between), ``val4`` to ``val108``, ``train_time_s`` (of 108 epochs), ``params``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from theta0.errors import DataError, ParseError, Theta0Error
from theta0.spaces.nasbench101 import NASBench101, format_matrix
from theta0.tables import columns
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table, Trained

_BUDGETS = (4, 12, 36, 108)


@readers.register("parquet101")
class Parquet101(Reader):
    """One .parquet file with a column ``adj``."""

    wants = "a .parquet file with the columns hash, adj, ops, val108, ... (NAS-Bench-101)"

    def matches(self, path: Path) -> bool:
        """By suffix and columns."""
        return path.suffix == ".parquet" and path.is_file() and "adj" in columns.names(path)

    def read(self, path: Path, meter: Meter) -> Table:
        """The table."""
        wanted = ["hash", "adj", "ops", *(f"val{epochs}" for epochs in _BUDGETS), "train_time_s", "params"]
        found = columns.read(path, wanted)
        space, cells = NASBench101(), []
        for key, adjacency, operations in zip(found["hash"], found["adj"], found["ops"], strict=True):
            side = math.isqrt(len(adjacency))
            matrix = [[int(entry) for entry in adjacency[side * i : side * (i + 1)]] for i in range(side)]
            ops = ["input", *(op for op in operations.split(",") if op), "output"]
            try:
                cell = space.parse(f"{json.dumps(matrix)} {json.dumps(ops)}")
            except (ParseError, Theta0Error) as error:
                raise DataError(f"{path}: {key}: expected a cell of NAS-Bench-101, found {error}") from error
            if space.key(cell) != key:
                raise DataError(
                    f"{path}: expected the cell of hash {key}, found one of {space.key(cell)}; another file"
                )
            cells.append(format_matrix(cell))
            meter.show(len(cells), len(found["hash"]))
        seconds = found["train_time_s"]
        return Table(
            "NAS-Bench-101 (sample)",
            "nasbench101",
            f"NAS-Bench-101, compact Parquet form, {path.name}",
            tuple(cells),
            {
                ("cifar10", epochs): Trained(found[f"val{epochs}"][None], seconds * epochs / _BUDGETS[-1])
                for epochs in _BUDGETS
            },
            {("cifar10", "parameters"): found["params"]},
            keys=tuple(found["hash"]),
            notes=(
                "one validation run, no test accuracy",
                "seconds of shorter budgets are a part of those of 108 epochs",
            ),
        )
