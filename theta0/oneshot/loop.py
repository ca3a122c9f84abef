"""The loop of supernet searches: an epoch of steps, its curves, early stops, and a file from which all of it goes on.

What is drawn at random in a step depends on the seed and the number of the step alone, so a search that goes on from
its checkpoint ends with the bits of one that was never interrupted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0 import checkpoint as checkpoints
from theta0.data.augment import Augmentation
from theta0.data.dataset import ImageDataset
from theta0.errors import DivergedError, Theta0Error
from theta0.forms import Form, Mixtures
from theta0.nasi import Nasi, NasiSettings
from theta0.oneshot.method import Batch, Method
from theta0.searchers import Task
from theta0.seeding import derived
from theta0.supernet import Distribution, mix, supernet


class Epoch(NamedTuple):
    """A point of the curves of a search."""

    number: int
    loss: float
    """Mean of those that trained weights."""
    skips: int
    """Skip connections of the architecture's cell that has most of them."""
    share: float
    """Skip connections among its operations, in that cell."""
    architecture: str


class Run:
    """A search under way; ``done`` steps of all epochs are done."""

    def __init__(self, task: Task, method: Method, seed: int) -> None:
        self.task, self.method, self.seed, self.space = task, method, seed, task.space
        images = task.labelled()
        self.images, self.device = images, images.images.device
        self.training, self.validation = (images, images) if method.joint else _parts(images, method.share, seed)
        self.normalization = images.mean_std()
        self.augmentation = Augmentation.standard(images.shape) if method.augment else None
        changes = {"shape": images.shape, "classes": len(images.classes), **options_of(method.skeleton)}
        self.model = supernet(self.space, seed=derived(seed, "supernet"), partial=method.partial, **changes).to(
            self.device
        )
        self.weights = list(self.model.parameters())
        self.alphas = self._start(changes)
        self.sgd = torch.optim.SGD(
            self.weights, lr=method.learning_rate, momentum=method.momentum, weight_decay=method.weight_decay
        )
        self.adam = torch.optim.Adam(
            self.alphas.parameters(), lr=method.alpha_rate, betas=method.betas, weight_decay=method.alpha_decay
        )
        self.steps = math.ceil(len(self.training) / method.batch)
        if len(self.training) % method.batch == 1:  # batch normalisation needs two
            self.steps -= 1
        if not self.steps or len(self.validation) < 2:
            raise Theta0Error(
                f"{len(images)} images are too few to train a supernet on {method.share:g} of them in batches of "
                f"{method.batch}; give more images"
            )
        self.whole = self.steps + method.extra_steps()
        self.done = 0
        self.losses: list[Tensor] = []
        self.history: list[Epoch] = []
        self.reason = ""
        self.cut = ""
        """How far it came, if it was stopped."""
        self.learner = method.learner(self)

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return self.done / (self.method.search_epochs * self.whole)

    def _start(self, changes: dict[str, Any]) -> Distribution:
        method, form = self.method, self.space.form(self.method.form)
        self.warmed: Distribution | None = None
        alphas = Distribution.uniform(form, device=self.device)
        generator = np.random.default_rng(derived(self.seed, "logits"))
        state = {
            d.name: torch.from_numpy(method.spread() * generator.standard_normal(len(d.candidates))).float()
            for d in form.decisions
        }
        if method.warm:
            settings = NasiSettings(steps=method.warm, batch=min(64, len(self.images)), form=_form_of_nasi(self))
            search = Nasi(self.space, self.images, settings, seed=derived(self.seed, "nasi"), **changes)
            found = translated(search.run(), form)
            state = {name: value + method.warm_scale * found[name] for name, value in state.items()}
            self.warmed = Distribution(form, state)
        alphas.load(state)
        return alphas

    # What methods call.

    def loss(self, mixtures: Mixtures, batch: Batch) -> Tensor:
        """The mean cross entropy of what ``mixtures`` run."""
        mix(self.model, mixtures)
        return F.cross_entropy(self.model(batch[0]), batch[1])

    def train_weights(self, mixtures: Mixtures, batch: Batch) -> Tensor:
        """A step of SGD on what runs."""
        loss = self.loss(mixtures, batch)
        self.step_weights(torch.autograd.grad(loss, self.weights, allow_unused=True))
        return loss.detach()

    def step_weights(self, gradients: Any) -> None:
        """A step of SGD; what did not take part has no gradient and stays."""
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        if self.method.clip:
            nn.utils.clip_grad_norm_(self.weights, self.method.clip)
        self.sgd.step()
        self.sgd.zero_grad()

    def step_logits(self, gradients: Any) -> None:
        """A step of Adam."""
        for logits, gradient in zip(self.alphas.parameters(), gradients, strict=True):
            logits.grad = gradient
        self.adam.step()
        self.adam.zero_grad()

    def rate(self) -> float:
        """The learning rate of weights, by a cosine over epochs."""
        method, epoch = self.method, self.done // self.whole
        turn = (1 + math.cos(math.pi * epoch / method.search_epochs)) / 2
        return method.final_learning_rate + (method.learning_rate - method.final_learning_rate) * turn

    def generator(self, *parts: str | int) -> np.random.Generator:
        """One for a part of the work."""
        return np.random.default_rng(derived(self.seed, *parts))

    # The loop.

    def run(self, stop: Callable[[], bool] | None = None) -> None:
        """Goes on to the end; or until ``stop()``, which is asked before each step, or an early stop."""
        self.model.train()
        while self.progress < 1 and not self.reason:
            training = itertools.islice(self._batches(self.training, "weights"), self.done % self.whole, None)
            validation = itertools.islice(
                itertools.chain.from_iterable(
                    self._batches(self.validation, f"alphas {turn}") for turn in itertools.count()
                ),
                self.done % self.whole,
                None,
            )
            for _ in range(self.whole - self.done % self.whole):
                if stop is not None and stop():
                    self._save()
                    self.cut = (
                        f"{self.progress:.0%} of {self.method.search_epochs} epochs, which the time did not suffice for"
                    )
                    return
                self._step(training, validation)
                if self.method.checkpoint_every and self.done % self.method.checkpoint_every == 0:
                    self._save()
            self._record()
            self._save()

    def _step(self, training: Iterator[Batch], validation: Iterator[Batch]) -> None:
        for group in self.sgd.param_groups:
            group["lr"] = self.rate()
        generator = self.generator("step", self.done)
        if self.done % self.whole < self.steps:
            self.losses.append(self.method.step(self, next(training), next(validation), generator))
        else:
            self.method.extra(self, next(validation), generator)
        self.done += 1

    def _batches(self, images: ImageDataset, part: str) -> Iterator[Batch]:
        """An epoch of batches; single images, with which a network cannot be normalised, are left out."""
        found = images.batches(
            self.method.batch,
            seed=derived(self.seed, part, self.done // self.whole),
            augmentation=self.augmentation,
            normalization=self.normalization,
        )
        return (batch for batch in found if len(batch[1]) > 1)

    def _record(self) -> None:
        values = torch.stack(self.losses).tolist() if self.losses else []
        epoch = self.done // self.whole - 1
        for place, value in enumerate(values):
            if not math.isfinite(value):
                raise DivergedError(
                    f"the loss of the supernet is {value} in step {place} of epoch {epoch}, both counted from 0, at a "
                    f"learning rate of {self.method.learning_rate:g}; lower learning_rate, or clip at a smaller norm"
                )
        for name, logits in self.alphas.logits.items():
            if not bool(torch.isfinite(logits).all()):
                raise DivergedError(
                    f"in epoch {epoch} the logits of {name} are no longer finite: the gradient that reached them was "
                    f"not; lower alpha_rate={self.method.alpha_rate:g} or learning_rate={self.method.learning_rate:g}"
                )
        self.losses = []
        architecture = self.method.current(self)
        skips, share = skip_connections(self.space, architecture)
        mean = math.fsum(values) / max(1, len(values))
        self.history.append(Epoch(epoch, mean, skips, share, self.space.format(architecture)))
        last = [one.architecture for one in self.history[-self.method.stop_same - 1 :]]
        if self.method.stop_skips and skips >= self.method.stop_skips:
            self.reason = f"a cell has {skips} skip connections"
        elif self.method.stop_same and len(last) > self.method.stop_same and len(set(last)) == 1:
            self.reason = f"the architecture was the same for {self.method.stop_same} epochs"

    # Checkpoints.

    def state(self) -> dict[str, Any]:
        """Tensors and plain values, from which :meth:`load` goes on."""
        return {
            "done": self.done,
            "model": self.model.state_dict(),
            "alphas": self.alphas.state(),
            "sgd": self.sgd.state_dict(),
            "adam": self.adam.state_dict(),
            "losses": torch.tensor([float(loss) for loss in self.losses]),
            "history": [list(one) for one in self.history],
            "reason": self.reason,
            "learner": None if self.learner is None else self.learner.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from ``state``."""
        self.done, self.reason = state["done"], state["reason"]
        self.model.load_state_dict(state["model"])
        self.alphas.load(state["alphas"])
        self.sgd.load_state_dict(state["sgd"])
        self.adam.load_state_dict(state["adam"])
        self.losses = list(state["losses"].to(self.device))
        self.history = [Epoch(*values) for values in state["history"]]
        if self.learner is not None:
            self.learner.load(state["learner"])

    def identity(self) -> dict[str, Any]:
        """What makes this search the one that it is."""
        settings = {name: value for name, value in asdict(self.method).items() if not name.startswith("checkpoint")}
        settings["skeleton"] = list(self.method.skeleton)
        known = {"method": type(self.method).__name__, "seed": self.seed, "space": self.space.name}
        return {**known, **settings, "images": self.images.fingerprint()}

    def open(self) -> None:
        """Goes on from the checkpoint, if there is one."""
        path = Path(self.method.checkpoint)
        if not self.method.checkpoint:
            return
        if path.exists():
            content = checkpoints.read(path)
            checkpoints.check_identity(path, content["identity"], self.identity())
            self.load(content["state"])
        else:
            self._save()

    def _save(self) -> None:
        if self.method.checkpoint:
            checkpoints.write(Path(self.method.checkpoint), {"identity": self.identity(), "state": self.state()})

    def note(self) -> str:
        """What a user should know of how it ended: an early stop, or a collapse; empty if there is nothing."""
        parts = [f"stopped after epoch {len(self.history)}: {self.reason}"] if self.reason else []
        if self.cut:
            parts.append(f"stopped after {self.cut}; give more time, or lower search_epochs")
        if self.history and self.history[-1].share > 0.5:
            parts.append(
                f"collapsed: {self.history[-1].share:.0%} of the operations of a cell are skip connections, which "
                f"supernets trained for long prefer; stop early (stop_skips=2), or search with pc-darts or nasi"
            )
        return "; ".join(parts)


def _form_of_nasi(run: Run) -> str:
    """NASI's own, where its decisions are those of the method; the method's, where edges are decided otherwise."""
    known = {decision.name for decision in run.space.form("nodes").decisions}
    same = all(decision.name in known for decision in run.space.form("edges").decisions)
    return "nodes" if same else run.method.form


def translated(found: Distribution, form: Form[Any]) -> dict[str, Tensor]:
    """The logits of NASI's distribution for the decisions of ``form``, by the names of candidates.

    A candidate that NASI leaves out, since it gives zero, starts as the least probable one; a decision that it does not
    have starts uniform.
    """
    logits = {
        decision.name: dict(zip(decision.candidates, found.logits[decision.name].tolist(), strict=True))
        for decision in found.form.decisions
    }
    return {
        decision.name: torch.tensor(
            [
                logits.get(decision.name, {}).get(name, min(logits.get(decision.name, {"": 0.0}).values()))
                for name in decision.candidates
            ]
        )
        for decision in form.decisions
    }


def skip_connections(space: Any, architecture: Any) -> tuple[int, float]:
    """How many a cell has at most, and its share of them among its operations."""
    operations = [
        [*(edge.op for edge in cell.edges if edge.op), *cell.ops] for cell in space.cells(architecture).values()
    ]
    if not operations:
        codes = space.encode(architecture)
        operations = [[str(c.candidates[code]) for c, code in zip(space.choices, codes, strict=True)]]
    counts = [(sum(op in space.identity for op in ops), len(ops)) for ops in operations]
    most, among = max(counts, key=lambda pair: pair[0])
    return most, most / max(1, among)


def _parts(images: ImageDataset, share: float, seed: int) -> tuple[ImageDataset, ImageDataset]:
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(derived(seed, "parts")))
    count = round(share * len(images))
    if not 0 < count < len(images):
        raise Theta0Error(f"{share:g} of {len(images)} images leaves a part without any; give more images")
    return images.subset(order[:count]), images.subset(order[count:])


def options_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """Options of a skeleton from ``name=number``, ``name=true`` or ``name=false``."""
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not (value.lstrip("-").isdecimal() or value in ("true", "false")):
            raise Theta0Error(f"options of a skeleton are name=number, name=true or name=false, not {text!r}")
        found[name] = value == "true" if value in ("true", "false") else int(value)
    return found
