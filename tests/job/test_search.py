from __future__ import annotations

import io
import math
import statistics
from pathlib import Path

import numpy as np
import pytest

from tests.job.searching import SMALL, small, told
from theta0.data import load
from theta0.errors import DataError, Theta0Error
from theta0.job import Found, Parts, resume, search
from theta0.job.asked import seconds_of
from theta0.runs import Run
from theta0.space import get_space


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return small(tmp_path_factory.mktemp("runs"))


def test_what_is_told_is_what_the_network_does(found: Found) -> None:
    parts = Parts.load("digits", size=None, seed=0)
    images, labels = parts.test.images.numpy(), parts.test.labels.numpy()
    right = found.model.predict(images) == np.array(parts.test.classes)[labels]
    assert found.accuracy == pytest.approx(100 * right.mean())
    probabilities = found.model.predict_proba(images)
    nll = -np.log(probabilities[np.arange(len(labels)), labels]).mean()
    assert found.facts["test"]["nll"] == pytest.approx(nll, rel=1e-5)
    assert np.trace(found.facts["test"]["confusion"]) == right.sum()
    assert found.facts["test"]["images"] == len(images)
    assert len(found.random) == 2
    assert found.gain == pytest.approx(found.accuracy - statistics.mean(found.random))


def test_the_run_tells_how_it_came_about(found: Found) -> None:
    with Run.open(found.path) as run:
        assert run.state == "finished"
        trials, pool, curves = run.trials(), run.scores(), run.curves()
        kinds = [event.kind for event in run.events()]
    assert len(trials) == 3
    assert len(pool.architectures) == 12
    space = get_space("nasbench201")
    assert {space.format(one.architecture) for one in trials} <= set(pool.architectures)
    assert found.architecture in {space.format(one.architecture) for one in trials}
    assert set(curves) == {"0", "1", "2", "final", "random-0", "random-1"}
    assert [len(curves[name]) for name in ("0", "final", "random-1")] == [1, 2, 2]
    stages = ["planned", "pool", "chose", "decided", "trained", "compared", "compared", "finished"]
    assert [kind for kind in kinds if kind in stages] == stages
    cost = space.measure(space.parse(found.architecture), channels=4, cells=1, shape=(1, 8, 8))
    assert (found.facts["parameters"], found.facts["flops"]) == cost
    assert "<svg" in (found.path / "report.html").read_text()
    assert not (found.path / "final.ckpt").exists()


def test_what_is_printed(found: Found) -> None:
    text = str(found)
    assert f"{found.accuracy:.2f} % of 359 images" in text
    assert f"{abs(found.gain):.2f} points {'above' if found.gain >= 0 else 'below'} their mean" in text
    assert f"theta0 export {found.path.name} --to onnx" in text


def test_the_same_seed_finds_the_same(found: Found, tmp_path: Path) -> None:
    again = small(tmp_path)
    assert told(again.path) == told(found.path)
    assert told(small(tmp_path, seed=1).path) != told(found.path)


def test_a_finished_run_is_given_back(found: Found) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in found.path.iterdir()}
    assert resume(found.path.name, root=found.path.parent).facts == found.facts
    assert {path.name: path.stat().st_mtime_ns for path in found.path.iterdir()} == before


def test_no_test_image_is_trained_or_chosen_with() -> None:
    parts = Parts.load("digits", size=None, seed=3)
    rows = {name: {image.tobytes() for image in getattr(parts, name).images.numpy()} for name in ("train", "test")}
    assert len(parts.train) + len(parts.validation) == len(parts.whole)
    assert len(parts.whole) + len(parts.test) == len(load("digits").train) + len(load("digits").test or [])
    assert not rows["train"] & rows["test"]


@pytest.mark.parametrize(
    "searcher", ["random", "evolution", "reinforce", "zerocost", "naswot", "knas", "robot", "hnas-paper", "bohb"]
)
def test_other_searchers(searcher: str, tmp_path: Path) -> None:
    found = small(tmp_path, searcher=searcher, evaluations=2, random=0, final_epochs=1)
    assert 0 <= found.accuracy <= 100
    assert math.isnan(found.gain)
    with Run.open(found.path) as run:
        trials = len(run.trials())
        assert trials == 0 if searcher in ("zerocost", "naswot") else 1 <= trials <= 2
        assert len(run.scores().architectures) == (
            0 if searcher in ("random", "evolution", "reinforce", "bohb") else 12
        )


