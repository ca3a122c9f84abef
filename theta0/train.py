"""Trains a network on images that lie on its device: one loop for a search's short trainings and the papers' long ones.

    result = train(model, data.train, get_recipe("brief"), seed=0, validation=data.test)
    result.evaluation.accuracy, result.history

What is drawn at random in a step depends on the seed, the epoch and the step alone. So a training that goes on from a
checkpoint, whichever one, ends with the bits of one that was never interrupted (on the same CPU with the same number of
threads, and on GPUs as far as their kernels repeat themselves).

Several processes, started by ``torchrun`` and joined by :func:`theta0.processes.joined`, train one network: each takes
its share of every batch, and their gradients are added. That equals one process up to rounding, but for what is not a
sum over images: batch normalisation takes its statistics over the share of one process, and the running statistics of
process 0 are kept; drop-path and dropout draw other numbers. Every process has the data, the same arguments and the
same result; process 0 alone writes and calls back, and all of them read the checkpoint.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from theta0 import checkpoint as checkpoints
from theta0.data.augment import Augmentation
from theta0.data.dataset import Data, ImageDataset
from theta0.data.sampling import Normalization
from theta0.errors import DataError, DivergedError, Theta0Error
from theta0.evaluation import Evaluation, evaluate
from theta0.network.cells import set_drop_path
from theta0.processes import current
from theta0.recipe import Recipe
from theta0.seeding import derived
from theta0.step import Step, set_layout

_RECORDS = 10
"""How often an epoch reports its loss."""

Cut = Literal["", "stop", "time"]
_CUTS: tuple[Cut, ...] = ("", "stop", "time")


class Record(NamedTuple):
    """A point of the training curves; the last three are None where nothing was evaluated."""

    epochs: float
    """Epochs done."""
    step: int
    """Steps done."""
    loss: float
    """Mean of the loss that is minimised, since the record before."""
    learning_rate: float
    images_per_second: float
    accuracy: float | None = None
    nll: float | None = None
    ece: float | None = None


@dataclass(frozen=True)
class Result:
    """What a training did; the network itself was trained in place."""

    history: list[Record]
    evaluation: Evaluation | None
    """Of the validation images, at the end."""
    epochs: float
    """Epochs done; less than the recipe's if it was cut."""
    steps: int
    seconds: float
    """All parts of an interrupted training together, validation included."""
    cut: Cut
    """Why it ended before the recipe did: ``stop``, ``time``, or empty."""
    normalization: Normalization
    """What the network expects of its images."""


def train(
    model: nn.Module,
    train_set: ImageDataset,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    validation: ImageDataset | None = None,
    validate_every: int | None = 1,
    normalization: Normalization | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int | None = None,
    seconds: float = math.inf,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Record], None] | None = None,
) -> Result:
    """Trains ``model`` in place, on ``device``, where it stays.

    ``validation`` is evaluated at the end, and after every ``validate_every`` epochs. ``normalization`` is that of
    ``train_set`` unless given. The training goes on from the file ``checkpoint`` if it is there, and writes it at the
    start, after each epoch, after each ``checkpoint_every`` steps and when cut. It is cut after ``seconds`` of this
    call, or where ``stop()`` is true; both are asked between steps. ``progress`` gets each record as it is made.
    """
    if validation is not None:
        Data(train_set, validation)  # same classes, same shape
    if not seconds > 0:
        raise Theta0Error(f"a training needs more than 0 seconds; found {seconds!r}")
    for name, value in (("validate_every", validate_every), ("checkpoint_every", checkpoint_every)):
        if value is not None and value < 1:
            raise Theta0Error(f"{name} is None, or 1 or more; found {value}")
    device = torch.device(device)
    with _as_found(model, device):
        training = _Training(model, train_set, recipe, seed, device, validation, normalization)
        training.validate_every = validate_every
        training.seconds, training.stop, training.progress = seconds, stop, progress
        if checkpoint is not None:
            training.open(checkpoint, checkpoint_every)
        return training.run()


