from __future__ import annotations

import itertools
import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.searchers.small import objective
from theta0.data import ImageDataset, load
from theta0.errors import DivergedError, Theta0Error
from theta0.forms import Mixtures, single
from theta0.objective import Objective, Outcome
from theta0.oneshot import Method, Run, accuracy, best, searcher
from theta0.oneshot.loop import options_of, skip_connections
from theta0.recipe import Recipe
from theta0.searchers import Budget, Task, searchers
from theta0.searchers.darts import DARTS, SecondOrder
from theta0.searchers.enas import ENAS
from theta0.searchers.gdas import GDAS
from theta0.searchers.pcdarts import PCDARTS
from theta0.searchers.setn import SETN
from theta0.searchers.shared import SharedWeights
from theta0.searchers.snas import SNAS
from theta0.searching import run
from theta0.space import Space, get_space
from theta0.training_objective import TrainingObjective

DIGITS = load("digits").train.subset(range(48))
SIZE: dict[str, Any] = {"search_epochs": 2, "batch": 16, "skeleton": ("channels=4", "cells=1")}
METHODS = (
    DARTS(**SIZE),
    SecondOrder(**SIZE),
    PCDARTS(**SIZE, head_start=1),
    GDAS(**SIZE),
    SNAS(**SIZE),
    SharedWeights(**SIZE),
    SETN(**SIZE),
    ENAS(**SIZE, controller_steps=2),
)
USER = "examples/pick_space.py:PickNet"


class Plain(Objective[Any]):
    """Evaluates nothing."""

    epochs = (1,)

    def __init__(self, space: Space[Any]) -> None:
        self.space = space

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        raise AssertionError


def started(method: Method, seed: int = 0, images: ImageDataset = DIGITS, space: str = "nasbench201") -> Run:
    return Run(Task(Plain(get_space(space)), Budget(1), images=images), method, seed)


