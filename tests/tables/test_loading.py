"""Names and paths: what is found, and what is said where nothing is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.tables import official
from tests.tables.small import small
from theta0.errors import DataError, Theta0Error
from theta0.tables import checksum, convert, get, load, names, save, sources


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "installed", lambda: None)


def test_names() -> None:
    assert names() == ["nasbench101", "nasbench1shot1_1", "nasbench1shot1_2", "nasbench1shot1_3", "nasbench201"]


def test_a_converted_table_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(small(), tmp_path / "nasbench201.npz")
    assert checksum(load("nasbench201", root=tmp_path)) == checksum(small())
    monkeypatch.setenv("THETA0_DATA", str(tmp_path))
    assert len(load("nasbench201")) == 4


def test_what_is_missing_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nasbench201\.npz does not exist\. pip install 'theta0\[bench\]'"):
        load("nasbench201", root=tmp_path)
    with pytest.raises(DataError, match=r"'nasbench1shot1_2' is not there: .*nasbench101\.npz .*data get nasbench101"):
        load("nasbench1shot1_2", root=tmp_path)
    with pytest.raises(DataError, match=r"found nothing there .*did you mean nasbench201"):
        load("nasbench21")
    with pytest.raises(Theta0Error, match="nasbench201 has no official address"):
        get("nasbench201")
    with pytest.raises(Theta0Error, match="no table is called 'nasbench21'; did you mean"):
        get("nasbench21")


def test_official_files_are_converted_once(tmp_path: Path) -> None:
    official.tfrecord(tmp_path)
    with pytest.raises(DataError, match=r"nasbench_full\.tfrecord is there, but must be converted, once"):
        load("nasbench101", root=tmp_path)
    made = convert("nasbench101", tmp_path / "nasbench101.npz", root=tmp_path)
    assert checksum(load("nasbench101", root=tmp_path)) == checksum(made)


def test_convert_checks_the_target_first(tmp_path: Path) -> None:
    with pytest.raises(Theta0Error, match=r"written to \.npz"):
        convert(tmp_path / "none", tmp_path / "a.parquet")


def test_paths_that_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match=r"a\.txt: no kind of table matches; looked for\n .*tfrecord"):
        load(tmp_path / "a.txt")
    folder = official.nats_folder(tmp_path)
    (folder / "cifar10.pkl").touch()
    with pytest.raises(DataError, match="expected one kind of table, found 2"):
        load(folder)


def test_numbers_that_no_table_can_have(tmp_path: Path) -> None:
    records = official.records101()
    cell = official.cells101(1)[0]
    records[0] = official.record101(cell, 4, 0, 90)  # an accuracy of 140 %
    with pytest.raises(DataError, match=r"nasbench_full\.tfrecord: .*from 0 to 100, found .*damaged or another one"):
        load(official.tfrecord(tmp_path, records))


def test_get_downloads_and_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    from dataclasses import replace

    (tmp_path / "there").mkdir()
    file = official.tfrecord(tmp_path / "there")
    known = sources.TABLES["nasbench101"]
    assert known.download is not None
    assert (known.download.size, len(known.download.sha256)) == (2_085_986_016, 64)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    here = sources.Download(file.as_uri(), file.stat().st_size, sha256)
    monkeypatch.setitem(sources.TABLES, "nasbench101", replace(known, download=here))
    root = tmp_path / "root"
    path = get("nasbench101", root)
    assert path == root / "nasbench_full.tfrecord"
    shutil.rmtree(tmp_path / "there")
    assert get("nasbench101", root) == path  # nothing is downloaded twice
    np.testing.assert_allclose(load(path).seconds("cifar10", 4), 40)
