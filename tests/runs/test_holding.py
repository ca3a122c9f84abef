from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.runs.making import python, said
from theta0.runs import holding
from theta0.runs.holding import Hold, held

HOLDING = """
import subprocess, sys, time
from pathlib import Path
from theta0.runs.holding import Hold

print(Hold(Path(sys.argv[1])).name, subprocess.Popen(["sleep", "60"]).pid, flush=True)
time.sleep(60)
"""


def test_held_until_it_is_released(tmp_path: Path) -> None:
    first, second = Hold(tmp_path), Hold(tmp_path)
    assert first.name != second.name
    assert held(tmp_path, first.name)
    assert held(tmp_path, first.name)  # asking does not take it
    first.release()
    assert not held(tmp_path, first.name)
    assert held(tmp_path, second.name)
    second.release()
    assert not os.listdir(tmp_path)
    assert not held(tmp_path, "never-there")


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_held_until_the_process_dies(tmp_path: Path, sign: signal.Signals) -> None:
    """Also while nobody has waited for the dead process, and while a command that it started lives on."""
    with python(HOLDING, tmp_path) as process:
        name, child = said(process).split()
        try:
            assert held(tmp_path, name)
            os.kill(process.pid, signal.SIGSTOP)
            assert held(tmp_path, name)
            os.kill(process.pid, sign)
            os.kill(process.pid, signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            assert not held(tmp_path, name)
            os.kill(int(child), 0)
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_a_folder_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(holding.fcntl, "flock", none)
    with pytest.raises(OSError, match="not supported"):
        Hold(tmp_path)
    assert not os.listdir(tmp_path)
