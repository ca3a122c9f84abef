"""The database of a run: SQLite in WAL mode, so that readers never wait and a commit is there wholly or not at all.

One that is open for reading makes a connection for each query and leaves the folder as it is. Where a write-ahead log
with content lies beside the database, it is read through SQLite's shared memory (``mode=ro``). Without one nobody
writes: the file alone is read (``immutable``), so that a folder without write permission will do, and read again if a
writer came in the meantime.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from theta0.errors import DataError, Theta0Error

NAME = "run.db"
VERSION = 1
_APPLICATION = 0x74683072  # "th0r"
_PATIENCE = 30.0
"""Seconds that a writer waits for another one."""
_Stamp = tuple[int, int]
_SCHEMA = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE processes (
    id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, opened REAL NOT NULL, lock TEXT NOT NULL
);
CREATE TABLE trials (
    number INTEGER PRIMARY KEY, architecture TEXT NOT NULL, epochs INTEGER NOT NULL, value REAL, seconds REAL,
    spent REAL, note TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '{}', seed INTEGER,
    process INTEGER NOT NULL REFERENCES processes, started REAL, finished REAL
);
CREATE TABLE scores (
    architecture TEXT NOT NULL, name TEXT NOT NULL, value REAL, validity TEXT NOT NULL, PRIMARY KEY (architecture, name)
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, process INTEGER NOT NULL REFERENCES processes, kind TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE TABLE curves (name TEXT NOT NULL, epoch INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (name, epoch));
"""


def make(folder: Path, settings: dict[str, str]) -> None:
    """A new database with ``settings`` in ``folder``, closed."""
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(
            f"BEGIN; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION}; {_SCHEMA} COMMIT;"
        )
        connection.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())


class Database:
    """The database in ``folder``, open for reading, or for reading and writing."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self._path = (folder / NAME).resolve()
        if not self._path.is_file():
            found = f"found no {NAME} in it" if folder.is_dir() else "found no folder there"
            raise DataError(f"{folder}: expected the folder of a run, {found}; `theta0 runs` lists what there is")
        self._writer: sqlite3.Connection | None = None
        self._owner = os.getpid()
        try:
            if write:
                with explained(folder):
                    self._writer = self._connect("mode=rw")
            self._check()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives the connection back."""
        if self._writer is not None and self._owner == os.getpid():
            self._writer.close()
            self._writer = None

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows of one statement that reads."""
        with explained(self.folder):
            if self._writer is not None:
                return self._own(self._writer).execute(sql, parameters).fetchall()
            return self._look(sql, parameters)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that is the only one to write; ``durable`` is on the disk when it ends, and so is all before.

        One that is not durable outlives the process too, but perhaps not a power cut.
        """
        if self._writer is None:
            raise Theta0Error(f"{self.folder}: the run is open for reading; open it with write=True")
        connection = self._own(self._writer)
        with explained(self.folder):
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has ended it already
                    connection.execute("ROLLBACK")
                raise

    def _own(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        if self._owner != os.getpid():  # its locks stayed with the parent, and SQLite cannot know
            raise Theta0Error(
                f"{self.folder}: the run was opened before this process was forked; start processes by spawn, and open "
                f"the run in each"
            )
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=_PATIENCE)
        connection.row_factory = sqlite3.Row
        return connection

    def _look(self, sql: str, parameters: Sequence[Any]) -> list[sqlite3.Row]:
        while True:
            before = self._stamps()
            quiet = not before[1][1]
            try:
                with closing(self._connect("mode=ro&immutable=1" if quiet else "mode=ro")) as connection:
                    rows = connection.execute(sql, parameters).fetchall()
            except sqlite3.DatabaseError:
                if quiet and before != self._stamps():
                    continue
                raise
            if not quiet or before == self._stamps():
                return rows

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        """Time of change and size of the database and of its log."""
        return _stamp(self._path), _stamp(self._path.with_name(f"{NAME}-wal"))

    def _check(self) -> None:
        if self.query("PRAGMA application_id")[0][0] != _APPLICATION:
            raise DataError(f"{self.folder}: expected the folder of a run, found another program's {NAME} in it")
        found = self.query("PRAGMA user_version")[0][0]
        if found != VERSION:
            way = "update theta0" if found > VERSION else "read it with the theta0 that made it"
            raise DataError(f"{self.folder}: expected a run of format {VERSION}, found format {found}; {way}")
        if (said := self.query("PRAGMA quick_check(1)")[0][0]) != "ok":
            raise _damaged(self.folder, said)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Says in a user's words what SQLite reports; what is a bug of ours stays as it is."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            way = "the disk is full, and the last entry is not stored; make room, and go on with `theta0 resume`"
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
            way = f"{error}; make folder and files readable and writable, or copy the run to where they are"
        elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
            way = f"another process has kept the run locked for {_PATIENCE:g} seconds; wait for it, or stop it"
        elif code == sqlite3.SQLITE_IOERR:
            way = f"{error}: the last entry may not be stored; see if the disk is full or fails, then `theta0 resume`"
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise _damaged(folder, str(error)) from error
        else:
            raise
        raise DataError(f"{folder}: {way}") from error


def _stamp(path: Path) -> _Stamp:
    try:
        state = path.stat()
    except FileNotFoundError:
        return 0, 0
    return state.st_mtime_ns, state.st_size


def _damaged(folder: Path, said: str) -> DataError:
    return DataError(
        f"{folder}: {NAME} is damaged ({' '.join(said.split())}); take a copy from a backup, or save what is left with "
        f"`sqlite3 {NAME} .recover`"
    )
