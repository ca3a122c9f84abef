from __future__ import annotations

import itertools
import math
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.trainings import QUICK, cell, darts, digits, pictures, plain, untimed, weights
from theta0 import checkpoint
from theta0.data import Augmentation
from theta0.errors import DataError, DivergedError, Theta0Error
from theta0.evaluation import evaluate
from theta0.network.cells import DropPath
from theta0.recipe import Recipe
from theta0.seeding import derived
from theta0.train import Record, Result, train

STEPS = 5
"""Of an epoch of QUICK: 150 images in batches of 32."""
ALL = replace(QUICK, epochs=3, ema=0.7, label_smoothing=0.1, cutout=2, warmup=0.5, channels_last=True)


def same(ours: nn.Module, theirs: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(ours).values(), weights(theirs).values(), strict=True))


def after(steps: int) -> Callable[[], bool]:
    """To stop a training where this many steps are done."""
    asked = itertools.count()
    return lambda: next(asked) >= steps


# What is trained.


def test_against_a_loop() -> None:
    train_set, model, reference = digits()[0], plain(), plain()
    recipe = Recipe(epochs=3, batch=32, learning_rate=0.2, warmup=1, momentum=0.9, weight_decay=1e-3, cutout=3)
    result = train(model, train_set, recipe, seed=4)
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    losses = []
    for epoch in range(3):
        augmentation = Augmentation(crop=1, flip=False, cutout=3)
        for x, y in train_set.batches(32, seed=derived(4, "epoch", epoch), augmentation=augmentation):
            optimizer.param_groups[0]["lr"] = recipe.rate(len(losses), STEPS)
            optimizer.zero_grad()
            loss = F.cross_entropy(reference(x), y)
            torch.autograd.backward(loss)
            optimizer.step()
            losses.append(float(loss.detach()))
    assert [record.loss for record in result.history] == pytest.approx(losses, rel=1e-4)
    assert [record.learning_rate for record in result.history] == [recipe.rate(step, STEPS) for step in range(15)]
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_without_augmentation() -> None:
    train_set = digits()[0]
    result = train(plain(), train_set, replace(QUICK, epochs=1, augment=False), seed=4)
    x, y = next(train_set.batches(32, seed=derived(4, "epoch", 0)))
    assert result.history[0].loss == pytest.approx(float(F.cross_entropy(plain()(x), y).detach()), rel=1e-5)


def test_it_learns() -> None:
    train_set, validation = digits()
    result = train(cell(), train_set, replace(QUICK, epochs=12), seed=0, validation=validation)
    assert result.evaluation is not None
    assert result.evaluation.accuracy > 40  # chance: 10
    assert result.history[-1].loss < 0.5 * result.history[0].loss


def test_a_seed_says_everything() -> None:
    results = []
    for noise, seed in ((0, 5), (1, 5), (1, 6)):
        torch.manual_seed(noise)
        results.append(untimed(train(plain(dropout=0.3), digits()[0], QUICK, seed=seed).history))
    assert results[0] == results[1] != results[2]


def test_records_of_many_steps() -> None:
    """Ten in an epoch; each has the mean loss of its steps."""
    train_set = digits()[0]
    each, few = (train(plain(), train_set.subset(range(count)), recipe, seed=0) for count, recipe in LONG)
    assert [record.step for record in few.history] == [
        3,
        6,
        9,
        12,
        15,
        18,
        21,
        24,
        25,
        28,
        31,
        34,
        37,
        40,
        43,
        46,
        49,
        50,
    ]
    assert [record.epochs for record in few.history] == [record.step / 25 for record in few.history]
    assert all(record.images_per_second > 0 for record in few.history)
    assert len(each.history) == 10
    reference, losses = plain(), []
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for x, y in train_set.batches(6, seed=derived(0, "epoch", 0)):
        loss = F.cross_entropy(reference(x), y)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
    means = [math.fsum(part) / len(part) for part in (losses[i : i + 3] for i in range(0, 25, 3))]
    assert [record.loss for record in few.history[:9]] == pytest.approx(means, rel=1e-4)


STILL = Recipe(epochs=2, batch=6, learning_rate=0.1, final_learning_rate=0.1, momentum=0.0, augment=False)
LONG = [(60, replace(STILL, epochs=1)), (150, STILL)]


