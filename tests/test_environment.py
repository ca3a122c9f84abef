from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import theta0
from theta0.environment import environment, machine, revision, versions


def test_environment_is_plain() -> None:
    told = environment()
    assert json.loads(json.dumps(told)) == told
    assert told["command"] == sys.orig_argv
    assert told["folder"] == str(Path.cwd())
    assert told["versions"] == versions()
    assert told["machine"] == machine()


def test_versions_are_those_at_work() -> None:
    assert versions() == {
        "theta0": theta0.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def test_machine() -> None:
    told = machine()
    assert told["processor"]
    assert told["cores"] >= 1
    assert (told["gpu"] is None) == (not torch.cuda.is_available())


def test_revision(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments: str) -> str:
        name = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert revision(tmp_path) is None
    git("init")
    assert revision(tmp_path) is None  # no commit yet
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "first")
    git("tag", "v1")
    assert revision(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "a").write_text("2")
    assert revision(tmp_path) == git("rev-parse", "HEAD") + "-dirty"
    (tmp_path / "below").mkdir()
    assert revision(tmp_path / "below") is None  # somebody else's checkout
