"""What a result came from: the command line, the versions, the machine, the revision of the code."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import theta0


def environment() -> dict[str, Any]:
    """Everything below, to be kept with a result; plain enough for JSON."""
    return {
        "command": sys.orig_argv,
        "folder": str(Path.cwd()),
        "versions": versions(),
        "revision": revision(Path(theta0.__file__).parents[1]),
        "machine": machine(),
    }


def versions() -> dict[str, str]:
    """Of theta0, Python, and the libraries that numbers come from."""
    found = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    return {"theta0": theta0.__version__, "python": platform.python_version(), **found}


def machine() -> dict[str, Any]:
    """The processor, the GPU if there is one, and the system."""
    import torch

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or not Intel or AMD: the platform's own word has to do
        return platform.processor() or platform.machine()


def revision(checkout: Path) -> str | None:
    """The commit of a git checkout, with ``-dirty`` behind it if files were changed; None for anything else."""
    if not (checkout / ".git").exists():  # a package that is installed below somebody else's checkout has no revision
        return None
    command = ["git", "--no-optional-locks", "-C", str(checkout), "describe"]
    try:
        told = subprocess.run(
            [*command, "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):  # no git, no commit yet, or a checkout that git does not trust
        return None
    return told.stdout.strip()
