"""Steps against plain gradient descent, written out for one parameter after the other."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from tests.trainings import QUICK, cell, darts, digits, pictures, plain, weights
from theta0.data import ImageDataset
from theta0.errors import Theta0Error
from theta0.network.cells import set_drop_path
from theta0.processes import Processes
from theta0.recipe import Recipe
from theta0.seeding import derived
from theta0.step import Step

CPU = torch.device("cpu")
RATES = [0.1, 0.3, 0.2, 0.05]
BARE = Recipe(epochs=1, batch=8, learning_rate=1.0, momentum=0.0)


def batches(train_set: ImageDataset, size: int) -> list[tuple[Tensor, Tensor]]:
    return [train_set.batch(size, seed) for seed in range(len(RATES))]


def step_of(model: nn.Module, recipe: Recipe, classes: int = 10) -> Step:
    return Step(model, recipe, classes, CPU, Processes())


def steps(model: nn.Module, recipe: Recipe, given: Sequence[tuple[Tensor, Tensor]], classes: int) -> list[float]:
    """Trains in place, and keeps what is to be kept."""
    step = step_of(model.train(), recipe, classes)
    losses = [float(step(x, y, rate=rate, seed=i)) for i, ((x, y), rate) in enumerate(zip(given, RATES, strict=True))]
    step.finish()
    return losses


def smoothed(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy with a share of the target spread over all classes, image by image."""
    total = torch.zeros(())
    for row, label in zip(logits, labels.tolist(), strict=True):
        log_probabilities = row - row.exp().sum().log()
        total = total - (1 - smoothing) * log_probabilities[label] - smoothing * log_probabilities.mean()
    return total / len(labels)


def by_hand(model: nn.Module, recipe: Recipe, given: Sequence[tuple[Tensor, Tensor]]) -> list[float]:
    """The same as ``steps``."""
    model.train()
    parameters = list(model.parameters())
    speeds: list[Tensor | None] = [None for _ in parameters]
    average = {name: value.clone() for name, value in model.state_dict().items()}
    losses = []
    for i, ((x, y), rate) in enumerate(zip(given, RATES, strict=True)):
        torch.manual_seed(derived(i, 0))
        logits = model.with_auxiliary(x) if recipe.auxiliary else (model(x),)
        loss = smoothed(logits[0], y, recipe.label_smoothing)
        if recipe.auxiliary:
            loss = loss + recipe.auxiliary * smoothed(logits[1], y, recipe.label_smoothing)
        gradients = torch.autograd.grad(loss, parameters)
        norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients))
        shrunk = min(1.0, recipe.clip / norm) if recipe.clip else 1.0
        with torch.no_grad():
            for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
                g = g * shrunk + recipe.weight_decay * p
                before = speeds[k]
                speed = g if before is None else recipe.momentum * before + g
                speeds[k] = speed
                p -= rate * (g + recipe.momentum * speed if recipe.nesterov else speed)
        decay = min(recipe.ema, (2 + i) / (11 + i))
        for name, value in model.state_dict().items():
            average[name] = decay * average[name] + (1 - decay) * value if value.is_floating_point() else value.clone()
        losses.append(float(loss.detach()))
    if recipe.ema:
        model.load_state_dict(average)
    return losses


