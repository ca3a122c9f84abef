from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tables.small import small
from theta0.errors import DataError, Theta0Error
from theta0.tables import checksum, file, load, save


def test_round_trip(tmp_path: Path) -> None:
    table = small(keys=("a", "b", "c", "ä"))
    path = save(table, tmp_path / "t.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]
    read = load(path)
    assert checksum(read) == checksum(table)
    for name in ("name", "space", "source", "cells", "keys", "notes", "hidden"):
        assert getattr(read, name) == getattr(table, name)
    for key, one in table.trained.items():
        np.testing.assert_array_equal(read.trained[key].validation, one.validation)
        np.testing.assert_array_equal(read.trained[key].seconds, one.seconds)
        assert read.trained[key].averaged == one.averaged
        assert (read.trained[key].test is None) == (one.test is None)
    assert list(read.costs) == list(table.costs)
    assert list(read.trained) == list(table.trained)


def test_the_checksum_sees_everything() -> None:
    whole = checksum(small())
    assert whole == checksum(small())
    costs = {key: values + (key[1] == "phone_energy") for key, values in small().costs.items()}
    others: list[dict[str, Any]] = [{"name": "x"}, {"notes": ()}, {"suspect": None}, {"costs": costs}, {"costs": {}}]
    assert whole not in {checksum(small(**other)) for other in others}


def test_no_pickle_in_it(tmp_path: Path) -> None:
    with np.load(save(small(), tmp_path / "t.npz"), allow_pickle=False) as content:
        assert all(content[name].dtype != object for name in content.files)


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(small(), tmp_path / "t.npz")
    before = path.read_bytes()

    def full(*arguments: object, **more: object) -> None:
        arguments[0].write(b"half")  # type: ignore[attr-defined]
        raise OSError("no space left on device")

    monkeypatch.setattr(file.np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space left"):
        save(small(name="other"), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.npz"]


def rewritten(path: Path, **changes: Any) -> None:
    """The file with other entries; the header's own values by keyword ``header``."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    header = json.loads(arrays["table"].tobytes()) | changes.pop("header", {})
    arrays["table"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    for name, value in changes.items():
        arrays[name.replace("_", " ")] = value
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"header": {"version": 2}}, "expected version 1 of the format, found 2"),
        ({"header": {"format": "other"}}, "expected the format 'theta0 table'"),
        ({"header": {"name": "another"}}, "expected content with sha256 .*; it was changed"),
        ({"header": {"sha256": None}}, "expected content with sha256 None"),
        ({"seconds_0": np.ones(4)}, "expected content with sha256"),
        ({"cells": np.array(["text"])}, "expected content with sha256"),
        ({"more": np.ones(4)}, "expected content with sha256"),
        ({"seconds_0": np.array([{}], dtype=object)}, "Object arrays cannot be loaded"),
    ],
)
def test_changed_files(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = save(small(), tmp_path / "t.npz")
    rewritten(path, **changes)
    with pytest.raises(DataError, match=rf"t\.npz: .*{words}.*theta0 data convert"):
        file.load(path)


def test_cut_and_foreign_files(tmp_path: Path) -> None:
    path = save(small(), tmp_path / "t.npz")
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"t\.npz: expected a table of theta0"):
            load(path)
    for place in range(40, len(whole), len(whole) // 40):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with contextlib.suppress(DataError):
            assert checksum(load(path)) == checksum(small())  # a byte that says nothing, such as a date
    np.savez(path, x=np.ones(3))
    with pytest.raises(DataError, match="another file without the entry 'table'"):
        load(path)
    blob = io.BytesIO()
    np.save(blob, np.ones(3))
    path.write_bytes(blob.getvalue())
    with pytest.raises(DataError, match="File is not a zip file"):
        load(path)
    with pytest.raises(DataError, match="found no file"):
        file.load(tmp_path / "none.npz")


def test_a_file_with_a_right_checksum_of_nonsense(tmp_path: Path) -> None:
    path = save(small(), tmp_path / "t.npz")
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    header = json.loads(arrays.pop("table").tobytes())
    del arrays["seconds 0"]
    header["sha256"] = file._digest({k: v for k, v in header.items() if k != "sha256"}, arrays)
    np.savez(path, table=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)
    with pytest.raises(DataError, match="seconds 0"):
        load(path)


def test_targets_are_checked_first(tmp_path: Path) -> None:
    with pytest.raises(Theta0Error, match=r"written to \.npz files, not to 'a\.csv'"):
        save(small(), tmp_path / "a.csv")
    with pytest.raises(Theta0Error, match="there is no folder"):
        save(small(), tmp_path / "none" / "a.npz")
    with pytest.raises(Theta0Error, match="a searcher's view"):
        save(small().search_view(), tmp_path / "a.npz")
    with pytest.raises(Theta0Error, match="a line break"):
        save(small(cells=("a\nb", "c", "d", "e")), tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())
