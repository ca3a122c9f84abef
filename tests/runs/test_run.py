from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.runs.making import SETTINGS, SPACE, architecture, open_folder, python, said, trial, without_rights
from theta0.errors import DataError, Theta0Error
from theta0.objective import Objective, Outcome
from theta0.runs import Run, runs
from theta0.searchers import Budget
from theta0.searching import incumbent
from theta0.searching import run as search

HOLDING = """
import sys, time
from theta0.runs import Run
with Run.open(sys.argv[1], write=True) as run, run.working():
    run.claim(int(sys.argv[2]), run.space.parse(sys.argv[3]), 12, seed=5)
    run.add_point(int(sys.argv[2]), 1, loss=9)
    print("claimed", flush=True)
    time.sleep(60)
"""


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    before = time.time()
    with Run.create(tmp_path, SETTINGS) as run:
        run.claim(0, architecture(0), 12, seed=7)
        run.add_trial(trial(0))
        run.add_trial(trial(1, math.nan))
        run.event("exported", to="onnx", classes=["a", "b"])
        run.add_point("final", 2, loss=0.1, accuracy=1 / 3)
        run.add_point("final", 1, loss=0.2)
        run.add_point("final", 1, loss=0.3)
        run.add_point(0, 1, loss=math.nan)
        (run.path / "report.html").write_text("x")
        path = run.path
    with Run.open(path) as run:
        assert run.settings == SETTINGS
        assert run.environment["command"] == sys.orig_argv
        assert run.environment["versions"]["torch"]
        assert before <= run.created <= time.time()
        first, second = run.trials()
        assert first == trial(0)
        assert math.isnan(second.value)
        assert second.architecture == architecture(1)
        claimed, added = run.evaluations()
        assert (claimed.seed, added.seed, added.started) == (7, None, None)
        assert claimed.started is not None
        assert claimed.finished is not None
        assert before <= claimed.started <= claimed.finished <= time.time()
        (event,) = run.events()
        assert (event.kind, event.facts) == ("exported", {"to": "onnx", "classes": ["a", "b"]})
        curves = run.curves()
        assert curves["final"] == [{"epoch": 1, "loss": 0.3}, {"epoch": 2, "loss": 0.1, "accuracy": 1 / 3}]
        assert math.isnan(curves["0"][0]["loss"])
        (process,) = run.processes().values()
        assert (process.pid, process.alive) == (os.getpid(), False)
        assert not run.unfinished()


def test_nothing_of_a_writer_remains_in_the_folder(tmp_path: Path) -> None:
    with Run.create(tmp_path, SETTINGS) as run:
        assert any(name.startswith(".writer-") for name in os.listdir(run.path))
    assert os.listdir(run.path) == ["run.db"]
    assert os.listdir(tmp_path) == [run.name]


@pytest.mark.parametrize("values", [[], [math.nan], [60.0, 70, 70, math.nan], [70.0, 60]])
def test_the_incumbent_is_that_of_the_search(tmp_path: Path, values: list[float]) -> None:
    with Run.create(tmp_path, SETTINGS) as run:
        for number, value in enumerate(values):
            run.add_trial(trial(number, value, epochs=12 if number else 6))
        best = run.incumbent
        expected = incumbent(run.trials())
        assert (None if best is None else SPACE.parse(best.architecture)) == expected


class Digits(Objective[object]):
    """An objective that ends in the middle, as a process does that is killed."""

    space, epochs = SPACE, (12,)

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def evaluate(self, architecture: object, epochs: int, seconds: float = math.inf) -> Outcome:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        number = sum(SPACE.encode(architecture))
        return Outcome(math.nan if number % 5 == 0 else 100 / (1 + number), 0.1 * number, "")


@pytest.mark.parametrize("searcher", ["random", "evolution"])
def test_a_search_goes_on_from_its_record(tmp_path: Path, searcher: str) -> None:
    budget = Budget(evaluations=30)
    whole = search(searcher, Digits(30), budget, seed=1)
    with (
        Run.create(tmp_path, SETTINGS) as run,
        pytest.raises(KeyboardInterrupt),
        run.working(),
    ):
        search(searcher, Digits(13), budget, seed=1, on_trial=run.add_trial)
    with Run.find("latest", tmp_path, write=True) as run:
        assert (run.state, len(run.trials())) == ("stopped", 13)
        with run.working():
            result = search(searcher, Digits(17), budget, seed=1, trials=run.trials(), on_trial=run.add_trial)
        assert (run.state, len(run.trials())) == ("finished", 30)
    assert repr(result.trials) == repr(whole.trials)  # NaN is not equal to itself
    assert result.chosen == whole.chosen