RECIPES = {
    "nothing": BARE,
    "momentum": replace(BARE, momentum=0.9),
    "nesterov": replace(BARE, momentum=0.9, nesterov=True),
    "weight decay": replace(BARE, momentum=0.9, weight_decay=0.1),
    "clipped": replace(BARE, clip=0.5),
    "not clipped": replace(BARE, clip=1e3),
    "label smoothing": replace(BARE, label_smoothing=0.2),
    "average": replace(BARE, ema=0.15),
    "slow average": replace(BARE, ema=0.99),
    "channels last": replace(BARE, channels_last=True),
    "everything": replace(
        QUICK, weight_decay=0.01, clip=1.0, label_smoothing=0.1, ema=0.25, channels_last=True, batch=8
    ),
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("kind", ["plain", "cell"])
def test_against_steps_by_hand(kind: str, name: str) -> None:
    model = cell() if kind == "cell" else plain(dropout=0.3)
    reference, given = copy.deepcopy(model), batches(digits()[0], 8)
    assert steps(model, RECIPES[name], given, 10) == pytest.approx(by_hand(reference, RECIPES[name], given), rel=1e-4)
    for key, value in reference.state_dict().items():
        torch.testing.assert_close(
            model.state_dict()[key], value, rtol=1e-3, atol=1e-5, msg=lambda m, k=key: f"{k} {m}"
        )


@pytest.mark.parametrize("auxiliary", [0.4, 1.0])
def test_auxiliary_classifier_and_dropped_paths(auxiliary: float) -> None:
    recipe = replace(BARE, auxiliary=auxiliary, momentum=0.9)
    model, given = darts(), batches(pictures()[0], 6)
    set_drop_path(model, 0.3)
    reference = copy.deepcopy(model)
    assert steps(model, recipe, given, 3) == pytest.approx(by_hand(reference, recipe, given), rel=1e-3)
    for key, value in reference.state_dict().items():
        torch.testing.assert_close(
            model.state_dict()[key], value, rtol=1e-2, atol=1e-4, msg=lambda m, k=key: f"{k} {m}"
        )


def test_frozen_parameters_stay() -> None:
    model = plain()
    model[0].weight.requires_grad_(False)
    before = weights(model)
    steps(model, replace(BARE, clip=1.0, weight_decay=0.1, ema=0.5), batches(digits()[0], 8), 10)
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"0.bias", "4.weight", "4.bias"}
    assert not model[0].weight.requires_grad
    assert model[4].weight.requires_grad


def test_draws_follow_the_seed_alone() -> None:
    given = batches(digits()[0], 8)[0]
    losses = []
    for noise, seed in ((0, 5), (1, 5), (1, 6)):
        step = step_of(plain(dropout=0.5).train(), BARE)
        torch.manual_seed(noise)
        losses.append(float(step(*given, rate=0.1, seed=seed)))
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("recipe", [QUICK, RECIPES["everything"], RECIPES["nothing"]], ids=["quick", "all", "bare"])
def test_goes_on_from_its_state(recipe: Recipe) -> None:
    given = batches(digits()[0], 8)
    whole = step_of(cell().train(), recipe)
    losses = [float(whole(x, y, rate=0.1, seed=i)) for i, (x, y) in enumerate(given)]
    first = step_of(cell().train(), recipe)
    for i in range(2):
        first(*given[i], rate=0.1, seed=i)
    second = step_of(cell(seed=9).train(), recipe)
    second.load(copy.deepcopy(first.state()))
    assert [float(second(*given[i], rate=0.1, seed=i)) for i in (2, 3)] == losses[2:]
    for step in (whole, second):
        step.finish()
    for ours, theirs in zip(weights(whole.model).values(), weights(second.model).values(), strict=True):
        assert torch.equal(ours, theirs)


def test_averaged_weights_are_kept_but_not_trained_on() -> None:
    given = batches(digits()[0], 8)
    step, bare = (step_of(cell().train(), replace(QUICK, ema=ema)) for ema in (0.9, 0.0))
    for i, (x, y) in enumerate(given):
        assert float(step(x, y, rate=0.1, seed=i)) == float(bare(x, y, rate=0.1, seed=i))
    kept = weights(step.kept())
    assert not torch.equal(kept["0.0.weight"], weights(step.model)["0.0.weight"])
    assert bare.kept() is bare.model
    step.finish()
    assert all(torch.equal(value, kept[name]) for name, value in weights(step.model).items())


def test_bf16_is_near() -> None:
    given = batches(digits()[0], 8)
    exact = steps(cell(), QUICK, given, 10)
    rounded = steps(cell(), replace(QUICK, precision="bf16"), given, 10)
    assert rounded != exact
    assert rounded == pytest.approx(exact, rel=0.2)


def test_a_recipe_that_does_not_fit_the_network() -> None:
    with pytest.raises(Theta0Error, match=r"weight 0\.4, but this network has none; build it with auxiliary=True"):
        step_of(cell(), replace(QUICK, auxiliary=0.4))
    with pytest.raises(Theta0Error, match="but this network has none"):
        step_of(darts(auxiliary=False), replace(QUICK, auxiliary=0.4))
    x, y = digits()[0].batch(8, 0)
    with pytest.raises(Theta0Error, match=r"need logits \(8, 12\), but the network gives a tensor \(8, 10\)"):
        step_of(cell(), QUICK, classes=12)(x, y, rate=0.1, seed=0)
