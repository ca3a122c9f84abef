"""Known names: what ``get`` puts where, from a mirror of the test's own."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile

import pytest

from theta0 import places
from theta0.data import get, load, names, sources
from theta0.errors import DataError


def known(file):
    return sources.File(file.name, file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest())


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


def test_the_table_is_well_formed():
    assert names() == ["cifar10", "cifar100", "digits", "fashion_mnist", "mnist", "tiny_imagenet"]
    files = [file for source in sources.SOURCES.values() for file in source.files]
    assert len(files) == 11
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.size > 1000 for file in files)
    assert len({file.sha256 for file in files}) == len(files)


def test_an_archive_is_unpacked_and_removed_and_not_fetched_again(tmp_path, mirror, monkeypatch):
    (mirror / "data_batch_1.bin").write_bytes(b"abc")
    archive = mirror / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(mirror / "data_batch_1.bin", "cifar-10-batches-bin/data_batch_1.bin")
    source = sources.Source("http://127.0.0.1:9", (known(archive),), ("cifar-10-batches-bin",), unpacks=True)
    monkeypatch.setitem(sources.SOURCES, "cifar10", source)
    root = tmp_path / "root"
    folder = get("cifar10", root=root, mirror=mirror.as_uri())
    assert folder == root / "cifar-10-batches-bin"
    assert os.listdir(root) == ["cifar-10-batches-bin"]
    assert (folder / "data_batch_1.bin").read_bytes() == b"abc"
    archive.unlink()
    assert get("cifar10", root=root, mirror=mirror.as_uri()) == folder


def test_files_arrive_one_by_one_and_the_missing_ones_are_fetched_later(tmp_path, mirror, monkeypatch):
    (mirror / "mnist").mkdir()
    files = []
    for name in ("a.gz", "b.gz"):
        (mirror / "mnist" / name).write_bytes(name.encode() * 9)
        files.append(known(mirror / "mnist" / name))
    monkeypatch.setitem(sources.SOURCES, "mnist", sources.Source("http://127.0.0.1:9", tuple(files), ("mnist",)))
    monkeypatch.setenv("THETA0_DATA", str(tmp_path / "root"))
    monkeypatch.setenv("THETA0_MIRROR", f"{mirror.as_uri()}/{{name}}")
    (mirror / "mnist" / "b.gz").rename(mirror / "hidden")
    with pytest.raises(DataError, match=r"b\.gz: the download failed"):
        get("mnist")
    assert os.listdir(tmp_path / "root" / "mnist") == ["a.gz"]
    (mirror / "hidden").rename(mirror / "mnist" / "b.gz")
    (mirror / "mnist" / "a.gz").unlink()
    assert get("mnist") == tmp_path / "root" / "mnist"
    assert sorted(os.listdir(tmp_path / "root" / "mnist")) == ["a.gz", "b.gz"]


def test_names_that_cannot_be_downloaded():
    with pytest.raises(DataError, match="needs no download"):
        get("digits")
    with pytest.raises(DataError, match="no data set to download is called 'cifar11'; did you mean cifar10"):
        get("cifar11")


def test_the_data_root(monkeypatch, tmp_path):
    monkeypatch.setenv("THETA0_DATA", str(tmp_path))
    assert places.data_root() == tmp_path
    assert places.data_root("/elsewhere").as_posix() == "/elsewhere"
    monkeypatch.delenv("THETA0_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.data_root() == tmp_path / ".cache" / "theta0"


@pytest.mark.parametrize("name", [name for name in names() if name != "digits"])
def test_a_known_name_without_files_says_where_it_looked_and_how_to_get_them(name, tmp_path):
    with pytest.raises(DataError) as caught:
        load(name, root=tmp_path)
    text = str(caught.value)
    assert f"theta0.data.get('{name}', root='{tmp_path}')" in text
    assert str(tmp_path / sources.SOURCES[name].folders[0]) in text
    assert "THETA0_DATA" in text
