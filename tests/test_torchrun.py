"""Two processes that torchrun starts train one network; this file is what they run, too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.conftest import ROOT
from tests.trainings import QUICK, cell, digits, plain, untimed, weights
from theta0 import checkpoint
from theta0.errors import Theta0Error
from theta0.processes import current, joined
from theta0.recipe import Recipe
from theta0.train import Record, train

PARTS = replace(QUICK, clip=1.0, label_smoothing=0.1, ema=0.5, cutout=2)
TRAININGS: dict[str, tuple[Callable[[], nn.Module], Recipe, int]] = {
    "bare": (plain, replace(QUICK, nesterov=False, clip=0.0), 150),
    "parts": (plain, PARTS, 149),  # the last batch does not divide
    "batch normalisation": (cell, PARTS, 150),
    "dropout": (lambda: plain(dropout=0.5), QUICK, 150),
    "a few images left": (plain, QUICK, 131),
}
"""Network, recipe, images."""


def run(name: str, folder: Path, rank: int = 0, **options: Any) -> dict[str, Any]:
    """What one of the trainings gives in this process."""
    make, recipe, count = TRAININGS[name]
    train_set, validation = digits()
    torch.manual_seed(rank)
    # Weights are those of process 0, wherever others begin.
    model = make() if rank == 0 else nn.Sequential(*make()).apply(_spoil)
    heard: list[Record] = []
    images = train_set.subset(range(count))
    result = train(model, images, recipe, seed=2, validation=validation, progress=heard.append, **options)
    assert result.evaluation is not None
    return {
        "weights": weights(model),
        "history": [list(record) for record in untimed(result.history)],
        "confusion": result.evaluation.confusion,
        "cut": result.cut,
        "steps": result.steps,
        "heard": len(heard),
    }


def _spoil(module: nn.Module) -> None:
    for parameter in module.parameters(recurse=False):
        nn.init.normal_(parameter)


def message(recipe: Recipe) -> str:
    try:
        train(plain(), digits()[0], recipe, seed=0)
    except Theta0Error as error:
        return str(error)
    return ""


def work(folder: Path) -> None:
    torch.set_num_threads(1)
    with joined("cpu") as device:
        rank = current().rank
        assert device.type == "cpu"
        told: dict[str, Any] = {name: run(name, folder, rank) for name in TRAININGS}
        path = folder / "one.ckpt"
        asked = [False, True, True, True][rank:]  # process 0 stops after three steps; what others say does not count
        told["cut"] = run("parts", folder, rank, checkpoint=path, stop=lambda: not asked or not asked.pop())
        told["resumed"] = run("parts", folder, rank, checkpoint=path)
        told["batch of one"] = message(replace(QUICK, batch=1))
        told["diverged"] = message(replace(QUICK, learning_rate=1e30, clip=0.0))
        checkpoint.write(folder / f"told-{rank}", told)
    assert current().count == 1


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("torchrun")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "-m", "tests.test_torchrun", str(folder)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [checkpoint.read(folder / f"told-{rank}") for rank in range(2)]


def close(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert len(ours["history"]) == len(theirs["history"])
    for a, b in zip(ours["history"], theirs["history"], strict=True):
        assert [x for x in a if x is not None] == pytest.approx([x for x in b if x is not None], rel=1e-4)
    for name, value in theirs["weights"].items():
        torch.testing.assert_close(ours["weights"][name], value, rtol=1e-3, atol=1e-5)


def equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for key in ("history", "confusion", "cut", "steps"):
        assert ours[key] == theirs[key]
    assert all(torch.equal(ours["weights"][name], value) for name, value in theirs["weights"].items())


def test_two_processes_equal_one(told: list[dict[str, Any]], tmp_path: Path) -> None:
    for name in ("bare", "parts"):
        close(told[0][name], run(name, tmp_path))


@pytest.mark.parametrize("name", [*TRAININGS, "cut", "resumed"])
def test_the_result_is_the_same_in_each(told: list[dict[str, Any]], name: str) -> None:
    equal(told[1][name], told[0][name])


def test_each_drops_other_units(told: list[dict[str, Any]], tmp_path: Path) -> None:
    first = [training["history"][0][2] for training in (told[0]["dropout"], run("dropout", tmp_path))]
    assert first[0] != pytest.approx(first[1], rel=1e-3)


def test_process_0_calls_back_and_stops(told: list[dict[str, Any]]) -> None:
    assert [one["parts"]["heard"] for one in told] == [10, 0]
    assert [(one["cut"]["cut"], one["cut"]["steps"]) for one in told] == [("stop", 3)] * 2


def test_resumed_equals_uninterrupted(told: list[dict[str, Any]]) -> None:
    equal(told[0]["resumed"], told[0]["parts"])


def test_each_needs_two_images(told: list[dict[str, Any]]) -> None:
    assert told[0]["a few images left"]["steps"] == 2 * 4  # 3 are left out
    for one in told:
        assert "in batches of 1 are too few for 2 processes" in one["batch of one"]


def test_divergence_is_known_to_all(told: list[dict[str, Any]]) -> None:
    assert "the loss is nan in step 1" in told[0]["diverged"]
    assert told[1]["diverged"] == told[0]["diverged"]


if __name__ == "__main__":
    work(Path(sys.argv[1]))
