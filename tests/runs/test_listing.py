from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.runs.making import SETTINGS, trial
from theta0.runs import Run, runs


def test_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs(tmp_path / "none") == []
    with Run.create(tmp_path, SETTINGS) as run, run.working():
        for number, value in enumerate((60.0, math.nan, 70.0)):
            run.add_trial(trial(number, value))
        run.claim(3, trial(3).architecture, 12)
        created = run.created
        assert runs(tmp_path)[0].state == "running"
    with Run.create(tmp_path, {**SETTINGS, "data": "photos/cats", "searcher": "hnas"}) as second:
        pass
    run.path.rename(tmp_path / "zzz")  # the time counts, not the name
    monkeypatch.setenv("THETA0_RUNS", str(tmp_path))
    one, two = runs()
    assert (one.name, one.path, one.state, one.data, one.space) == (
        "zzz",
        tmp_path / "zzz",
        "finished",
        "digits",
        "nasbench201",
    )
    assert (one.searcher, one.trials, one.best, one.seconds, one.started) == ("random", 3, 70.0, 4.5, created)
    assert (two.name, two.state, two.data, two.trials, two.seconds) == (second.name, "stopped", "photos/cats", 0, 0.0)
    assert math.isnan(two.best)


def test_one_that_is_damaged_does_not_hide_the_others(tmp_path: Path) -> None:
    paths = []
    for _ in range(2):
        with Run.create(tmp_path, SETTINGS) as run:
            paths.append(run.path)
    (paths[1] / "run.db").write_bytes(b"x" * 5000)
    bad, good = runs(tmp_path)
    assert (bad.name, bad.state, good.state) == (paths[1].name, "unreadable", "stopped")
    assert "run.db is damaged" in bad.problem