@contextlib.contextmanager
def _as_found(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Puts back modes, random states and the layout of weights."""
    modes = [(module, module.training) for module in model.modules()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.enable_grad():
        try:
            yield
        finally:
            set_drop_path(model, 0.0)
            set_layout(model, torch.contiguous_format)
            for module, mode in modes:
                module.training = mode
            for parameter in model.parameters():
                parameter.grad = None


class _Training:
    """A training under way; step ``step`` of epoch ``epoch`` is the next one."""

    validate_every: int | None = None
    seconds: float = math.inf
    stop: Callable[[], bool] | None = None
    progress: Callable[[Record], None] | None = None
    checkpoint: Path | None = None
    checkpoint_every: int | None = None

    def __init__(
        self,
        model: nn.Module,
        train_set: ImageDataset,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        validation: ImageDataset | None,
        normalization: Normalization | None,
    ) -> None:
        self.started, self.before = time.perf_counter(), 0.0
        self.recipe, self.seed, self.device = recipe, seed, device
        self.train_set = train_set.to(device)
        self.validation = None if validation is None else validation.to(device)
        self.normalization = normalization or self.train_set.mean_std()
        self.augmentation = _augmentation(recipe, train_set.shape)
        self.processes = current()
        full, rest = divmod(len(train_set), recipe.batch)
        # Batch normalisation needs two images in each process; a last batch of fewer is left out.
        self.steps = full + (rest >= 2 * self.processes.count)
        if not self.steps or recipe.batch < self.processes.count:
            raise Theta0Error(
                f"{len(train_set)} images in batches of {recipe.batch} are too few for {self.processes.count} "
                f"processes, which take two of each batch; use more images, larger batches or fewer processes"
            )
        self.update = Step(model, recipe, len(train_set.classes), device, self.processes)
        self.epoch = self.step = 0
        self.losses: list[Tensor] = []
        self.history: list[Record] = []
        self.evaluation: Evaluation | None = None

    @property
    def done(self) -> int:
        """Steps of all epochs that are done."""
        return self.epoch * self.steps + self.step

    def run(self) -> Result:
        """Trains until the end, or until there is a reason to stop."""
        cut: Cut = ""
        while self.epoch < self.recipe.epochs and not (cut := self._epoch()):
            self.epoch, self.step = self.epoch + 1, 0
            self._save()
        if cut:
            self._save()
        if self.validation is not None and self.evaluation is None:
            self.evaluation = self._evaluate(self.validation)
        self.update.finish()
        epochs, seconds = self.done / self.steps, self._spent()
        return Result(self.history, self.evaluation, epochs, self.done, seconds, cut, self.normalization)

    def _epoch(self) -> Cut:
        """What is left of an epoch."""
        self.update.model.train()
        set_drop_path(self.update.model, self.recipe.drop_probability(self.epoch))
        self.evaluation = None
        window = -(-self.steps // _RECORDS)
        clock, images = time.perf_counter(), 0
        for x, y in self._batches():
            # Several processes have to agree, which takes an exchange and waits for the device.
            if (self.processes.count == 1 or self.step % window == 0) and (cut := self._cut()):
                return cut
            rate, seed = self.recipe.rate(self.done, self.steps), derived(self.seed, "step", self.done)
            self.losses.append(self.update(x, y, rate=rate, seed=seed))
            self.step += 1
            images += len(y)
            if self.step % window == 0 or self.step == self.steps:
                loss = self._mean_loss()
                self._record(loss, rate, images / (time.perf_counter() - clock))
                clock, images = time.perf_counter(), 0
            if self.checkpoint_every and self.step % self.checkpoint_every == 0 and self.step < self.steps:
                self._save()
        return ""

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches that were done before are made again, because later draws follow theirs."""
        batches = self.train_set.batches(
            self.recipe.batch,
            seed=derived(self.seed, "epoch", self.epoch),
            augmentation=self.augmentation,
            normalization=self.normalization,
        )
        return itertools.islice(batches, self.step, self.steps)

    def _cut(self) -> Cut:
        code = 0
        if self.processes.rank == 0:
            late = time.perf_counter() - self.started >= self.seconds
            code = 1 if self.stop is not None and self.stop() else 2 * late
        if self.processes.count > 1:
            shared = torch.tensor(code, device=self.device)
            self.processes.copy([shared])
            code = int(shared)
        return _CUTS[code]

    def _mean_loss(self) -> float:
        """The mean over the steps since the last record; an error if one of them is not finite."""
        values = torch.stack(self.losses).tolist()
        for step, value in enumerate(values, start=self.done - len(values)):
            if not math.isfinite(value):
                raise DivergedError(
                    f"the loss is {value} in step {step} (epoch {step // self.steps}, both counted from 0) at a "
                    f"learning rate of {self.recipe.rate(step, self.steps):g}; lower it, clip gradients or warm up"
                )
        self.losses = []
        return math.fsum(values) / len(values)

    def _record(self, loss: float, rate: float, images_per_second: float) -> None:
        record = Record(self.done / self.steps, self.done, loss, rate, images_per_second)
        due = self.step == self.steps and self.validate_every and (self.epoch + 1) % self.validate_every == 0
        if due and self.validation is not None:
            self.evaluation = found = self._evaluate(self.validation)
            record = record._replace(accuracy=found.accuracy, nll=found.nll, ece=found.ece)
        self.history.append(record)
        if self.progress is not None and self.processes.rank == 0:
            self.progress(record)

    def _evaluate(self, dataset: ImageDataset) -> Evaluation:
        batch, precision = self.recipe.batch, self.recipe.precision
        return evaluate(self.update.kept(), dataset, normalization=self.normalization, batch=batch, precision=precision)

    def _spent(self) -> float:
        return self.before + time.perf_counter() - self.started

    # Checkpoints.

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What makes this training the one that it is."""
        return {
            "seed": self.seed,
            "recipe": self.recipe.facts(),
            "architecture": checkpoints.architecture(self.update.model),
            "normalization": self.normalization,
            "training data": self.train_set.fingerprint(),
            "validation data": None if self.validation is None else self.validation.fingerprint(),
        }

    def open(self, path: Path, every: int | None) -> None:
        """Goes on from ``path``; or makes it, to find out now whether that can be done."""
        if not path.absolute().parent.is_dir():
            raise DataError(f"{path}: there is no folder {path.absolute().parent} for the checkpoint; make it first")
        self.checkpoint, self.checkpoint_every = path, every
        if not path.exists():
            self._save()
            return
        content = checkpoints.read(path)
        checkpoints.check_identity(path, content["identity"], self.identity)
        self.epoch, self.step, self.before = content["epoch"], content["step"], content["seconds"]
        self.history = [Record(*values) for values in content["history"]]
        self.losses = list(content["losses"].to(self.device))
        self.update.load(content["state"])

    def _save(self) -> None:
        if self.checkpoint is None or self.processes.rank:
            return
        content = {
            "identity": self.identity,
            "epoch": self.epoch,
            "step": self.step,
            "seconds": self._spent(),
            "history": [list(record) for record in self.history],
            "losses": torch.tensor([float(loss) for loss in self.losses]),
            "state": self.update.state(),
        }
        checkpoints.write(self.checkpoint, content)


def _augmentation(recipe: Recipe, shape: tuple[int, int, int]) -> Augmentation | None:
    height, width = shape[1:]
    if recipe.cutout >= min(height, width):
        raise Theta0Error(
            f"a cutout of {recipe.cutout} x {recipe.cutout} pixels leaves too little of images of {height} x {width}; "
            f"use dataclasses.replace(recipe, cutout={min(height, width) // 2})"
        )
    nothing = Augmentation(crop=0, flip=False)
    augmentation = replace(Augmentation.standard(shape) if recipe.augment else nothing, cutout=recipe.cutout)
    return None if augmentation == nothing else augmentation
