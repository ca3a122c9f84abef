"""What ``load`` makes of names, paths and arguments."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import theta0.data
from theta0.data import load
from theta0.data.readers import Reader, readers
from theta0.errors import DataError


def test_the_default_is_digits():
    assert load().train.fingerprint() == load("digits").train.fingerprint()
    test = load(part="test")
    assert (test.train.name, test.test) == ("digits/test", None)
    assert load(size=16).test.shape == (1, 16, 16)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("cifar11", {}, "cifar11: expected a file or folder.*did you mean cifar10"),
        ("./cifar10", {}, "expected a file or folder, found nothing there"),
        ("digits", {"size": 0}, "size is the side"),
        ("digits", {"part": "validation"}, "part is None .both., 'train' or 'test'; found 'validation'"),
        ("digits", {"layout": "NCHW"}, "layout= is for arrays"),
        ((np.zeros((2, 2, 2)),), {}, r"come as \(x, y\) or .*found 1 of them"),
        ((np.zeros((2, 2, 2), np.uint8), [0, 1]), {"part": "test"}, "there is no test part"),
    ],
)
def test_wrong_arguments(source, options, message):
    with pytest.raises(DataError, match=message):
        load(source, **options)


def test_a_path_that_is_no_data_lists_what_was_looked_for(tmp_path):
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    text = str(caught.value)
    assert "it holds readme.txt" in text
    assert all(readers.get(name).wants in text for name in readers.names())
    with pytest.raises(DataError, match=r"readme\.txt: no data format matches; looked for"):
        load(tmp_path / "readme.txt")


def test_two_formats_in_one_place(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"")
    (tmp_path / "wnids.txt").write_text("")
    with pytest.raises(DataError, match=r"expected one data format, found 2 \(arrays: .*tiny_imagenet: "):
        load(tmp_path)


def test_a_new_format_is_one_class(tmp_path, monkeypatch):
    (tmp_path / "file.mine").write_text("")

    class Mine(Reader):
        wants = "a .mine file"

        def matches(self, path):
            return path.suffix == ".mine"

        def read(self, path, part, size):
            return getattr(load("digits"), part)

    readers.names()
    monkeypatch.setitem(readers._known, "mine", Mine)
    assert len(load(tmp_path / "file.mine").test) == 359


def test_the_readers_are_found_by_scanning():
    assert readers.names() == ["arrays", "cifar_binary", "cifar_python", "folder", "idx", "tiny_imagenet"]


@pytest.mark.parametrize("name", readers.names())
def test_every_reader_declines_what_is_not_there(name, tmp_path):
    reader = readers.get(name)()
    (tmp_path / "file").write_text("")
    assert not reader.matches(tmp_path)
    assert not reader.matches(tmp_path / "file")
    assert reader.wants


def test_the_environment_says_where_known_data_lie(tmp_path, monkeypatch):
    monkeypatch.setenv("THETA0_DATA", str(tmp_path))
    with pytest.raises(DataError, match=rf"looked in {tmp_path}/mnist.*theta0\.data\.get\('mnist'\)"):
        load("mnist")


def test_importing_opens_no_connection_and_no_optional_package():
    code = (
        "import socket, sys; socket.socket.connect = None; import theta0.data; "
        "assert not {'PIL', 'sklearn'} & set(sys.modules), sorted({'PIL', 'sklearn'} & set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_names():
    assert theta0.data.__all__ == ["Augmentation", "Data", "ImageDataset", "get", "load", "names", "split"]
    assert all(hasattr(theta0.data, name) for name in theta0.data.__all__)
