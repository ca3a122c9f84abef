"""The compact Parquet files, and HW-NAS-Bench; the published facts of NAS-Bench-201."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from theta0.errors import DataError, Theta0Error
from theta0.space import get_space
from theta0.spaces.nasbench201 import NASBench201
from theta0.tables import Table, load, save
from theta0.tables.costs201 import CLASSES, SIDES, counts, parameters
from theta0.tables.hardware import attach


@pytest.fixture(scope="module")
def nb201(shared: Path) -> Table:
    return load(shared / "nb201.parquet", hardware=shared / "nb201_hw.parquet")


@pytest.fixture(scope="module")
def nb101(shared: Path) -> Table:
    return load(shared / "nb101.parquet")


def test_published_facts(nb201: Table) -> None:
    assert len(nb201) == 15_625
    best = [nb201.test(dataset, 200).max() for dataset in nb201.datasets]
    np.testing.assert_allclose(best, [94.373, 73.513, 47.311], atol=5e-4)
    row = int(nb201.validation("cifar10", 12).argmax())
    found = [nb201.test(dataset, 200, row) for dataset in nb201.datasets]
    np.testing.assert_allclose(found, [94.37, 73.09, 46.33], atol=5e-3)
    assert nb201.cells[nb201.best("cifar10", 200)] == (
        "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
    )
    assert nb201.suspect is not None
    assert nb201.suspect.sum() == 204


def test_all_cells_are_found_at_once(nb201: Table, tmp_path: Path) -> None:
    cells = list(NASBench201())
    path = save(nb201, tmp_path / "t.npz")
    start = time.perf_counter()
    table = load(path)
    rows = table.rows(cells)
    table.validation("cifar10", 12, rows)
    assert time.perf_counter() - start < 2  # 0.1 s on an idle machine
    assert sorted(rows.tolist()) == list(range(15_625))


def test_seconds_are_a_part_of_the_long_training(nb201: Table) -> None:
    for dataset in nb201.datasets:
        np.testing.assert_allclose(nb201.seconds(dataset, 12), nb201.seconds(dataset, 200) * 12 / 200)
    np.testing.assert_allclose(nb201.seconds("cifar10", 200, 0), 1444.2185997962952)


def test_runs(nb201: Table) -> None:
    assert np.bincount(nb201.runs("cifar10", 200)).tolist() == [0, 0, 7456, 8169]
    assert (nb201.noise("cifar10", 200) >= 0).all()
    values = nb201.validation("cifar10", 200, run=np.random.default_rng(0))
    assert np.abs(values - nb201.validation("cifar10", 200)).mean() < 1


def test_costs_are_those_of_the_networks(nb201: Table) -> None:
    """All parameters by formula, and every network that differs in its operations built."""
    space = NASBench201()
    kinds: dict[Any, int] = {}
    for row, text in enumerate(nb201.cells):
        kinds.setdefault(tuple(sorted(space.encode(space.parse(text)))), row)
    for dataset in nb201.datasets:
        np.testing.assert_array_equal(nb201.parameters(dataset), parameters(nb201.cells, dataset))
        options = {"shape": (3, SIDES[dataset], SIDES[dataset]), "classes": CLASSES[dataset]}
        for row in list(kinds.values())[:: 1 if dataset == "imagenet16" else 10]:
            cost = space.measure(space.parse(nb201.cells[row]), **options)
            assert (nb201.parameters(dataset, row), nb201.flops(dataset, row)) == cost
    assert counts(nb201.cells, "nor_conv_3x3").sum() == 15_625 * 6 // 5


def test_latency_and_energy_of_six_devices(nb201: Table, shared: Path) -> None:
    assert set(nb201.devices) == {"gpu", "edgegpu", "raspi4", "edgetpu", "pixel3", "eyeriss", "fpga"}
    np.testing.assert_allclose(nb201.latency("edgegpu", 0), 5.807418537139893)
    np.testing.assert_allclose(nb201.energy("fpga", 0), 18.01072)
    assert nb201.latency("edgegpu", dataset="imagenet16").shape == (15_625,)
    rows = nb201.within({"edgegpu_latency": 3, "parameters": 500_000})
    assert 0 < len(rows) < 15_625
    assert nb201.latency("edgegpu", rows).max() <= 3
    assert np.isnan(nb201.latency("edgetpu")).any()  # -1 in the file
    with pytest.raises(Theta0Error, match="does not have all 15,625 cells"):
        attach(nb201.select([0, 1]), shared / "nb201_hw.parquet")
    with pytest.raises(DataError, match=r"nb101\.parquet: expected the columns dataset, index"):
        attach(nb201, shared / "nb101.parquet")
    with pytest.raises(DataError, match=r"none\.parquet: "):
        attach(nb201, shared / "none.parquet")


def test_hardware_of_some_cells_only(nb201: Table, shared: Path, tmp_path: Path) -> None:
    part = pq.read_table(shared / "nb201_hw.parquet").slice(0, 20_000)
    pq.write_table(part, tmp_path / "part.parquet")
    with pytest.raises(DataError, match="expected all 15,625 cells of cifar100, found 4,375"):
        attach(nb201, tmp_path / "part.parquet")


def test_nasbench101(nb101: Table, shared: Path) -> None:
    assert len(nb101) == 14_981
    assert nb101.epochs("cifar10") == [4, 12, 36, 108]
    assert nb101.runs("cifar10", 36).tolist() == [1] * 14_981
    space = get_space("nasbench101")
    for row in range(0, 14_981, 500):
        assert nb101.row(space.parse(nb101.cells[row])) == row
    np.testing.assert_allclose(nb101.seconds("cifar10", 4, 0), 1588.241943359375 * 4 / 108)
    with pytest.raises(Theta0Error, match="no test accuracy of cifar10 at 108 epochs: its source gives none"):
        nb101.test("cifar10", 108)
    absent = next(cell for cell in space if cell not in nb101)  # type: ignore[attr-defined]
    with pytest.raises(Theta0Error, match=r"is not in the table .* which has 14,981 of the 423,624 architectures"):
        nb101.row(absent)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("nb201", lambda t: t.drop(["cifar10_val12"]), "expected the columns cifar10_val12, found none"),
        ("nb201", lambda t: t.slice(5, 10), "expected the index 0 to 9, each once"),
        ("nb101", lambda t: t.slice(0, 3).set_column(0, "hash", [["0" * 32] * 3]), "expected the cell of hash 000"),
        ("nb101", lambda t: t.slice(0, 1).set_column(5, "ops", [["conv9x9"]]), "expected a cell of NAS-Bench-101"),
        ("nb101", lambda t: t.slice(0, 1).set_column(4, "adj", [["01x"]]), "expected a cell of NAS-Bench-101"),
        (
            "nb101",
            lambda t: t.slice(0, 1).set_column(t.column_names.index("val4"), "val4", [[130.0]]),
            "from 0 to 100, found 130 to 130",
        ),
        (
            "nb101",
            lambda t: t.slice(0, 1).set_column(t.column_names.index("val4"), "val4", pa.array([None], pa.float64())),
            "a value is missing",
        ),
    ],
)
def test_other_layouts_are_named(name: str, change: Any, words: str, shared: Path, tmp_path: Path) -> None:
    pq.write_table(change(pq.read_table(shared / f"{name}.parquet")), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=rf"x\.parquet: .*{words}"):
        load(tmp_path / "x.parquet")


def test_cut_and_foreign_files(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes((shared / "nb101.parquet").read_bytes()[:1000])
    with pytest.raises(DataError, match=r"x\.parquet: expected a Parquet file"):
        load(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="no kind of table matches"):
        load(path)


def test_without_pyarrow(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Theta0Error, match=r"pip install 'theta0\[tables\]'"):
        load(shared / "nb201.parquet")
