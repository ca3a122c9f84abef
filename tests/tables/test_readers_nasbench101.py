"""The official NAS-Bench-101 file; the real one is not here, so its layout is made on the spot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tables.official import BUDGETS, cells101, frame, record101, records101, tfrecord
from theta0.errors import DataError
from theta0.tables import load


def test_a_small_file(tmp_path: Path) -> None:
    table = load(tfrecord(tmp_path))
    assert (len(table), table.space, table.datasets, table.epochs("cifar10")) == (
        5,
        "nasbench101",
        ["cifar10"],
        [*BUDGETS],
    )
    rows = table.rows(cells101(5))
    assert rows.tolist() == [0, 1, 2, 3, 4]
    for run in range(3):
        expected = [50 + row + run / 10 for row in range(5)]
        np.testing.assert_allclose(table.validation("cifar10", 36, rows, run=run), expected)
        np.testing.assert_allclose(table.test("cifar10", 36, rows, run=run), np.array(expected) - 10)
    np.testing.assert_allclose(table.validation("cifar10", 4, 2), 52.1)
    np.testing.assert_allclose(table.seconds("cifar10", 12), 120)
    np.testing.assert_allclose(table.noise("cifar10", 108), 0.1)
    assert table.parameters().tolist() == [1000] * 5


def test_only_108_epochs(tmp_path: Path) -> None:
    assert load(tfrecord(tmp_path, records101(budgets=(108,)))).epochs("cifar10") == [108]


def test_isomorphic_cells_are_found(tmp_path: Path) -> None:
    from tests.reference import shuffled

    table, generator = load(tfrecord(tmp_path)), np.random.default_rng(0)
    for row, cell in enumerate(cells101(5)):
        for _ in range(5):
            assert table.row(shuffled(cell, generator)) == row


def changed(place: int, value: object) -> list[bytes]:
    records = records101()
    content = json.loads(records[7])
    content[place] = value
    return [*records[:7], json.dumps(content).encode(), *records[8:]]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (changed(0, "0" * 32), "record 7: expected a training of NAS-Bench-101, found a cell whose hash is"),
        (changed(1, "x"), "record 7: .*'x' epochs"),
        (changed(1, 5), "record 7: .*a last evaluation after 108.0 of 5 epochs"),
        (changed(4, "AAAA"), "record 7: .*ends within"),
        (changed(4, "!"), "record 7: "),
        (changed(4, ""), "record 7: .*0 evaluations and None parameters"),
        ([b"[1, 2]"], "record 0: .*without its five parts"),
        ([b"{"], "record 0: "),
        ([b"\xff"], "record 0: "),
        (records101()[:-1], "expected as many trainings of 108 epochs for each of 5 cells, found 2 for .* cut short"),
        ([], "found an empty file"),
    ],
)
def test_damage_is_named(tmp_path: Path, records: list[bytes], words: str) -> None:
    with pytest.raises(DataError, match=rf"nasbench_full\.tfrecord: .*{words}"):
        load(tfrecord(tmp_path, records))


def test_a_new_cell_must_be_one(tmp_path: Path) -> None:
    (cell,) = cells101(1)
    content = json.loads(record101(cell, 4, 0, 0))
    for place, value in ((2, "0110"), (2, "01x"), (3, "input,conv9x9,output")):
        wrong = json.dumps([*content[:place], value, *content[place + 1 :]]).encode()
        with pytest.raises(DataError, match="record 0: expected a training"):
            load(tfrecord(tmp_path, [wrong]))


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    file = tfrecord(tmp_path)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match="found the end of the file; it was cut short"):
        load(file)


def test_a_changed_byte(tmp_path: Path) -> None:
    file = tfrecord(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(frame(records101()[0])) + 40] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"record 1 has a wrong checksum"):
        load(file)