@pytest.mark.parametrize(
    ("searcher", "settings"), [("nasi", {"steps": 3, "batch": 8}), ("gdas", {"search_epochs": 1, "batch": 256})]
)
def test_searchers_with_a_supernet(searcher: str, settings: dict[str, object], tmp_path: Path) -> None:
    supernet = {**settings, "skeleton": ("channels=4", "cells=1")}
    found = small(tmp_path, searcher=searcher, settings=supernet, random=0, final_epochs=1)
    with Run.open(found.path) as run:
        (trial,) = run.trials()
        assert run.space.format(trial.architecture) == found.architecture


def test_a_supernet_takes_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0.data import split
    from theta0.searchers import Budget
    from theta0.searching import run
    from theta0.training_objective import TrainingObjective

    train, validation = split(load("digits").train, (0.3, 0.7), seed=0)
    objective = TrainingObjective("nasbench201", train, validation, options={"channels": 4, "cells": 1}, epochs=[1])
    settings = {"search_epochs": 1000, "batch": 64, "skeleton": ("channels=4", "cells=1")}
    result = run("random-shared", objective, Budget(evaluations=1, seconds=4.0), settings=settings)
    assert 0 < result.trials[0].why["search_epochs"] < 1000
    assert result.own_seconds < 60  # a thousand epochs take longer on any machine


def test_a_space_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conftest import ROOT

    monkeypatch.chdir(ROOT / "examples")
    found = small(tmp_path, space="plain_space.py:PlainResNet", options={}, evaluations=2, random=1)
    monkeypatch.chdir(tmp_path)  # its file is known by a path that does not depend on the folder
    assert "depth=" in found.architecture
    assert resume(found.path.name, root=tmp_path).facts == found.facts
    assert len(found.model.predict(np.zeros((2, 8, 8), np.uint8))) == 2


def test_limits_are_kept(tmp_path: Path) -> None:
    free = small(tmp_path, evaluations=1, final_epochs=1)
    space = get_space("nasbench201")

    def costs(found: Found) -> list[int]:
        with Run.open(found.path) as run:
            drawn = [event.facts["architecture"] for event in run.events() if event.kind == "compared"]
            texts = [*run.scores().architectures, *drawn, found.architecture]
        options = {"channels": 4, "cells": 1, "shape": (1, 8, 8)}
        return [space.measure(space.parse(text), **options).parameters for text in texts]

    limit = sorted(costs(free))[3]
    assert max(costs(free)) > limit
    assert max(costs(small(tmp_path, max_params=limit, evaluations=1, final_epochs=1))) <= limit


def test_networks_become_smaller_where_the_limits_ask_for_it(tmp_path: Path) -> None:
    found = small(tmp_path, options={}, max_params=40_000, evaluations=1, pool=2, random=0, final_epochs=1)
    assert found.facts["parameters"] <= 40_000
    with Run.open(found.path) as run:
        (planned,) = (event.facts for event in run.events() if event.kind == "planned")
    assert planned["shrink"]["cells"] < 5


def test_progress_goes_to_the_stream_that_is_given(tmp_path: Path) -> None:
    out = io.StringIO()
    small(tmp_path, progress=out, random=1)
    lines = out.getvalue().splitlines()
    assert all(line[3] == ":" for line in lines)
    for words in ("digits: 1,438 images", "plan: score 12 networks; 3 trials", "scored 12 of 12", "trial 3 of 3"):
        assert any(words in line for line in lines), words


