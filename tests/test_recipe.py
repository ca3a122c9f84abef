from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from theta0.errors import Theta0Error
from theta0.recipe import RECIPES, Recipe, get_recipe


def test_cosine_falls_from_the_highest_to_the_final_rate() -> None:
    recipe = get_recipe("cifar100")
    steps, total = 521, 600 * 521
    rates = [recipe.rate(step, steps) for step in range(0, total, 997)]
    wanted = [0.001 + 0.034 * (1 + math.cos(math.pi * step / total)) / 2 for step in range(0, total, 997)]
    assert rates == pytest.approx(wanted, rel=1e-12)
    assert recipe.rate(total - 1, steps) == pytest.approx(0.001, abs=1e-9)


def test_linear_with_warm_up() -> None:
    recipe = get_recipe("imagenet")
    rates = [recipe.rate(step, 10) for step in range(2500)]
    assert rates[:50] == pytest.approx([0.5 * (step + 1) / 50 for step in range(50)])
    assert rates[50] == 0.5
    assert rates[50:] == pytest.approx([0.5 * (2500 - step) / 2450 for step in range(50, 2500)])


def test_part_of_an_epoch_warms_up() -> None:
    recipe = Recipe(epochs=2, batch=1, learning_rate=1.0, warmup=0.5, schedule="linear")
    assert [recipe.rate(step, 4) for step in range(8)] == pytest.approx([0.5, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])


def test_drop_path_grows_linearly() -> None:
    recipe = get_recipe("cifar")
    found = [recipe.drop_probability(epoch) for epoch in range(600)]
    assert found[0] == 0
    assert found == pytest.approx([0.2 * epoch / 600 for epoch in range(600)])


def test_the_papers_numbers() -> None:
    cifar, cifar100, imagenet, nasbench = (RECIPES[name] for name in ("cifar", "cifar100", "imagenet", "nasbench201"))
    assert (cifar.epochs, cifar.batch, cifar.learning_rate, cifar.final_learning_rate) == (600, 96, 0.025, 0)
    assert (cifar.momentum, cifar.weight_decay, cifar.cutout) == (0.9, 3e-4, 16)
    assert (cifar.auxiliary, cifar.drop_path, cifar.schedule) == (0.4, 0.2, "cosine")
    assert (cifar100.learning_rate, cifar100.final_learning_rate) == (0.035, 0.001)
    assert (cifar100.auxiliary, cifar100.drop_path, cifar100.epochs) == (0.6, 0.3, 600)
    assert (imagenet.epochs, imagenet.batch, imagenet.warmup, imagenet.learning_rate) == (250, 1024, 5, 0.5)
    assert (imagenet.schedule, imagenet.weight_decay, imagenet.auxiliary) == ("linear", 3e-5, 0.4)
    assert imagenet.label_smoothing > 0
    assert (nasbench.epochs, nasbench.batch, nasbench.learning_rate, nasbench.weight_decay) == (200, 256, 0.1, 5e-4)
    assert nasbench.nesterov


WRONG: list[tuple[str, Any, str]] = [
    ("epochs", 0, "integer of 1 or more; found 0"),
    ("epochs", 2.0, "integer of 1 or more"),
    ("batch", True, "integer of 1 or more"),
    ("learning_rate", 0, "more than 0"),
    ("learning_rate", math.nan, "more than 0"),
    ("learning_rate", math.inf, "more than 0"),
    ("momentum", 1.0, "less than 1; found 1.0"),
    ("weight_decay", -1e-4, "0 or more"),
    ("clip", -1.0, "0 .off. or more"),
    ("label_smoothing", 1.0, "less than 1"),
    ("cutout", 1.5, "pixels"),
    ("drop_path", 1.0, "less than 1"),
    ("ema", 1.0, "less than 1"),
    ("warmup", 600, "does not fit into a training of 600"),
    ("schedule", "step", "cosine, linear; found 'step'"),
    ("precision", "fp16", "fp32, bf16; found 'fp16'"),
    ("compile", "fast", "reduce-overhead.*found 'fast'"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
def test_settings_that_make_no_sense(name: str, value: Any, said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        replace(RECIPES["cifar"], **{name: value})


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(Theta0Error, match="needs momentum"):
        replace(RECIPES["nasbench201"], momentum=0.0)


def test_names() -> None:
    with pytest.raises(Theta0Error, match="did you mean cifar"):
        get_recipe("cifr")
