"""The folders of runs: what a new one is called, and which there are."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from theta0.errors import DataError
from theta0.runs.database import NAME


def make(root: Path, data: str, fill: Callable[[Path], None]) -> Path:
    """A new folder below ``root`` with what ``fill`` writes to it; it appears whole or not at all.

    Its name has the minute in it, so that names sort by time, then the data, then what makes it the only one.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            name = f"{datetime.now():%Y%m%d-%H%M}-{_short(data)}-{secrets.token_hex(2)}"
            part, path = root / f".{name}.part", root / name
            try:
                part.mkdir()
            except FileExistsError:  # somebody else makes one of the same name
                continue
            try:
                fill(part)
                if _taken(part, path):
                    continue
                _keep(root)
                return path
            finally:
                shutil.rmtree(part, ignore_errors=True)  # a rest does no harm: its name is hidden
    except (OSError, sqlite3.OperationalError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{root}: no run can be made there: {reason}; make room or get permission, or take another folder "
            f"(--root, or THETA0_RUNS)"
        ) from error


def folders(root: Path) -> list[Path]:
    """The folders of runs below ``root``, by name."""
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if not path.name.startswith(".") and (path / NAME).is_file())


def _taken(part: Path, path: Path) -> bool:
    """Gives ``part`` its name, unless there is a run of that name."""
    try:
        part.rename(path)
    except OSError:
        if not path.exists():
            raise
        return True
    return False


def _keep(root: Path) -> None:
    """Brings a new name in ``root`` to the disk, as SQLite does with what is in it."""
    opened = os.open(root, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _short(data: str) -> str:
    """The last part of a path without its ending, in small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", Path(data).stem.lower()).strip("-")[:24].strip("-") or "run"
