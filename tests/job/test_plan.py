from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from theta0.job import Parts
from theta0.job.asked import Asked
from theta0.job.pace import Pace
from theta0.job.parts import share
from theta0.job.plan import LAST, POOL, TRIALS, Plan, final, plan, spread
from theta0.job.sizes import rungs, sizes
from theta0.recipe import get_recipe
from theta0.space import Skeleton, get_space

PARTS = Parts.load("digits", size=None, seed=0)
BRIEF = get_recipe("brief")


def asked(**changes: Any) -> Asked:
    given: dict[str, Any] = {
        "space": "nasbench201",
        "searcher": "hnas",
        "budget": None,
        "evaluations": None,
        "limits": {},
        "seed": 0,
        "device": "cpu",
        "precision": "auto",
        "options": {},
        "settings": {},
        "recipe": "brief",
        "size": None,
        "skeleton": None,
        "pool": None,
        "epochs": None,
        "final_epochs": None,
        "random": None,
    }
    return Asked.check(PARTS, **{**given, **changes})


def planned(monkeypatch: pytest.MonkeyPatch, pace: Pace, **changes: Any) -> Plan:
    """With a machine of a known pace."""
    monkeypatch.setattr("theta0.job.plan.pace", lambda *_: pace)
    return plan(asked(**changes), PARTS, BRIEF)


@pytest.mark.parametrize("minutes", [0.5, 3, 60])
@pytest.mark.parametrize("image", [1e-5, 1e-3, 0.02])
def test_a_plan_keeps_its_time(minutes: float, image: float, monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, Pace(0.05, image), budget=minutes)
    seconds = 60 * minutes
    assert made.pool == 40 or made.pool * 0.05 <= POOL * seconds
    trials = (made.evaluations or 0) * made.epochs * made.images * image
    if made.images > 2 * BRIEF.batch:  # else the time is too short for anything
        assert trials <= TRIALS * seconds
        # The final trainings can be as long as a trial.
        assert (1 + made.random) * made.epochs * made.images * image <= LAST * seconds
    assert made.images <= len(PARTS.train)
    assert made.threads in (1, torch.get_num_threads())


def test_a_slow_machine_gets_smaller_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow, slower = (planned(monkeypatch, Pace(0.05, image), budget="3m").shrink for image in (1e-4, 5e-3, 0.1))
    assert fast == {}
    assert slow["cells"] < 5
    assert slower["channels"] < 16


def test_what_the_user_says_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(
        monkeypatch, Pace(0.05, 0.02), budget="3m", evaluations=4, pool=70, epochs=7, final_epochs=9, random=1
    )
    assert (made.evaluations, made.pool, made.epochs, made.final_epochs, made.random) == (4, 70, 7, 9, 1)
    assert planned(monkeypatch, Pace(0.05, 0.1), budget="3m", options={"cells": 5, "channels": 16}).shrink == {}


def test_without_a_time_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr("theta0.job.plan.pace", measured)
    monkeypatch.setattr("theta0.job.plan.faster", measured)
    made = plan(asked(evaluations=8), PARTS, BRIEF)
    assert made == replace(made, evaluations=8, seconds=None, images=len(PARTS.train), shrink={})
    assert plan(asked(evaluations=8), PARTS, BRIEF) == made


def test_no_pool_where_no_score_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, Pace(0.0, 1e-3), searcher="evolution").pool == 0
    assert asked(searcher="evolution").scores == []
    assert asked(searcher="zerocost", settings={"score": "zico"}).scores == ["zico"]
    assert {"synflow", "kappa"} <= set(asked(searcher="hnas").scores)


@pytest.mark.parametrize(
    ("views", "found"),
    [(1e9, (12, 1000)), (5500, (5, 1000)), (3000, (3, 1000)), (2400, (3, 800)), (300, (3, 128)), (0, (3, 128))],
)
def test_spread(views: float, found: tuple[int, int]) -> None:
    assert spread(views, 1000, 12, 64) == found


def test_the_final_training_is_no_shorter_than_a_trial() -> None:
    trial = Plan(0, 3, 60.0, 5, 1000, 3, None, {}, 1)
    assert final(400.0, 1200, 64, trial) == (5, 1000)
    assert final(24_000.0, 1200, 64, trial) == (20, 1200)


@dataclass(frozen=True)
class Odd(Skeleton):
    channels: int = 6
    depth: int = 9


def test_rungs() -> None:
    darts = list(rungs(get_space("darts").options(), {}))
    assert [(one["layers"], one.get("channels")) for one in darts] == [(12, None), (4, None), (4, 18), (4, 9)]
    assert list(rungs(get_space("nasbench201").options(), {"cells": 5})) == [{"channels": 8}, {"channels": 4}]
    assert list(rungs(Odd(), {})) == [{"channels": 4}]
    assert list(rungs(Skeleton(), {})) == []


def test_sizes_within_limits() -> None:
    assert len(sizes(asked(), PARTS)) == 5
    found = sizes(asked(limits={"parameters": 20_000}), PARTS)
    assert 1 <= len(found) < 5
    assert found[-1] == {"cells": 1, "channels": 4}


def test_a_share_of_the_images_keeps_the_classes() -> None:
    few = share(PARTS.train, 200, 1)
    assert 195 <= len(few) <= 205
    counts = few.labels.bincount().double() / len(few)
    whole = PARTS.train.labels.bincount().double() / len(PARTS.train)
    assert float((counts - whole).abs().max()) < 0.01
    assert share(PARTS.train, 10**6, 1) is PARTS.train