def same(one: Run, other: Run) -> bool:
    a, b = one.state(), other.state()
    return (
        all(torch.equal(a["model"][name], b["model"][name]) for name in a["model"])
        and all(torch.equal(a["alphas"][name], b["alphas"][name]) for name in a["alphas"])
        and a["history"] == b["history"]
        and str(a["learner"]) == str(b["learner"])
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_stopped_after_any_step_it_goes_on(method: Method, tmp_path: Path) -> None:
    whole = started(method)
    whole.run()
    assert not same(whole, started(method))
    for cut in range(1, whole.done, 3):
        path = tmp_path / f"{cut}"
        kept = replace(method, checkpoint=str(path))
        first = started(kept)
        first.open()
        counted = itertools.count()
        first.run(lambda counted=counted, cut=cut: next(counted) == cut)  # type: ignore[misc]
        assert first.done == cut
        second = started(kept)
        second.open()
        assert second.done == cut
        second.run()
        assert same(whole, second)
        chosen = [next(method.candidates(one, np.random.default_rng(0))) for one in (whole, second)]
        assert chosen[0] == chosen[1]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("space", ["nasbench1shot1_2", "darts", USER])
def test_every_method_in_every_space(method: Method, space: str) -> None:
    size = {"nasbench1shot1_2": ("channels=16", "stacks=2", "cells=1"), "darts": ("channels=4", "layers=3"), USER: ()}
    images = DIGITS
    if space == "darts":
        generator = torch.Generator().manual_seed(0)
        pixels = torch.randint(256, (32, 3, 16, 16), generator=generator, dtype=torch.uint8)
        images = ImageDataset(pixels, torch.arange(32) % 4, tuple("abcd"), "noise")
    changes: dict[str, Any] = {"skeleton": size[space], "search_epochs": 2 if isinstance(method, PCDARTS) else 1}
    found = started(replace(method, **changes), images=images, space=space)
    found.run()
    assert found.space.encode(next(found.method.candidates(found, np.random.default_rng(0))))
    assert len(found.history) == changes["search_epochs"]
    assert 0 <= found.history[0].share <= 1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_warm_start_is_that_of_nasi(method: Method) -> None:
    found = started(replace(method, warm=2, search_epochs=2))
    assert found.warmed is not None
    strengths = found.alphas.strengths()
    assert any(max(values) - min(values) > 0.01 for values in strengths.values())
    assert strengths == found.warmed.strengths()
    again = started(replace(method, warm=2, warm_scale=3.0, search_epochs=2))
    assert again.alphas.strengths() != strengths
    found.run()


def test_what_nasi_leaves_out_starts_last() -> None:
    one = started(PCDARTS(**SIZE, head_start=0, warm=3))
    assert one.warmed is not None
    strengths = one.warmed.strengths()
    # The first candidate is none; the logits' own spread is a thousandth.
    assert all(values[0] < min(values) + 0.002 for name, values in strengths.items() if "->" in name)
    assert any(max(values) > min(values) + 0.01 for name, values in strengths.items() if "->" in name)
    found = one.warmed.state()["2 input"]
    assert float(found.max() - found.min()) < 0.1  # uniform but for the first logits' own spread


def test_enas_starts_where_nasi_ends() -> None:
    method = ENAS(**SIZE, warm=2, warm_scale=1000.0)
    found = started(method)
    assert found.warmed is not None
    wanted = found.space.encode(found.warmed.derive())
    drawn = [found.space.encode(method.drawn(found, np.random.default_rng(seed))) for seed in range(20)]
    assert np.mean(np.array(drawn) == wanted) > 0.7


def test_what_each_method_trains() -> None:
    """A first step moves weights; it moves logits where a method has some, and those of PC-DARTS later."""
    for method in METHODS:
        one = started(method)
        weights, logits = [w.detach().clone() for w in one.weights], one.alphas.state()
        counted = itertools.count()
        one.run(lambda counted=counted: next(counted) == 1)  # type: ignore[misc]
        moved = sum(not torch.equal(w, b) for w, b in zip(one.weights, weights, strict=True))
        single_path = isinstance(method, GDAS | SharedWeights)
        assert (moved < len(weights)) if single_path else (moved == len(weights)), type(method)
        changed = any(not torch.equal(one.alphas.logits[name], value) for name, value in logits.items())
        assert changed == (not isinstance(method, PCDARTS | ENAS) and type(method) is not SharedWeights)


def test_weights_and_logits_see_different_images_but_for_snas() -> None:
    one = started(DARTS(**SIZE))
    assert len(one.training) == len(one.validation) == 24
    pixels = {bytes(image.numpy().tobytes()) for image in one.training.images}
    assert not any(bytes(image.numpy().tobytes()) in pixels for image in one.validation.images)
    joint = started(SNAS(**SIZE))
    assert joint.training is joint.validation is joint.images


def test_temperatures() -> None:
    method = GDAS(**{**SIZE, "search_epochs": 3})
    one = started(method)
    found = []
    for epoch in range(3):
        one.done = epoch * one.whole
        found.append(method.temperature(one))
    assert found == pytest.approx([10, 5.05, 0.1])


def test_early_stops() -> None:
    class Skips(Method):
        def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
            return single(run.space, run.space.sample(generator))

        def current(self, run: Run) -> Any:
            return run.space.parse("|skip_connect~0|+|skip_connect~0|nor_conv_1x1~1|+|skip_connect~0|skip_connect~1|none~2|")  # fmt: skip  # noqa: E501

    one = started(Skips(**SIZE, stop_skips=4))
    one.run()
    assert len(one.history) == 1
    assert one.note().startswith(
        "stopped after epoch 1: a cell has 4 skip connections; collapsed: 67% of the operations"
    )
    assert started(Skips(**SIZE, stop_skips=5)).note() == ""
    two = started(Skips(**{**SIZE, "search_epochs": 9}, stop_same=2))
    two.run()
    assert len(two.history) == 3
    assert two.reason == "the architecture was the same for 2 epochs"


def test_a_collapse_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Collapsed(Method):
        def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
            for logits in run.alphas.parameters():
                logits.data[1] = 9.0
            return single(run.space, run.space.sample(generator))

    with caplog.at_level(logging.WARNING, "theta0"):
        result = run(searcher(Collapsed), objective(), Budget(1), images=DIGITS, **SIZE)
    assert "Collapsed: collapsed: 100% of the operations of a cell are skip connections, which supernets" in caplog.text
    assert "stop early (stop_skips=2), or search with pc-darts or nasi" in caplog.text
    assert result.trials[0].why["skips"] == 6


def test_skip_connections() -> None:
    darts = get_space("darts")
    assert skip_connections(darts, darts.parse("DARTS_V2")) == (3, 3 / 8)
    user = get_space(USER)
    assert skip_connections(user, user.decode((0, 0, 1, 2, 0))) == (2, 2 / 5)


def test_trainings_that_diverge_are_named() -> None:
    broken = started(DARTS(**SIZE))
    with torch.no_grad():
        broken.weights[-1].fill_(float("nan"))
    with pytest.raises(
        DivergedError, match=r"the loss of the supernet is nan in step .* of epoch 0, .* lower learning"
    ):
        broken.run()
    one = started(SharedWeights(**SIZE))
    with torch.no_grad():
        one.alphas.parameters()[0].fill_(float("inf"))
    with pytest.raises(DivergedError, match="in epoch 0 the logits of 0->1 are no longer finite"):
        one.run()


def test_shared_weights_judge() -> None:
    one = started(SharedWeights(**SIZE))
    batch = one.validation.batch(24, seed=0)
    architectures = [one.space.sample(np.random.default_rng(seed)) for seed in range(5)]
    found = best(one, architectures, 24)
    assert sorted(map(str, found)) == sorted(map(str, architectures))
    values = [accuracy(one, architecture, batch) for architecture in architectures]
    assert all(0 <= value <= 1 for value in values)


def test_a_training_objective_brings_its_images() -> None:
    recipe = Recipe(epochs=1, batch=16, learning_rate=0.1)
    options = {"channels": 4, "cells": 1}
    found = run("gdas", TrainingObjective("nasbench201", DIGITS, DIGITS, recipe=recipe, options=options), Budget(1), **SIZE)  # fmt: skip  # noqa: E501
    assert len(found.trials) == 1


def test_a_checkpoint_of_another_search(tmp_path: Path) -> None:
    path = str(tmp_path / "search")
    started(DARTS(**SIZE, checkpoint=path)).open()
    for other in (DARTS(**SIZE, checkpoint=path, alpha_rate=1.0), SecondOrder(**SIZE, checkpoint=path)):
        with pytest.raises(Theta0Error, match=r"alpha_rate|method"):
            started(other).open()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"search_epochs": 0}, "search_epochs is an integer of 1 or more, not 0"),
        ({"batch": 1}, "batch is an integer of 2 or more, not 1"),
        ({"share": 1.0}, "share lies between 0 and 1"),
        ({"learning_rate": 0.0}, "learning_rate is finite and more than 0"),
        ({"clip": -1.0}, "clip is finite and 0 or more"),
        ({"warm": -1}, "warm is an integer of 0 or more"),
    ],
)
def test_settings_of_nonsense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        DARTS(**settings)


