from __future__ import annotations

import os
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from theta0.errors import DataError
from theta0.runs import folders
from theta0.runs.database import NAME


def fill(folder: Path) -> None:
    (folder / NAME).write_text("x")


@pytest.mark.parametrize(
    ("data", "short"),
    [
        ("digits", "digits"),
        ("photos/My Cats & Dogs.npz", "my-cats-dogs"),
        ("/", "run"),
        ("été", "t"),
        ("x" * 40, "x" * 24),
        ("a" * 23 + "-b", "a" * 23),
    ],
)
def test_names(tmp_path: Path, data: str, short: str) -> None:
    path = folders.make(tmp_path / "new/runs", data, fill)
    assert re.fullmatch(rf"\d{{8}}-\d{{4}}-{short}-[0-9a-f]{{4}}", path.name)
    assert folders.folders(tmp_path / "new/runs") == [path]


def test_a_name_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many at a time draw from few names."""
    tokens = iter([f"{number % 20:04x}" for number in range(20_000)])
    monkeypatch.setattr(folders.secrets, "token_hex", lambda _: next(tokens))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: folders.make(tmp_path, "digits", fill), range(20)))
    assert len(set(made)) == 20
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in made)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (sqlite3.OperationalError("database or disk is full"), "database or disk is full"),
    ],
)
def test_nothing_remains_of_one_that_fails(tmp_path: Path, error: Exception, words: str) -> None:
    def full(folder: Path) -> None:
        fill(folder)
        raise error

    with pytest.raises(DataError, match=rf"{tmp_path}: no run can be made there: {words}; make room"):
        folders.make(tmp_path, "digits", full)
    assert not os.listdir(tmp_path)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("x")
    with pytest.raises(DataError, match="no run can be made there: File exists"):
        folders.make(tmp_path / "runs", "digits", fill)


def test_only_folders_of_runs_are_listed(tmp_path: Path) -> None:
    assert folders.folders(tmp_path / "none") == []
    for name in (".20261119-1432-a-0000.part", "b", "a", "empty"):
        (tmp_path / name).mkdir()
        if name != "empty":
            fill(tmp_path / name)
    (tmp_path / "file").write_text("x")
    assert [path.name for path in folders.folders(tmp_path)] == ["a", "b"]