def test_a_last_image_alone_is_left_out() -> None:
    train_set = digits()[0]
    assert train(cell(), train_set.subset(range(65)), QUICK, seed=0).steps == 2 * 2
    assert train(cell(), train_set.subset(range(66)), QUICK, seed=0).steps == 2 * 3


def test_normalization_is_that_of_the_training_set_or_given() -> None:
    train_set, validation = digits()
    result = train(plain(), train_set, QUICK, seed=0, validation=validation)
    assert result.normalization == train_set.mean_std() != validation.mean_std()
    other = train(plain(), train_set, QUICK, seed=0, normalization=((0.5,), (1.0,)))
    assert other.normalization == ((0.5,), (1.0,))
    assert other.history[0].loss != result.history[0].loss


def test_bf16_and_layout_change_rounding_only() -> None:
    losses = [
        [record.loss for record in train(cell(), digits()[0], replace(QUICK, epochs=1, **parts), seed=0).history]
        for parts in ({}, {"precision": "bf16"}, {"channels_last": True})
    ]
    assert losses[1] != losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=0.2)
    assert losses[2] == pytest.approx(losses[0], rel=1e-3)


# What is told.


def test_validation_is_recorded_where_it_is_due() -> None:
    train_set, validation = digits()
    heard: list[Record] = []
    model = cell()
    recipe = replace(QUICK, epochs=5)
    result = train(model, train_set, recipe, seed=0, validation=validation, validate_every=2, progress=heard.append)
    assert heard == result.history
    assert [record.epochs for record in heard if record.accuracy is not None] == [2, 4]
    assert all((record.nll is None) == (record.ece is None) == (record.accuracy is None) for record in heard)
    assert result.evaluation == evaluate(model, validation, normalization=result.normalization, batch=32)
    assert (result.epochs, result.steps, result.cut) == (5, 25, "")
    assert result.seconds > 0


def test_the_last_record_is_the_evaluation() -> None:
    train_set, validation = digits()
    result = train(cell(), train_set, replace(QUICK, ema=0.9), seed=0, validation=validation)
    found, last = result.evaluation, result.history[-1]
    assert found is not None
    assert (last.accuracy, last.nll, last.ece) == (found.accuracy, found.nll, found.ece)


def test_validation_does_not_change_the_training() -> None:
    train_set, validation = digits()
    alone, watched = cell(), cell()
    without = train(alone, train_set, ALL, seed=0)
    train(watched, train_set, ALL, seed=0, validation=validation)
    assert same(alone, watched)
    assert without.evaluation is None
    assert all(record.accuracy is None for record in without.history)


def test_averaged_weights_are_evaluated_and_kept() -> None:
    train_set, validation = digits()
    bare, averaged = cell(), cell()
    recipe = replace(QUICK, ema=0.9)
    losses = [record.loss for record in train(bare, train_set, QUICK, seed=0).history]
    result = train(averaged, train_set, recipe, seed=0, validation=validation)
    assert [record.loss for record in result.history] == losses
    assert not same(bare, averaged)
    assert result.evaluation == evaluate(averaged, validation, normalization=result.normalization, batch=32)


def test_drop_path_grows() -> None:
    model = darts()
    seen: list[tuple[bool, float]] = []

    def look(record: Record) -> None:
        seen.extend((one.active, float(one.keep)) for one in model.modules() if isinstance(one, DropPath))

    recipe = Recipe(epochs=4, batch=6, learning_rate=0.01, drop_path=0.4)
    train(model, pictures()[0], recipe, seed=0, progress=look)
    paths = sum(isinstance(one, DropPath) for one in model.modules())
    assert paths > 0
    wanted = [(probability > 0, pytest.approx(1 - probability)) for probability in (0.0, 0.1, 0.2, 0.3)]
    assert seen == [value for value in wanted for _ in range(2 * paths)]
    assert not any(one.active for one in model.modules() if isinstance(one, DropPath))


# What is left as it was found.


