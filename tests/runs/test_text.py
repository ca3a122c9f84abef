"""``theta0 runs`` and ``theta0 show``."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.runs.making import SETTINGS, SPACE, architecture, trial
from theta0.cli import main
from theta0.runs import Run

Output = pytest.CaptureFixture[str]


@pytest.fixture
def name(tmp_path: Path) -> str:
    with Run.create(tmp_path, SETTINGS) as run:
        with run.working() as end:
            for number in range(4):
                run.add_trial(trial(number))
            run.add_trial(replace(trial(4, math.nan), note="OutOfMemoryError: 3 GB"))
            end["chosen"] = "the best"
        run.claim(5, architecture(5), 12)
        return run.name


def test_runs(capsys: Output, tmp_path: Path, name: str) -> None:
    assert main(["runs", "--root", str(tmp_path)]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "state", "data", "space", "searcher", "trials", "best", "cost", "s", "started"]
    assert line.split()[:8] == [name, "finished", "digits", "nasbench201", "random", "5", "50.43", "8"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/run.db").write_bytes(b"x" * 5000)
    assert main(["runs", "--root", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["bad", "unreadable"]
    assert lines[2].split() == line.split()
    assert "run.db is damaged" in lines[3]
    assert main(["runs", "--root", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path / 'none'}; --root or THETA0_RUNS names another folder\n"


def test_show(capsys: Output, tmp_path: Path, name: str) -> None:
    assert main(["show", name, "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    squeezed = [" ".join(line.split()) for line in out.splitlines()]
    for line in (
        f"run {name}",
        "state finished",
        "searcher random",
        'budget {"evaluations": 20, "seconds": null}',
        f"incumbent trial 3: 50.43 %, {SPACE.format(architecture(3))}",
        f"0 12 50.00 1.5 1.5 {SPACE.format(architecture(0))}",
        f"4 12 failed 1.5 7.5 {SPACE.format(architecture(4))} (OutOfMemoryError: 3 GB)",
        f"5 12 cut off {SPACE.format(architecture(5))}",
    ):
        assert line in squeezed
    assert squeezed[-1].endswith("finished chosen=the best")
    assert "the last" not in out
    assert main(["show", "latest", "--root", str(tmp_path), "--last", "1"]) == 0
    out = capsys.readouterr().out
    assert "the last 1 of 6 trials" in out
    assert "the last 1 of 2 events" in out
    assert SPACE.format(architecture(4)) not in out
    with Run.find(name, tmp_path, write=True) as run:
        run.claim(5, architecture(5), 12)
        assert main(["show", str(tmp_path / name)]) == 0
    out = capsys.readouterr().out
    assert f"at work      process {os.getpid()} of " in out
    assert "in flight" in out


def test_show_of_a_new_run(capsys: Output, tmp_path: Path) -> None:
    with Run.create(tmp_path, SETTINGS):
        pass
    assert main(["show", "latest", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "none yet" in out
    assert out.endswith("no trials yet\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "latets"], "did you mean latest?"),
        (["show", "latest", "--last", "0"], "--last must be at least 1, not 0"),
        (["show", "latest", "--root", "/no/such/folder"], "there are no runs in /no/such/folder"),
        (["show", "/"], "/: expected the folder of a run, found no run.db in it"),
    ],
)
def test_bad_input(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setenv("THETA0_RUNS", str(tmp_path))
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("theta0: error: ")
    assert words in err
    assert len(err.splitlines()) == 1


def test_without_torch(tmp_path: Path, name: str) -> None:
    """They answer at once, and for a space that is not there any more."""
    code = "import sys; from theta0.cli import main; main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    for arguments in (["runs", "--root", str(tmp_path)], ["show", name, "--root", str(tmp_path)]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=False, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, b"")
    with Run.create(tmp_path, {**SETTINGS, "space": "gone.py:Space"}) as run:
        path = run.path
    assert main(["show", str(path)]) == 0
