"""A writer is killed at random instants, in the middle of what it writes: what was finished is there, wholly."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.runs.making import SETTINGS, python, said
from theta0.runs import Run

WRITER = """
import sys, time
from types import SimpleNamespace
import numpy as np
from theta0.runs import Run

with Run.open(sys.argv[1], write=True) as run, run.working():
    cells = [run.space.sample(np.random.default_rng(number)) for number in range(50)]
    print("open", flush=True)
    number = sum(one.finished is not None for one in run.evaluations())
    while True:
        cell = cells[number % 50]
        run.claim(number, cell, 12, seed=number)
        for epoch in range(3):
            time.sleep(0.002)  # about half of the time goes into evaluations, half into what is stored of them
            run.add_point(number, epoch, loss=number + epoch)
        facts = dict(number=number, epochs=12, value=number / 7, seconds=0.5, spent=number / 2, note="n" * number)
        run.add_trial(SimpleNamespace(architecture=cell, why={"mu": number / 3}, **facts))
        print(number, flush=True)  # finished, as far as this process knows
        number += 1
"""


def killed_again_and_again(root: Path, kills: int) -> None:
    chance = random.Random(7)
    with Run.create(root, SETTINGS) as run:
        path = run.path
    known, repeats, cut = -1, 0, 0
    for _ in range(kills):
        with python(WRITER, path) as writer:
            assert said(writer) == "open\n"
            time.sleep(chance.uniform(0, 0.08))
            os.kill(writer.pid, signal.SIGKILL)
            out, _ = writer.communicate()
        lines = [int(line) for line in out.split("\n")[:-1]]
        assert lines == list(range(lines[0], lines[-1] + 1)) if lines else True
        known = lines[-1] if lines else known
        with Run.open(path) as run:
            assert run.state == "stopped"
            evaluations, curves = run.evaluations(), run.curves()
            done = [one for one in evaluations if one.finished is not None]
            flying = run.unfinished()
            repeats = sum(event.kind == "repeats" for event in run.events())
        # Nothing that the writer knew to be finished is lost; at most one more was finished before it could say so.
        assert [one.number for one in done] == list(range(len(done)))
        assert len(done) in (known + 1, known + 2)
        assert [one.number for one in flying] in ([], [len(done)])
        assert repeats == cut
        cut += len(flying)
        known = len(done) - 1
        for one in done:
            facts = one.value, one.seconds, one.spent, one.note, one.why, one.seed
            number = one.number
            assert facts == (number / 7, 0.5, number / 2, "n" * number, {"mu": number / 3}, number)
            assert [point["loss"] for point in curves[str(number)]] == [number, number + 1, number + 2]
    assert known > kills / 2  # it did get somewhere
    assert cut  # and was caught in the middle
    with closing(sqlite3.connect(path / "run.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_15_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 15)


@pytest.mark.slow
def test_50_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 50)


CREATOR = """
import sys
from theta0.runs import Run, run

run.environment = dict  # what it tells of the machine takes longer than all the rest
settings = {"data": "d", "fingerprint": "", "space": "nasbench201", "searcher": "random", "seed": 0}
print("open", flush=True)
while True:
    with Run.create(sys.argv[1], settings) as made:
        print(made.name, flush=True)
"""


def test_a_run_is_made_wholly_or_not_at_all(tmp_path: Path) -> None:
    chance, known = random.Random(7), set()
    for _ in range(8):
        with python(CREATOR, tmp_path) as creator:
            assert said(creator) == "open\n"
            time.sleep(chance.uniform(0.05, 0.25))
            os.kill(creator.pid, signal.SIGKILL)
            out, _ = creator.communicate()
            known |= set(out.split("\n")[:-1])
    made = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert known
    assert known <= made
    assert len(made - known) <= 8
    for name in made:
        assert Run.open(tmp_path / name).settings["searcher"] == "random"
