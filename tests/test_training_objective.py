from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.trainings import QUICK, digits, untimed
from theta0 import training_objective
from theta0.errors import DataError, Theta0Error
from theta0.seeding import derived
from theta0.space import get_space
from theta0.train import Record, train
from theta0.training_objective import TrainingObjective

SPACE = get_space("nasbench201")
SKIPS = SPACE.parse("|skip_connect~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|")
SMALL = SPACE.parse("|nor_conv_1x1~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|")
LARGE = SPACE.parse("|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|none~1|nor_conv_3x3~2|")
TINY = {"channels": 4, "cells": 1}


def made(**settings: Any) -> TrainingObjective:
    return TrainingObjective("nasbench201", *digits(), **{"recipe": QUICK, "options": TINY, **settings})


def test_records_are_passed_on() -> None:
    heard: list[tuple[Any, Record]] = []
    objective = made(on_record=lambda architecture, record: heard.append((architecture, record)))
    outcome = objective.evaluate(LARGE, 2)
    assert {architecture for architecture, _ in heard} == {LARGE}
    records = [record for _, record in heard]
    assert [record.step for record in records] == list(range(1, 11))
    assert all(record.accuracy is None for record in records)  # validated once, for the outcome
    first = len(heard)
    objective.evaluate(SMALL, 2)
    assert {architecture for architecture, _ in heard[first:]} == {SMALL}
    assert outcome.value == made().evaluate(LARGE, 2).value


def test_a_value_is_that_of_a_training() -> None:
    """The same network, seed, recipe and data, trained by hand."""
    heard: list[Record] = []
    outcome = made(seed=3, on_record=lambda _, record: heard.append(record)).evaluate(LARGE, 2)
    train_set, validation = digits()
    seed = derived(3, SPACE.format(LARGE), 2)
    model = SPACE.build(LARGE, seed=seed, shape=(1, 8, 8), classes=10, **TINY)
    result = train(model, train_set, QUICK, seed=seed, validation=validation, validate_every=None)
    assert result.evaluation is not None
    assert outcome.value == result.evaluation.accuracy
    assert untimed(heard) == untimed(result.history)
    assert (outcome.note, outcome.failed) == ("", False)
    assert outcome.seconds > 0


def curve(objective: TrainingObjective, architecture: Any, epochs: int) -> list[Record]:
    heard: list[Record] = []
    objective.on_record = lambda _, record: heard.append(record)
    objective.evaluate(architecture, epochs)
    return untimed(heard)


def test_a_value_does_not_depend_on_what_was_evaluated_before() -> None:
    objective = made(epochs=[2, 1])
    assert objective.epochs == (1, 2)
    alone = curve(objective, LARGE, 1)
    torch.manual_seed(7)
    longer = curve(objective, LARGE, 2)
    curve(objective, SMALL, 1)
    assert curve(objective, LARGE, 1) == alone
    assert longer[0].loss != alone[0].loss  # budgets have seeds of their own, and so has each architecture
    assert curve(made(epochs=[1], seed=1), LARGE, 1) != alone


def test_budgets_are_those_of_the_recipe() -> None:
    assert made().epochs == (2,)
    assert len(curve(made(epochs=[1]), SMALL, 1)) == 5
    with pytest.raises(Theta0Error, match="warm-up of 1 epochs does not fit into a training of 1"):
        made(recipe=replace(QUICK, warmup=1), epochs=[1, 2])


def test_networks_fit_the_data() -> None:
    options = made().skeleton
    assert (options.shape, options.classes) == ((1, 8, 8), 10)
    assert made(options={"cells": 2}).skeleton.cells == 2
    with pytest.raises(Theta0Error, match="no option 'width'"):
        made(options={"width": 3})
    train_set, validation = digits()
    with pytest.raises(DataError, match="the same classes"):
        TrainingObjective("nasbench201", train_set, replace(validation, classes=(*"abcdefghij",)))


def test_divergence_is_a_failed_outcome() -> None:
    outcome = made(recipe=replace(QUICK, learning_rate=1e30, clip=0.0)).evaluate(LARGE, 2)
    assert outcome.failed
    assert "the loss is nan in step" in outcome.note
    assert outcome.ranked == -math.inf


def test_a_network_that_is_too_large_is_a_failed_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(training_objective, "train", full)
    outcome = made().evaluate(LARGE, 2)
    assert outcome.failed
    assert "2.00 GiB" in outcome.note


def test_a_cut_is_noted() -> None:
    outcome = made().evaluate(LARGE, 2, seconds=1e-9)
    assert not outcome.failed
    assert outcome.note == "cut after 0.00 of 2 epochs"


@pytest.mark.parametrize("limit", ["parameters", "flops"])
def test_limits(limit: str) -> None:
    costs = [getattr(SPACE.measure(cell, made().skeleton), limit) for cell in (SKIPS, SMALL, LARGE)]
    assert costs == sorted(set(costs))
    objective = made(limits={limit: costs[1]})
    assert objective.allowed_all([SKIPS, SMALL, LARGE]).tolist() == [True, True, False]
    assert made().allowed_all([SKIPS, SMALL, LARGE]).all()


def test_limits_hold_together() -> None:
    parameters = SPACE.measure(LARGE, made().skeleton).parameters
    assert made(limits={"parameters": parameters, "flops": 1e12}).allowed(LARGE)
    assert not made(limits={"parameters": parameters, "flops": 1.0}).allowed(LARGE)
    assert not made(limits={"parameters": parameters - 1, "latency": 1e9}).allowed(LARGE)


def test_latency_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = made(limits={"latency": 1e9}, latency_batch=8)
    milliseconds = objective.latency(LARGE)
    assert 0 < milliseconds < 1e4
    assert objective.allowed(LARGE)
    monkeypatch.setattr(training_objective, "score", None)
    assert objective.latency(LARGE) == milliseconds
    objective.limits["latency"] = milliseconds * 0.99
    assert not objective.allowed(LARGE)


def test_limits_that_make_no_sense() -> None:
    with pytest.raises(Theta0Error, match="no limit of 'params'; did you mean parameters"):
        made(limits={"params": 1e6})
    with pytest.raises(Theta0Error, match="no limit of 'x'; known: flops, latency, parameters"):
        made(limits={"x": 1})
    for value in (0, -1.0, math.nan):
        with pytest.raises(Theta0Error, match=f"the limit of flops is more than 0; found {value}"):
            made(limits={"flops": value})
    with pytest.raises(DataError, match="batch of 151 images is larger"):
        made(latency_batch=151)
