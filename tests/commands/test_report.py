"""The commands on runs: runs, show, report, watch and export."""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests import models
from tests.conftest import ROOT
from tests.report import making
from tests.report.reading import read
from tests.runs.making import open_folder, without_rights
from theta0.cli import main
from theta0.model import load, save
from theta0.runs import Run

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with its network, and after it one that failed."""
    root = tmp_path_factory.mktemp("runs")
    run, _ = making.begin(root, trials=5, pooled=20)
    making.finish(run)
    save(run.path / "model.ckpt", *models.digits())
    run.close()
    making.failed(root).close()
    return root


@pytest.fixture
def finished(root: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, below a folder of its own."""
    return Path(shutil.copytree(sorted_runs(root)[0], tmp_path / "runs" / "first"))


def sorted_runs(root: Path) -> list[Path]:
    return sorted(
        (path for path in root.iterdir() if path.is_dir()), key=lambda path: (path / "run.db").stat().st_ctime
    )


def told(capsys: Output, *arguments: object) -> str:
    """What a command that goes well prints."""
    assert main([str(argument) for argument in arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: Output, *arguments: object) -> str:
    """The one line of a command that cannot be done."""
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("theta0: error: ")
    assert err.count("\n") == 1, err
    return err


def test_runs(capsys: Output, root: Path) -> None:
    lines = told(capsys, "runs", "--root", root).splitlines()
    assert lines[0].split() == ["run", "state", "data", "space", "searcher", "trials", "best", "cost", "s", "started"]
    with Run.open(sorted_runs(root)[0]) as run:
        best = run.incumbent
        assert best is not None
        assert lines[1].split()[:7] == [run.name, "finished", "digits", "nasbench201", "hnas", "5", f"{best.value:.2f}"]
    assert lines[2].split()[1:7] == ["failed", "digits", "nasbench201", "hnas", "0", "-"]
    assert len(lines) == 3


def test_runs_of_an_empty_folder(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(capsys, "runs", "--root", tmp_path) == (
        f"no runs in {tmp_path}; --root or THETA0_RUNS names another folder\n"
    )
    monkeypatch.setenv("THETA0_RUNS", str(tmp_path / "nowhere"))
    assert f"no runs in {tmp_path / 'nowhere'};" in told(capsys, "runs")


def test_a_damaged_run_does_not_hide_the_others(capsys: Output, finished: Path) -> None:
    (finished.parent / "bad").mkdir()
    (finished.parent / "bad" / "run.db").write_bytes(b"no database" * 100)
    out = told(capsys, "runs", "--root", finished.parent)
    assert re.search(r"^bad +unreadable$", out, re.MULTILINE)
    assert "first  finished" in out
    assert "run.db is damaged" in out


def test_show(capsys: Output, finished: Path) -> None:
    out = told(capsys, "show", "first", "--root", finished.parent)
    for words in ("state", "finished", "digits", "nasbench201", "incumbent"):
        assert words in out
    short = told(capsys, "show", finished, "--last", 2)
    assert "the last 2 of 5 trials" in short
    assert len(short.splitlines()) < len(out.splitlines())


def test_report(capsys: Output, finished: Path, tmp_path: Path) -> None:
    out = told(capsys, "report", "first", "--root", finished.parent)
    assert out == f"{finished / 'report.html'}\n"
    page = read((finished / "report.html").read_text())
    assert "Test accuracy 97.5" in page.sections["result"].text
    assert told(capsys, "report", finished, "--out", tmp_path / "page.html") == f"{tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").is_file()


def test_the_latest_run_is_meant(capsys: Output, root: Path, tmp_path: Path) -> None:
    told(capsys, "report", "--root", root, "--out", tmp_path / "page.html")
    assert "It failed: DataError" in (tmp_path / "page.html").read_text()


def test_export(capsys: Output, finished: Path, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    out = told(capsys, "export", "first", "--root", finished.parent, "--to", "safetensors")
    paths = [Path(line) for line in out.splitlines()]
    assert paths == [finished / "export" / "first.safetensors", finished / "export" / "first.safetensors.md"]
    assert load(paths[0]).card == load(finished / "model.ckpt").card
    out = told(capsys, "export", finished, "--to", "safetensors", "--out", tmp_path / "x.safetensors")
    assert out.splitlines() == [str(tmp_path / "x.safetensors"), str(tmp_path / "x.safetensors.md")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["onnx", "pt2"])
def test_an_export_says_nothing_but_its_files(finished: Path, kind: str) -> None:
    """Torch's exporters talk of themselves, on both streams."""
    pytest.importorskip("onnxscript")
    command = [sys.executable, "-m", "theta0", "export", str(finished), "--to", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    expected = finished / "export" / f"first.{kind}"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected}\n{expected}.md\n", "")


COMMANDS = [["report"], ["watch", "--browser", "none"], ["export"], ["show"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_runs_that_are_not_there(capsys: Output, root: Path, tmp_path: Path, command: list[str]) -> None:
    assert f"there is no run 'nothing' in {root}; known: " in refused(capsys, *command, "nothing", "--root", root)
    assert "did you mean latest?" in refused(capsys, *command, "lates", "--root", root)
    name = sorted_runs(root)[0].name
    assert f"did you mean {name}" in refused(capsys, *command, name[:-1], "--root", root)
    empty = refused(capsys, *command, "latest", "--root", tmp_path)
    assert f"there are no runs in {tmp_path}; make one, or say where they are (--root)" in empty
    (tmp_path / "empty").mkdir()
    assert "expected the folder of a run, found no run.db in it" in refused(capsys, *command, tmp_path / "empty")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("version", "way"), [(77, "update theta0"), (0, "read it with the theta0 that made it")])
def test_runs_of_another_version(capsys: Output, finished: Path, command: list[str], version: int, way: str) -> None:
    with closing(sqlite3.connect(finished / "run.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    said = refused(capsys, *command, finished)
    assert f"{finished}: expected a run of format 1, found format {version}; {way}" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_damaged_runs(capsys: Output, finished: Path, command: list[str]) -> None:
    (finished / "run.db").write_bytes(b"no database" * 1000)
    assert "run.db is damaged" in refused(capsys, *command, finished)


def test_folders_without_the_right_to_write(capsys: Output, root: Path) -> None:
    """What only reads goes on; what writes says where else it could."""
    pytest.importorskip("safetensors.torch")
    with open_folder() as folder:
        path = Path(shutil.copytree(sorted_runs(root)[0], folder / "run"))
        for place in (path, *path.iterdir()):
            place.chmod(0o755 if place.is_dir() else 0o644)
        with without_rights(path, *path.iterdir()):
            assert "finished" in told(capsys, "runs", "--root", folder)
            assert "incumbent" in told(capsys, "show", path)
            said = refused(capsys, "report", path)
            assert f"{path / 'report.html'}: the report cannot be written: Permission denied; make room or get" in said
            assert "name another file (--out)" in said
            said = refused(capsys, "export", path, "--to", "safetensors")
            assert "Permission denied" in said or "nothing may be written to" in said
        assert not (path / "report.html").exists()


def test_a_run_without_a_network(capsys: Output, root: Path) -> None:
    said = refused(capsys, "export", "--root", root)
    assert "has no finished network: it is failed; go on with it: theta0 resume" in said


def test_values_that_cannot_be(capsys: Output, finished: Path) -> None:
    assert "--last must be at least 1, not 0" in refused(capsys, "show", finished, "--last", 0)
    assert "a port is from 0" in refused(capsys, "watch", finished, "--port", 70000, "--browser", "none")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = refused(capsys, "watch", finished, "--port", port, "--browser", "none")
        assert f"nothing can listen on port {port}: Address already in use; take another (--port)" in said
    said = refused(capsys, "report", finished, "--out", finished / "no" / "page.html")
    assert "No such file or directory" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export", "--to", "nonsense"], "argument --to: invalid choice: 'nonsense' (choose from"),
        (["watch", "--port", "x"], "argument --port: invalid int value: 'x'"),
        (["watch", "--browser", "lynx"], "argument --browser: invalid choice: 'lynx'"),
        (["show"], "the following arguments are required: run"),
        (["report", "a", "b"], "unrecognized arguments: b"),
    ],
)
def test_wrong_usage(capsys: Output, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_help_says_what_they_are_for(capsys: Output) -> None:
    for name, words in {
        "report": "one HTML page",
        "watch": "at a secret address of this machine",
        "export": "ONNX and pt2 run without theta0",
        "runs": "List the runs",
        "show": "Show a run",
    }.items():
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert words in " ".join(capsys.readouterr().out.split())