def test_left_as_found() -> None:
    model = darts()
    for i, module in enumerate(model.modules()):
        module.training = bool(i % 3)
    frozen = next(model.parameters()).requires_grad_(False)
    kept, modes = frozen.clone(), [module.training for module in model.modules()]
    flags = [parameter.requires_grad for parameter in model.parameters()]
    torch.manual_seed(11)
    random_state = torch.get_rng_state()
    recipe = Recipe(epochs=1, batch=6, learning_rate=0.01, drop_path=0.4, auxiliary=0.4, channels_last=True)
    with torch.no_grad():
        train(model, pictures()[0], recipe, seed=0, validation=pictures()[1])
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), random_state)
    assert [module.training for module in model.modules()] == modes
    assert [parameter.requires_grad for parameter in model.parameters()] == flags
    assert torch.equal(frozen, kept)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(parameter.is_contiguous() for parameter in model.parameters())


class StoppedError(Exception):
    pass


def test_left_as_found_by_an_error() -> None:
    model = cell().eval()
    random_state = torch.get_rng_state()

    def fail(record: Record) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        train(model, digits()[0], ALL, seed=0, progress=fail)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not any(module.training for module in model.modules())
    assert all(parameter.is_contiguous() for parameter in model.parameters())


# Where it ends early.


@pytest.mark.parametrize("steps", [0, 1, 5, 7])
def test_stop(steps: int) -> None:
    train_set, validation = digits()
    result = train(cell(), train_set, QUICK, seed=0, validation=validation, stop=after(steps))
    assert (result.cut, result.steps, result.epochs) == ("stop", steps, steps / STEPS)
    assert result.evaluation is not None
    assert len(result.history) == steps


def test_time() -> None:
    slow = replace(QUICK, epochs=100_000)
    result = train(plain(), digits()[0], slow, seed=0, seconds=0.3)
    assert result.cut == "time"
    assert 0.3 <= result.seconds < 5
    assert 0 < result.steps < slow.epochs * STEPS
    assert train(plain(), digits()[0], QUICK, seed=0, seconds=1e-9).steps == 0
    assert train(plain(), digits()[0], QUICK, seed=0, seconds=1e9).cut == ""


def test_divergence() -> None:
    with pytest.raises(DivergedError, match=r"the loss is nan in step \d \(epoch 0, .* rate of .*e\+29; lower it"):
        train(cell(), digits()[0], replace(QUICK, learning_rate=1e30, clip=0.0), seed=0)


@pytest.mark.parametrize("bad", [3, 8])
def test_divergence_names_the_step(bad: int) -> None:
    class Breaks(nn.Sequential):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return super().forward(x) * (math.inf if self.calls == bad + 1 else 1.0)

    with pytest.raises(DivergedError, match=rf"is (nan|inf) in step {bad} \(epoch {bad // STEPS}, "):
        train(Breaks(*plain()), digits()[0], QUICK, seed=0)


# Checkpoints.

CUTS = [1, 4, 5, 7, 10, 13]


def assert_resumed(make: Callable[[], nn.Module], parts: Callable[..., Result], whole: Callable[..., Result]) -> None:
    interrupted, uninterrupted = make(), make()
    ours, theirs = parts(interrupted), whole(uninterrupted)
    assert same(interrupted, uninterrupted)
    assert untimed(ours.history) == untimed(theirs.history)
    assert (ours.evaluation, ours.steps, ours.cut) == (theirs.evaluation, theirs.steps, "")


def resumed(make: Callable[[], nn.Module], recipe: Recipe, path: Path, cuts: list[int], *sets: Any) -> None:
    """A training cut after each number of steps of ``cuts`` is one that never was."""
    train_set, validation = sets

    def run(model: nn.Module, **options: Any) -> Result:
        return train(model, train_set, recipe, seed=3, validation=validation, **options)

    def parts(model: nn.Module) -> Result:
        done, seconds = 0, 0.0
        for cut in cuts:
            result = run(make(), checkpoint=path, stop=after(cut - done))
            assert (result.cut, result.steps) == ("stop", cut)
            assert result.seconds > seconds
            done, seconds = cut, result.seconds
        return run(model, checkpoint=path)

    assert_resumed(make, parts, run)


@pytest.mark.parametrize("cuts", [[cut] for cut in CUTS] + [CUTS], ids=str)
def test_resumed_equals_uninterrupted(tmp_path: Path, cuts: list[int]) -> None:
    resumed(cell, ALL, tmp_path / "one.ckpt", cuts, *digits())


