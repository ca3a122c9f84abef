"""Where data lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of known data: ``root``, else the environment's THETA0_DATA, else ~/.cache/theta0."""
    chosen = root if root is not None else os.environ.get("THETA0_DATA") or Path.home() / ".cache" / "theta0"
    return Path(chosen).expanduser()
