"""Runs and processes for the tests of the run store."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT
from theta0.searching import Trial
from theta0.space import get_space

SETTINGS: dict[str, Any] = {
    "data": "digits",
    "fingerprint": "0123abcd",
    "space": "nasbench201",
    "searcher": "random",
    "seed": 3,
    "budget": {"evaluations": 20, "seconds": None},
}
SPACE = get_space("nasbench201")


def architecture(number: int) -> Any:
    return SPACE.sample(np.random.default_rng(number))


def trial(number: int, value: float | None = None, epochs: int = 12) -> Trial:
    made = 50 + number / 7 if value is None else value
    return Trial(number, architecture(number), epochs, made, 1.5, 1.5 * (number + 1), "", {"mu": number / 3})


@contextmanager
def python(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process of its own, which is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.readline() or process.stderr.read()


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def without_rights(*paths: Path) -> Iterator[None]:
    """Takes the right to write to ``paths`` away; root, who needs no rights, becomes somebody else."""
    if os.geteuid() == 0:
        codecs.lookup("cp437")  # of zip files; somebody else may not read Python's library, and a failure is remembered
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    modes = {path: path.stat().st_mode for path in paths}
    try:
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
