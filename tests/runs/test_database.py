from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.runs.making import SETTINGS, open_folder, python, said, trial, without_rights
from theta0.errors import DataError
from theta0.runs import Run, database


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Run.create(tmp_path_factory.mktemp("runs"), SETTINGS) as run:
        for number in range(200):
            run.event("noted", number=number, text="x" * 500)
        return run.path


@pytest.fixture
def path(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def broken(path: Path, words: str) -> None:
    """Each way of opening says the same in one line."""
    for write in (False, True):
        with pytest.raises(DataError, match=words) as caught:
            Run.open(path, write=write)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("version", "way"), [(database.VERSION + 1, "update theta0"), (0, "the theta0 that made it")])
def test_another_version(path: Path, version: int, way: str) -> None:
    with closing(sqlite3.connect(path / "run.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    broken(path, f"expected a run of format {database.VERSION}, found format {version}; .*{way}")


def test_a_database_of_something_else(path: Path) -> None:
    (path / "run.db").unlink()
    with closing(sqlite3.connect(path / "run.db")) as connection:
        connection.execute("CREATE TABLE trials (a)")
    broken(path, "found another program's run.db")
    (path / "run.db").write_bytes(b"")
    broken(path, "found another program's run.db")
    (path / "run.db").write_bytes(b"not a database at all, but long enough to look at" * 100)
    broken(path, "run.db is damaged .*not a database.*; take a copy from a backup, or save what is left")


def test_a_damaged_database(path: Path) -> None:
    whole = (path / "run.db").read_bytes()
    (path / "run.db").write_bytes(whole[: len(whole) // 2])
    broken(path, "run.db is damaged")
    (path / "run.db").write_bytes(whole[:8192] + b"\xa5" * 40_000 + whole[48_192:])
    broken(path, "run.db is damaged")
    (path / "run.db").write_bytes(whole)
    assert len(Run.open(path).events()) == 200


def test_a_full_disk(path: Path) -> None:
    with Run.open(path, write=True) as run:
        writer = run._database._writer
        assert writer is not None
        writer.execute("PRAGMA max_page_count = 1")  # no more than there are already
        with pytest.raises(DataError, match=r"the disk is full, .* make room, and go on with `theta0 resume`"):
            run.event("noted", text="y" * 50_000)
        done = len(run.events())
        assert done == 200
        writer.execute("PRAGMA max_page_count = 100000")
        run.event("noted", number=0)
        assert len(run.events()) == done + 1


def test_a_failing_disk(path: Path) -> None:
    """A limit on the size of files is met when the log grows, as an error of the device would be."""
    code = """
import resource, sys
from theta0.runs import Run
with Run.open(sys.argv[1], write=True) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    try:
        for number in range(1000):
            run.event("noted", text="y" * 500)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
"""
    with python(code, path) as process:
        line = said(process)
        process.communicate()
    assert line.startswith("DataError")
    assert "see if the disk is full or fails" in line or "the disk is full" in line
    events = Run.open(path).events()
    assert 200 < len(events) < 1200
    assert {event.kind for event in events} == {"noted"}


def test_another_process_that_keeps_the_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.2)
    with Run.open(path, write=True) as run, closing(sqlite3.connect(path / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = time.perf_counter()
        with pytest.raises(DataError, match=r"has kept the run locked for 0.2 seconds"):
            run.event("noted")
        assert 0.1 < time.perf_counter() - start < 10
        assert len(run.events()) == 200  # readers do not wait
        assert len(Run.open(path).events()) == 200
        other.execute("ROLLBACK")
        run.event("noted")


def test_a_log_that_cannot_be_read_is_not_left_out() -> None:
    """A copy of a folder whose writer was killed, without SQLite's shared memory, where nothing may be written."""
    with open_folder() as root:
        with Run.create(root, SETTINGS) as run:
            run.add_trial(trial(0))
            copy = Path(shutil.copytree(run.path, root / "copy"))
        (copy / "run.db-shm").unlink()
        with (
            without_rights(root, copy, *copy.iterdir()),
            pytest.raises(DataError, match="copy the run to where they are"),
        ):
            Run.open(copy)
        assert Run.open(copy).trials() == [trial(0)]


def test_a_writer_that_comes_while_the_file_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file alone is read only if nobody has written meanwhile."""
    reader = Run.open(path)
    original, came = database.Database._connect, []

    def connect(self: database.Database, mode: str) -> Any:
        connection = original(self, mode)
        if mode != "mode=rw" and not came:
            came.append(mode)
            with Run.open(path, write=True) as run:
                run.event("noted", number="new")
        return connection

    monkeypatch.setattr(database.Database, "_connect", connect)
    assert reader.events()[-1].facts == {"number": "new"}
    assert came == ["mode=ro&immutable=1"]


def test_what_a_bug_raises_stays(path: Path) -> None:
    with Run.open(path, write=True) as run, pytest.raises(sqlite3.OperationalError, match="no such table"):
        run._database.query("SELECT * FROM nowhere")


def test_a_strange_name(tmp_path: Path) -> None:
    root = tmp_path / "50% of?mode=memory&x #1 é"
    with Run.create(root, SETTINGS) as run:
        run.event("noted")
    assert len(Run.open(run.path).events()) == 1
    assert os.listdir(run.path) == ["run.db"]


def test_finished_trials_are_synchronized(path: Path) -> None:
    """What is durable waits for the disk; the rest does not."""
    with Run.open(path, write=True) as run:
        found: dict[bool, int] = {}
        for durable in (True, False):
            with run._database.transaction(durable=durable) as change:
                found[durable] = change.execute("PRAGMA synchronous").fetchone()[0]
        assert found == {True: 2, False: 1}
        statements: list[str] = []
        assert run._database._writer is not None
        run._database._writer.set_trace_callback(statements.append)
        run.add_trial(trial(0))
        assert [text for text in statements if not text.startswith("SELECT")][:2] == [
            "PRAGMA synchronous = FULL",
            "BEGIN IMMEDIATE",
        ]
