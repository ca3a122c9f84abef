"""HW-NAS-Bench (Li et al., ICLR 2021): latency and energy of the NAS-Bench-201 cells on six devices.

It comes as a Parquet file with a row for each data set and cell (columns ``dataset``, ``index`` and
``<device>_latency`` in milliseconds, ``<device>_energy`` in millijoules), and is attached to a table of the cells.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from theta0.errors import DataError, Theta0Error
from theta0.tables import columns
from theta0.tables.table import Table

_ORDER = "83abc799e45cf34e9d2163654668ab998b9a54d01c39e72ca1f71f2cdf356d84"
"""sha256 of all cells in the official order, with line breaks between: the file knows cells by their number only."""


def attach(table: Table, path: str | os.PathLike[str]) -> Table:
    """``table`` with the costs of the devices in the file."""
    path = Path(path)
    if table.space != "nasbench201" or hashlib.sha256("\n".join(table.cells).encode()).hexdigest() != _ORDER:
        raise Theta0Error(
            f"hardware data know cells by their number in NAS-Bench-201; {table.name} does not have all 15,625 cells "
            f"in the official order: attach the data to a whole table, and select rows afterwards"
        )
    names = [name for name in columns.names(path) if name not in ("dataset", "index")]
    found = columns.read(path, ["dataset", "index", *names])
    costs = dict(table.costs)
    for dataset in table.datasets:
        here = found["dataset"] == dataset
        index = found["index"][here].astype(np.int64)
        if not np.array_equal(np.sort(index), np.arange(len(table))):
            raise DataError(
                f"{path}: expected all {len(table):,} cells of {dataset}, found {len(index):,}; another file"
            )
        for name in names:
            values = np.empty(len(table))
            values[index] = found[name][here]
            values[values < 0] = np.nan  # -1 stands where a device did not run a cell
            costs[dataset, name] = values
    return replace(table, costs=costs, source=f"{table.source}; HW-NAS-Bench, {path.name}")