def test_resumed_with_dropout_inside_a_record(tmp_path: Path) -> None:
    """25 steps an epoch, so that a record is the mean of several steps on both sides of a cut."""
    recipe = replace(ALL, batch=6, epochs=2, nesterov=False)
    resumed(lambda: plain(dropout=0.3), recipe, tmp_path / "one.ckpt", [1, 11, 24, 25, 44], *digits())


def test_resumed_with_drop_path_and_auxiliary_tower(tmp_path: Path) -> None:
    recipe = Recipe(epochs=3, batch=6, learning_rate=0.05, drop_path=0.4, auxiliary=0.4, cutout=8, ema=0.5, clip=5.0)
    resumed(darts, recipe, tmp_path / "one.ckpt", [2, 3, 5], *pictures())


def test_resumed_in_bf16(tmp_path: Path) -> None:
    resumed(cell, replace(ALL, precision="bf16"), tmp_path / "one.ckpt", [7], *digits())


@pytest.mark.parametrize("step", [1, 4, 5, 6, 9, 13])
@pytest.mark.parametrize("every", [None, 1, 3])
def test_resumed_after_an_error(tmp_path: Path, step: int, every: int | None) -> None:
    """Where nothing was saved at the end, a training goes on from the checkpoint before."""
    train_set, validation = digits()

    def run(model: nn.Module, **options: Any) -> Result:
        return train(model, train_set, ALL, seed=3, validation=validation, **options)

    def fail(record: Record) -> None:
        if record.step == step:
            raise StoppedError

    def parts(model: nn.Module) -> Result:
        with pytest.raises(StoppedError):
            run(cell(), checkpoint=tmp_path / "one.ckpt", checkpoint_every=every, progress=fail)
        found = checkpoint.read(tmp_path / "one.ckpt")
        done = found["epoch"] * STEPS + found["step"]
        # A record is made before its step is saved.
        epoch, inside = divmod(step - 1, STEPS)
        assert done == epoch * STEPS + (inside // every * every if every else 0)
        return run(model, checkpoint=tmp_path / "one.ckpt")

    assert_resumed(cell, parts, run)


def test_a_training_that_is_done_stays_done(tmp_path: Path) -> None:
    train_set, validation = digits()
    first, second = cell(), cell()
    path = tmp_path / "one.ckpt"
    results = [
        train(model, train_set, ALL, seed=0, validation=validation, checkpoint=path, stop=stop)
        for model, stop in ((first, None), (second, lambda: True))
    ]
    assert same(first, second)
    assert results[0].history == results[1].history
    assert results[0].evaluation == results[1].evaluation
    assert results[1].cut == ""
    assert [path.name for path in tmp_path.iterdir()] == ["one.ckpt"]


def test_a_longer_time_goes_on(tmp_path: Path) -> None:
    """What may differ between the parts of a training: time, callbacks, and how often it is saved and validated."""
    train_set, validation = digits()
    train(cell(), train_set, QUICK, seed=0, validation=validation, checkpoint=tmp_path / "a", seconds=1e-9)
    result = train(
        cell(), train_set, QUICK, seed=0, validation=validation, checkpoint=tmp_path / "a", validate_every=None
    )
    assert (result.cut, result.steps) == ("", 10)


OTHERS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "seed": (lambda: {"seed": 1}, "another seed"),
    "recipe": (lambda: {"recipe": replace(QUICK, epochs=3)}, r"another recipe with epochs=2 \(not 3\)"),
    "architecture": (lambda: {"model": plain()}, "another architecture"),
    "normalization": (lambda: {"normalization": ((0.0,), (1.0,))}, "another normalization"),
    "other images": (lambda: {"train_set": digits()[0].subset(range(1, 150))}, "another normalization"),
    "another order": (lambda: {"train_set": digits()[0].subset(range(149, -1, -1))}, "another training data"),
    "validation data": (lambda: {"validation": digits()[0]}, "another validation data"),
    "no validation": (lambda: {"validation": None}, "another validation data"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_training_is_refused(tmp_path: Path, name: str) -> None:
    train_set, validation = digits()
    ours: dict[str, Any] = {"train_set": train_set, "recipe": QUICK, "seed": 0, "validation": validation}
    path = tmp_path / "one.ckpt"
    train(cell(), **ours, checkpoint=path, stop=after(1))
    content = path.read_bytes()
    changes, said = OTHERS[name]
    with pytest.raises(DataError, match=rf"one\.ckpt: this checkpoint is of {said}; go on with"):
        train(**{"model": cell(), **ours, **changes()}, checkpoint=path)
    assert path.read_bytes() == content


def test_weights_come_from_the_checkpoint(tmp_path: Path) -> None:
    train_set, models = digits()[0], [cell(), cell(seed=1)]
    train(cell(), train_set, QUICK, seed=0, checkpoint=tmp_path / "one.ckpt", stop=after(1))
    for model in models:
        (tmp_path / "copy.ckpt").write_bytes((tmp_path / "one.ckpt").read_bytes())
        train(model, train_set, QUICK, seed=0, checkpoint=tmp_path / "copy.ckpt")
    assert same(*models)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no folder .*nowhere for the checkpoint; make it first"):
        train(cell(), digits()[0], QUICK, seed=0, checkpoint=tmp_path / "nowhere/one.ckpt")


LONGER = replace(ALL, epochs=40)


def work(path: Path, done: Path) -> None:
    """Runs in a process of its own, which may be killed."""
    torch.set_num_threads(1)
    train_set, validation = digits()
    model = cell()
    result = train(model, train_set, LONGER, seed=3, validation=validation, checkpoint=path, checkpoint_every=2)
    checkpoint.write(
        done, {"weights": weights(model), "history": [list(r) for r in untimed(result.history)], "steps": result.steps}
    )


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    """SIGKILL at random instants of real processes, until one of them comes to the end."""
    path, done, generator = tmp_path / "one.ckpt", tmp_path / "done", random.Random(0)
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["tests.test_train", "sklearn.datasets"])  # so that processes start at once
    places = set()
    while not done.exists():
        written = path.stat().st_mtime_ns if path.exists() else 0
        process = start.Process(target=work, args=(path, done))
        process.start()
        # The time begins with the first checkpoint of the process, since machines start processes at their own pace.
        while process.is_alive() and not (path.exists() and path.stat().st_mtime_ns > written):
            time.sleep(0.005)
        process.join(generator.uniform(0, 0.2))
        process.kill()
        process.join()
        content = checkpoint.read(path)  # whole, whenever the process was killed
        places.add((content["epoch"], content["step"]))
    assert len(places) >= 5
    assert any(step for _, step in places)
    found, model = checkpoint.read(done), cell()
    train_set, validation = digits()
    result = train(model, train_set, LONGER, seed=3, validation=validation)
    assert found["steps"] == result.steps == LONGER.epochs * STEPS
    assert [Record(*values) for values in found["history"]] == untimed(result.history)
    assert all(torch.equal(found["weights"][name], value) for name, value in weights(model).items())


# What cannot be trained.


@pytest.mark.parametrize("cutout", [8, 16])
def test_a_cutout_larger_than_the_images(cutout: int) -> None:
    said = rf"a cutout of {cutout} x {cutout} pixels leaves too little of images of 8 x 8; .*cutout=4\)"
    with pytest.raises(Theta0Error, match=said):
        train(cell(), digits()[0], replace(QUICK, cutout=cutout), seed=0)


def test_too_few_images() -> None:
    one = digits()[0].subset([0])
    with pytest.raises(Theta0Error, match="1 images in batches of 32 are too few for 1 processes"):
        train(cell(), one, QUICK, seed=0)


def test_data_that_do_not_belong_together() -> None:
    with pytest.raises(DataError, match="must have the same classes"):
        train(cell(), digits()[0], QUICK, seed=0, validation=pictures()[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seconds": 0}, "more than 0 seconds; found 0"),
        ({"seconds": math.nan}, "more than 0 seconds; found nan"),
        ({"validate_every": 0}, "validate_every is None, or 1 or more; found 0"),
        ({"checkpoint_every": -1}, "checkpoint_every is None, or 1 or more; found -1"),
        ({"seed": -1}, "a seed is an integer from 0"),
        ({"recipe": replace(QUICK, auxiliary=0.4)}, "this network has none"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        train(cell(), digits()[0], **{"recipe": QUICK, "seed": 0, **options})