def test_states(tmp_path: Path) -> None:
    with Run.create(tmp_path, SETTINGS) as run:
        path = run.path
        assert run.state == "stopped"
        with run.working() as end:
            assert run.state == "running"
            assert Run.open(path).state == "running"
            end["chosen"] = "x"
        assert run.state == "finished"
        assert run.events()[-1].facts == {"chosen": "x"}
        with pytest.raises(ZeroDivisionError), run.working():
            print(1 / 0)
        assert run.state == "failed"
        assert run.events()[-1].facts == {"error": "ZeroDivisionError: division by zero"}
        with pytest.raises(KeyboardInterrupt), run.working():
            raise KeyboardInterrupt
        assert run.state == "stopped"
    with python(HOLDING, path, 0, SPACE.format(architecture(0))) as other:
        assert said(other) == "claimed\n"
        run = Run.open(path)
        assert run.state == "running"
        assert [process.alive for process in run.processes().values()] == [False, True]
        with Run.open(path, write=True) as second, second.working():
            pass
        assert run.state == "running"  # the other one still works
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert run.state == "finished"
    with Run.open(path, write=True) as again:
        again.event("exported")  # opened, but not to search
        assert run.state == "finished"


def test_a_trial_in_flight_belongs_to_its_process_until_that_dies(tmp_path: Path) -> None:
    with Run.create(tmp_path, SETTINGS) as run, python(HOLDING, run.path, 0, SPACE.format(architecture(0))) as other:
        assert said(other) == "claimed\n"
        (flying,) = run.unfinished()
        assert (flying.number, flying.architecture, flying.seed) == (0, SPACE.format(architecture(0)), 5)
        assert flying.process is not None
        assert run.processes()[flying.process].pid == other.pid
        with pytest.raises(Theta0Error, match=f"trial 0 of .* is being evaluated by process {other.pid}"):
            run.claim(0, architecture(0), 12)
        with pytest.raises(Theta0Error, match="is being evaluated"):
            run.add_trial(trial(0))
        assert run.claim(None, architecture(1), 12) == 1
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert run.unfinished()[0] == flying
        with pytest.raises(Theta0Error, match=r"was begun with .* of another search, seed or version"):
            run.claim(0, architecture(2), 12)
        assert run.curves() == {"0": [{"epoch": 1, "loss": 9}]}
        assert run.claim(0, architecture(0), 12, seed=5) == 0
        assert run.curves() == {}
        assert [event.kind for event in run.events()] == ["began", "repeats"]
        run.add_trial(trial(0))
        assert [one.number for one in run.unfinished()] == [1]
        with pytest.raises(Theta0Error, match=r"trial 0 of .* is finished already"):
            run.claim(0, architecture(0), 12)
        with pytest.raises(Theta0Error, match=r"trial 0 of .* is finished already"):
            run.add_trial(trial(0))
        assert run.trials() == [trial(0)]
        left = [name for name in os.listdir(run.path) if name.startswith(".writer-")]
        assert len(left) == 2
        with Run.open(run.path, write=True):
            pass
        assert len([name for name in os.listdir(run.path) if name.startswith(".writer-")]) == 1


SHARING = """
import sys
from types import SimpleNamespace
from theta0.errors import Theta0Error
from theta0.runs import Run

cell = sys.argv[2]
with Run.open(sys.argv[1], write=True) as run:
    def finish(number):  # a trial, without all that a search imports
        facts = dict(number=number, epochs=12, value=50.0, seconds=1.0, spent=1.0, note="", why={})
        run.add_trial(SimpleNamespace(architecture=run.space.parse(cell), **facts))

    print("ready", flush=True)
    sys.stdin.readline()
    taken = 0
    for dead in run.unfinished():
        try:
            run.claim(dead.number, run.space.parse(dead.architecture), dead.epochs)
        except Theta0Error:
            continue
        finish(dead.number)
        taken += 1
    for count in range(25):
        number = run.claim(None, run.space.parse(cell), 12)
        run.add_point(number, 0, loss=number)
        run.event("counted", number=number)
        finish(number)
    print(taken, flush=True)
"""


def test_processes_share_a_run(tmp_path: Path) -> None:
    """Four at once: numbers are given out once, dead claims are taken once, nothing is lost."""
    cell = SPACE.format(architecture(0))
    with Run.create(tmp_path, SETTINGS) as run, python(HOLDING, run.path, 0, cell) as dead:
        assert said(dead) == "claimed\n"
    with ExitStack() as stack:
        others = [stack.enter_context(python(SHARING, run.path, cell)) for _ in range(4)]
        for other in others:
            assert said(other) == "ready\n"
        ended = [other.communicate("\n", timeout=60) for other in others]
    with Run.open(run.path) as run:
        assert sum(int(out) for out, _ in ended) == 1, ended
        done = run.evaluations()
        assert [one.number for one in done] == list(range(101))
        assert not run.unfinished()
        by = [one.process for one in done]
        assert sorted(by.count(process) for process in set(by)) == [25, 25, 25, 26]
        assert sorted(event.facts["number"] for event in run.events() if event.kind == "counted") == list(range(1, 101))
        assert len(run.curves()) == 100


