"""NAS-Bench-201 as a compact Parquet file: a row for each cell, columns such as ``cifar10_val200_run0``.

``D_val200_run0`` to ``run2`` are the validation runs of 200 epochs, ``D_test200``, ``D_val12`` and ``D_test12`` means
of an unknown number of runs, ``D_traintime200_s`` the seconds of 200 epochs; D is cifar10, cifar100 or imagenet16.
FLOPs there are NASLib's count; they become multiply-adds of convolutions and linear layers, as the benchmark counts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from theta0.errors import DataError
from theta0.tables import columns
from theta0.tables.costs201 import CLASSES, NASLIB_CONSTANT, naslib_surplus
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table, Trained

_RUNS = 3


@readers.register("parquet201")
class Parquet201(Reader):
    """One .parquet file with a column ``arch_str``."""

    wants = "a .parquet file with the columns arch_str, cifar10_val200, ... (NAS-Bench-201)"

    def matches(self, path: Path) -> bool:
        """By suffix and columns."""
        return path.suffix == ".parquet" and path.is_file() and "arch_str" in columns.names(path)

    def read(self, path: Path, meter: Meter) -> Table:
        """The table."""
        parts = [f"val200_run{run}" for run in range(_RUNS)]
        parts += ["test200", "val12", "test12", "traintime200_s", "latency_s", "val200_suspect"]
        wanted = [f"{dataset}_{part}" for dataset in CLASSES for part in parts]
        wanted += [f"{cost}_{dataset}" for dataset in CLASSES for cost in ("params", "flops")]
        found = columns.read(path, ["index", "arch_str", *wanted])
        order = np.argsort(found["index"], kind="stable")
        cells = tuple(str(text) for text in found["arch_str"][order])
        if not np.array_equal(found["index"][order], np.arange(len(cells))):
            raise DataError(f"{path}: expected the index 0 to {len(cells) - 1}, each once, found others; another file")
        trained, costs = {}, {}
        suspect = np.zeros(len(cells), dtype=bool)
        for dataset in CLASSES:
            at = {part: found[f"{dataset}_{part}"][order] for part in parts}
            seconds = at["traintime200_s"]
            trained[dataset, 12] = Trained(at["val12"][None], seconds * 12 / 200, at["test12"][None], (True, True))
            runs = np.stack([at[f"val200_run{run}"] for run in range(_RUNS)])
            trained[dataset, 200] = Trained(runs, seconds, at["test200"][None], (False, True))
            costs[dataset, "parameters"] = found[f"params_{dataset}"][order]
            surplus = naslib_surplus(cells, dataset) + NASLIB_CONSTANT[dataset]
            costs[dataset, "flops"] = found[f"flops_{dataset}"][order] - surplus
            costs[dataset, "gpu_latency"] = at["latency_s"] * 1000
            suspect |= at["val200_suspect"].astype(bool)
        return Table(
            "NAS-Bench-201",
            "nasbench201",
            f"NAS-Bench-201, compact Parquet form, {path.name}",
            cells,
            trained,
            costs,
            suspect=suspect,
            notes=(
                "test accuracy and the accuracies of 12 epochs are means; only validation at 200 epochs has runs",
                "seconds of 12 epochs are 12/200 of those of 200",
            ),
        )
