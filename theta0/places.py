"""Where data and runs lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from theta0.errors import Theta0Error


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of known data: ``root``, else the environment's THETA0_DATA, else ~/.cache/theta0."""
    chosen = root if root is not None else os.environ.get("THETA0_DATA") or Path.home() / ".cache" / "theta0"
    return Path(chosen).expanduser()


def check_folder(path: Path) -> None:
    """An error unless the folder is there or can be made: asked before hours of work. It is not made yet."""
    there = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise Theta0Error(f"{there} is a file, so that nothing can be written to the folder {path}; name another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Theta0Error(f"nothing may be written to {there}, where the folder {path} should be; name another")


def runs_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of runs: ``root``, else the environment's THETA0_RUNS, else ``runs`` in the current folder."""
    return Path(root if root is not None else os.environ.get("THETA0_RUNS") or "runs").expanduser()
