"""The report of a run: one HTML page that holds all it needs.

    write(run)                  # report.html in the run's folder
    page(run)                   # the same as text
    watch.watch(path)           # the same, live, at an address of this machine

A page is charts and tables made here; its script only adds what follows the pointer, and the page is whole without it.
Any part of a run may be missing: the page then says so where it would stand.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from theta0.errors import DataError
from theta0.report.document import document
from theta0.report.material import Material
from theta0.runs import Run

__all__ = ["page", "write"]
NAME = "report.html"


def page(run: Run, *, live: bool = False) -> str:
    """The page of a run as it is now."""
    return document(Material.of(run), live=live)


def write(run: Run, out: Path | None = None) -> Path:
    """Writes the page to ``out``, by default into the run's folder; it appears whole or not at all."""
    path = run.path / NAME if out is None else Path(out)
    text = page(run)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # another process may write it too
    try:
        try:
            part.write_text(text, encoding="utf-8", errors="backslashreplace")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path}: the report cannot be written: {error.strerror or error}; make room or get permission, or name "
            f"another file (--out)"
        ) from error
    return path
