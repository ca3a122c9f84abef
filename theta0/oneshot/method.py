"""What makes one method of supernet search: its settings, and what it does in a step of the loop.

The fields of a method are the options of its searcher. A method keeps nothing itself: what changes is in the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.forms import Mixtures

if TYPE_CHECKING:
    from theta0.oneshot.loop import Run

Batch = tuple[Tensor, Tensor]


class Learner(Protocol):
    """What a method learns beside the logits: a controller, say."""

    def state(self) -> dict[str, Any]:
        """Tensors and plain values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state."""


@dataclass(frozen=True)
class Method:
    """Weights are trained by SGD on ``share`` of the images, the architecture by Adam on the others."""

    search_epochs: int = 50
    batch: int = 64
    share: float = 0.5
    augment: bool = True
    learning_rate: float = 0.025
    final_learning_rate: float = 0.001
    momentum: float = 0.9
    weight_decay: float = 3e-4
    clip: float = 5.0
    alpha_rate: float = 3e-4
    alpha_decay: float = 1e-3
    warm: int = 0
    """Steps of NASI whose distribution is the start; 0 for none."""
    warm_scale: float = 1.0
    """What its logits are multiplied by."""
    stop_skips: int = 0
    """Ends the search once a cell of the architecture has so many skip connections (0: never)."""
    stop_same: int = 0
    """Ends it once the architecture was the same for so many epochs (0: never)."""
    skeleton: tuple[str, ...] = ()
    """Options of the supernet's skeleton, as ``channels=8+cells=2`` on the command line."""
    checkpoint: str = ""
    """A file that the search goes on from, if it is there, and keeps."""
    checkpoint_every: int = 0
    """Steps between two savings; 0: an epoch."""

    form: ClassVar[str] = "edges"
    joint: ClassVar[bool] = False
    """Whether all images train both weights and architecture."""
    betas: ClassVar[tuple[float, float]] = (0.5, 0.999)

    def __post_init__(self) -> None:
        for name, least in (("search_epochs", 1), ("batch", 2), ("warm", 0), ("stop_skips", 0), ("stop_same", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise Theta0Error(f"{name} is an integer of {least} or more, not {value!r}")
        if not 0 < self.share < 1:
            raise Theta0Error(f"share lies between 0 and 1: both parts need images; found {self.share!r}")
        for name in ("learning_rate", "alpha_rate", "warm_scale"):
            if not (getattr(self, name) > 0 and math.isfinite(getattr(self, name))):
                raise Theta0Error(f"{name} is finite and more than 0, not {getattr(self, name)!r}")
        for name in ("final_learning_rate", "momentum", "weight_decay", "clip", "alpha_decay", "checkpoint_every"):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                raise Theta0Error(f"{name} is finite and 0 or more, not {getattr(self, name)!r}")

    @property
    def partial(self) -> int:
        """One in so many channels goes through operations."""
        return 1

    def spread(self) -> float:
        """The deviation of the first logits."""
        return 0.0

    def learner(self, run: Run) -> Learner | None:
        """What it learns beside the logits."""
        return None

    def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
        """The mixtures that a step trains weights with."""
        raise NotImplementedError

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """A step of the architecture; nothing, if there is none."""

    def step(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> Tensor:
        """A step of both; gives the loss that trained weights."""
        self.learn(run, train, validation, generator)
        return run.train_weights(self.weights(run, generator), train)

    def extra_steps(self) -> int:
        """Steps at the end of each epoch that :meth:`extra` makes."""
        return 0

    def extra(self, run: Run, validation: Batch, generator: np.random.Generator) -> None:
        """One of them."""

    def candidates(self, run: Run, generator: np.random.Generator) -> Iterator[Any]:
        """Architectures, the one that the search ends with first; the others come where that is not allowed."""
        return run.alphas.near(generator)

    def current(self, run: Run) -> Any:
        """The architecture that the search would end with now, for its curves."""
        return run.alphas.derive()


def check_temperatures(hot: float, cold: float) -> None:
    """An error unless they fall."""
    if not 0 < cold <= hot < math.inf:
        raise Theta0Error(f"temperatures fall from hot to cold, above 0; they are {hot} and {cold}")


def descend_logits(run: Run, loss: Tensor) -> None:
    """A step of Adam down the gradient of ``loss`` with respect to the logits alone."""
    logits = run.alphas.parameters()
    gradients = torch.autograd.grad(loss, logits, allow_unused=True)
    run.step_logits([torch.zeros_like(p) if g is None else g for p, g in zip(logits, gradients, strict=True)])