def test_other_settings_of_nonsense() -> None:
    with pytest.raises(Theta0Error, match="temperatures fall from hot to cold"):
        GDAS(hot=0.1, cold=1.0)
    with pytest.raises(Theta0Error, match="temperatures fall from hot to cold"):
        SNAS(cold=0.0)
    with pytest.raises(Theta0Error, match="head_start less than the 10 epochs of the search"):
        PCDARTS(search_epochs=10)
    with pytest.raises(Theta0Error, match="at least one candidate"):
        SharedWeights(candidates_count=0)
    with pytest.raises(Theta0Error, match="controller_steps are 1 or more"):
        ENAS(controller_steps=0)
    with pytest.raises(Theta0Error, match="temperature and tanh are more than 0"):
        ENAS(tanh=0.0)
    with pytest.raises(Theta0Error, match="options of a skeleton are name=number"):
        options_of(("channels",))
    assert options_of(("channels=4", "affine=false")) == {"channels": 4, "affine": False}


def test_too_few_images() -> None:
    with pytest.raises(Theta0Error, match=r"1 images leaves a part without any|too few to train a supernet"):
        started(DARTS(**SIZE), images=DIGITS.subset([0]))
    with pytest.raises(Theta0Error, match="the space mlp has no supernet form"):
        started(DARTS(search_epochs=1), space="mlp")


def test_options_are_the_fields() -> None:
    from theta0.searching import options, settings_of

    known = options(searchers.get("pc-darts"))
    assert known["channels_share"] == 4
    assert known["batch"] == 256
    assert settings_of("skeleton=channels=8+cells=1,head_start=3", "pc-darts") == {
        "skeleton": ("channels=8", "cells=1"),
        "head_start": 3,
    }