def test_a_forked_child_cannot_use_its_parent_s_run(tmp_path: Path) -> None:
    def child() -> None:
        try:
            run.events()
        except Theta0Error as error:
            run.close()
            os._exit(0 if "before this process was forked" in str(error) else 1)
        os._exit(2)

    with Run.create(tmp_path, SETTINGS) as run:
        forked = multiprocessing.get_context("fork").Process(target=child)
        forked.start()
        forked.join()
        assert forked.exitcode == 0
        run.event("still", here=True)
        assert [process.alive for process in run.processes().values()] == [True]


def test_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Theta0Error, match="there are no runs in"):
        Run.find("latest", tmp_path / "none")
    made = []
    for name in ("b", "a", "c"):
        with Run.create(tmp_path, SETTINGS) as run:
            made.append(run.path.rename(tmp_path / name))
    (tmp_path / "other").mkdir()
    assert Run.find("latest", tmp_path).name == "c"
    (tmp_path / "c/run.db").write_bytes(b"damaged")
    assert Run.find("latest", tmp_path).name == "a"
    monkeypatch.setenv("THETA0_RUNS", str(tmp_path))
    assert Run.find("a").path == tmp_path / "a"
    monkeypatch.delenv("THETA0_RUNS")
    monkeypatch.chdir(tmp_path)
    assert Run.find("b").settings == SETTINGS
    with pytest.raises(Theta0Error, match="there is no run 'lastest' in runs; did you mean latest"):
        Run.find("lastest")
    with pytest.raises(Theta0Error, match=r"there is no run 'x' in .*; known: a, b, c, latest"):
        Run.find("x", tmp_path)
    with pytest.raises(DataError, match=r"other: expected the folder of a run, found no run.db in it"):
        Run.find("other")
    with pytest.raises(DataError, match="found no folder there"):
        Run.open("nowhere")


@pytest.mark.parametrize("key", ["data", "fingerprint", "space", "searcher", "seed"])
def test_settings_tell_what_every_run_has(tmp_path: Path, key: str) -> None:
    with pytest.raises(Theta0Error, match=f"{key} is missing"):
        Run.create(tmp_path, {name: value for name, value in SETTINGS.items() if name != key})
    assert not os.listdir(tmp_path)


def test_what_json_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(Theta0Error, match=r"the settings of a run must be plain .* PosixPath"):
        Run.create(tmp_path, {**SETTINGS, "out": tmp_path})
    with Run.create(tmp_path, SETTINGS) as run:
        with pytest.raises(Theta0Error, match="the event 'export' must be plain"):
            run.event("export", to=tmp_path)
        assert not run.events()


def test_reading_changes_nothing_and_needs_no_right_to_write() -> None:
    with open_folder() as root:
        with Run.create(root, SETTINGS) as run:
            run.add_trial(trial(0))
            path = run.path

        def state() -> dict[str, tuple[int, bytes]]:
            files = {file.name: file for file in path.iterdir() if not file.name.endswith("-shm")}
            return {name: (file.stat().st_mtime_ns, file.read_bytes()) for name, file in files.items()}

        def read(expected: str) -> None:
            before, names = state(), sorted(os.listdir(path))
            for _ in range(2):
                with Run.open(path) as run:
                    assert run.trials() == [trial(0)]
                    assert run.state == expected
                    assert runs(root)[0].trials == 1
            assert (state(), sorted(os.listdir(path))) == (before, names)

        def refuse() -> None:
            with pytest.raises(DataError, match=r"(?i)readonly|denied|unable to open") as caught:
                Run.open(path, write=True)
            assert "copy" in str(caught.value)
            with pytest.raises(DataError, match=r"no run can be made there: Permission denied; .*THETA0_RUNS"):
                Run.create(root, SETTINGS)

        everything = (root, path, path / "run.db")
        read("stopped")
        with without_rights(*everything):
            read("stopped")
            refuse()
        with python(HOLDING, path, 1, SPACE.format(architecture(1))) as other:
            assert said(other) == "claimed\n"
            everything = (*everything, path / "run.db-wal", path / "run.db-shm")
            read("running")
            with without_rights(*everything):
                read("running")
                refuse()
        with without_rights(*everything):
            read("stopped")
            refuse()
        with pytest.raises(Theta0Error, match="open for reading; open it with write=True"):
            Run.open(path).event("x")


def test_settings_are_stored_as_plain_json(tmp_path: Path) -> None:
    """So that any program can read them."""
    with Run.create(tmp_path, SETTINGS) as run:
        pass
    with closing(sqlite3.connect(run.path / "run.db")) as connection:
        rows = dict(connection.execute("SELECT key, value FROM settings"))
    assert json.loads(rows["settings"]) == SETTINGS
    assert json.loads(rows["environment"])["machine"]["cores"] == os.cpu_count()