def test_stopped_by_the_keyboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr("theta0.training_objective.train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            small(tmp_path / "stopped", progress=out)
    (path,) = (tmp_path / "stopped").iterdir()
    assert f"stopped; `theta0 resume {path.name}` goes on" in out.getvalue()
    with Run.open(path) as run:
        assert run.state == "stopped"
        assert len(run.unfinished()) == 1
    resume("latest", root=tmp_path / "stopped")
    assert told(path) == told(whole.path)


def test_a_failure_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(tmp_path)
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise DataError("the disk is full")

        patch.setattr("theta0.job.work.save", full)
        with pytest.raises(DataError, match="the disk is full"):
            small(tmp_path / "failed")
    (path,) = (tmp_path / "failed").iterdir()
    with Run.open(path) as run:
        assert run.state == "failed"
        assert len(run.trials()) == 3
    resume(root=tmp_path / "failed")
    assert told(path) == told(whole.path)


# Arrays.


def test_arrays(tmp_path: Path) -> None:
    images = load("digits").train
    x, y = images.images.numpy()[:300], np.array(["zero", "one"])[images.labels.numpy()[:300] % 2]
    found = small(tmp_path, (x, y), evaluations=1, random=0)
    assert set(found.model.predict(x[:50])) <= {"zero", "one"}
    (path,) = tmp_path.iterdir()
    with Run.open(path, write=True) as run:
        run.event("began")  # as if it had been cut off
    with pytest.raises(Theta0Error, match="was made from arrays; give them again"):
        resume(root=tmp_path)
    with pytest.raises(Theta0Error, match="was made with other images than arrays holds now"):
        resume(root=tmp_path, data=(x[::-1].copy(), y))
    assert resume(root=tmp_path, data=(x, y)).accuracy == found.accuracy


# What cannot be done is known before anything is written.


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": 0}, "a budget is a time such as 90s, 3m or 1h"),
        ({"budget": "soon"}, "not 'soon'"),
        ({"budget": -1.0}, "above 0; not -1.0"),
        ({"evaluations": 0}, "evaluations are a number of 1 or more, not 0"),
        ({"max_params": 0}, "the limit of parameters is more than 0, not 0"),
        ({"max_params": 10}, r"within the limits \(parameters at most 10\); the least of 20 is [\d,]+ parameters"),
        ({"max_flops": 10}, r"the least of 20 is [\d,]+ multiply-adds"),
        ({"max_latency": 1e-6}, r"the least of 20 is [\d.]+ ms"),
        ({"seed": -1}, "a seed is an integer"),
        ({"seed": 0.5}, "a seed is an integer"),
        ({"pool": 0}, "pool is a number of 1 or more, not 0"),
        ({"random": -1}, "random is a number of 0 or more, not -1"),
        ({"space": "nasbench21"}, "did you mean nasbench201"),
        ({"searcher": "hna"}, "did you mean hnas"),
        ({"recipe": "brif"}, "did you mean brief"),
        ({"device": "gpu7"}, "there is no device 'gpu7'"),
        ({"precision": "fp8"}, "precision is one of auto, fp32, bf16, not 'fp8'"),
        ({"options": {"chanels": 3}}, "did you mean channels"),
        ({"options": {"track": False}}, "needs running statistics"),
        ({"settings": {"sample": 3}}, "the searcher hnas has no option 'sample'"),
        ({"skeleton": "large"}, "has no skeleton 'large'"),
        ({"data": "digitz"}, "did you mean digits"),
        ({"size": 0}, "size is the side of the square images"),
    ],
)
def test_what_cannot_be_done(changes: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(Theta0Error, match=said):
        small(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_one_class(tmp_path: Path) -> None:
    x = np.zeros((30, 8, 8), np.uint8)
    with pytest.raises(Theta0Error, match=r"two classes or more|more than one class|two or more"):
        search((x, np.zeros(30, int)), root=tmp_path, **SMALL)


def test_too_few_images(tmp_path: Path) -> None:
    x = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    with pytest.raises(DataError):
        search((x, np.array([0, 1, 0, 1])), root=tmp_path, **SMALL)


def test_a_run_of_something_else(tmp_path: Path) -> None:
    facts = {"data": "digits", "fingerprint": "", "space": "nasbench201", "searcher": "random", "seed": 0}
    with Run.create(tmp_path, facts) as run:
        name = run.name
    with pytest.raises(DataError, match="so it is no run of `theta0 search`"):
        resume(name, root=tmp_path)


def test_a_run_that_is_being_worked_on(tmp_path: Path) -> None:
    path = small(tmp_path, random=0).path
    with Run.open(path, write=True) as run, run.working(), pytest.raises(Theta0Error, match="is being worked on"):
        resume(path.name, root=tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("3m", 180), ("1.5h", 5400), ("2", 120), (3, 180), (0.5, 30), (" 4 m ", 240)]
)
def test_budgets(text: float | str, seconds: float) -> None:
    assert seconds_of(text) == seconds
