"""Recipes: everything that a training needs to know besides the network, the data and the seed.

    recipe = get_recipe("cifar")                    # the 600 epochs of the papers
    short = replace(recipe, epochs=50)              # dataclasses.replace; the schedules shrink with it

Where the numbers come from: ``cifar`` and ``cifar100`` are appendix B.4 of NASI and the settings of HNAS and of the
thesis, which follow DARTS (Liu et al., ICLR 2019), whose code also clips gradients at 5. HNAS lets drop-path decay; it
grows here, as in NASI, the thesis and NASNet. ``imagenet`` is the recipe of the same papers, after P-DARTS, with our
crops and flips in place of its random resizing; chapter 7 of the thesis differs by ``learning_rate=0.7,
schedule="cosine"``. ``nasbench201`` is Table 1 of Dong and Yang, ICLR 2020; the benchmark's short budget is the same
with ``epochs=12``. Schedules move with every step, drop-path with every epoch.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from theta0.errors import Theta0Error, nearest

Schedule = Literal["cosine", "linear"]
Precision = Literal["fp32", "bf16"]
Compile = Literal["default", "reduce-overhead", "max-autotune", "cudagraphs"]


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent with momentum, and what goes with it; zero switches a part off."""

    epochs: int
    batch: int
    learning_rate: float
    """The highest one: where the warm-up ends and the schedule begins."""
    final_learning_rate: float = 0.0
    schedule: Schedule = "cosine"
    warmup: float = 0.0
    """Epochs during which the learning rate grows linearly."""
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    clip: float = 0.0
    """The largest norm of the gradient of all parameters."""
    label_smoothing: float = 0.0
    augment: bool = True
    """Random crops, and flips of colour images, as wide as is usual for images of their size."""
    cutout: int = 0
    """Side of the square, in pixels."""
    auxiliary: float = 0.0
    """Weight of the auxiliary classifier's loss; the network must have one."""
    drop_path: float = 0.0
    """Probability that a path is dropped at the end of the training; it grows linearly from 0, epoch by epoch."""
    ema: float = 0.0
    """Decay of the moving average of the weights, which then are those that are evaluated and kept."""
    precision: Precision = "fp32"
    """``bf16`` is automatic mixed precision; weights stay in float32."""
    channels_last: bool = False
    compile: Compile | None = None
    """A mode of ``torch.compile``, or ``cudagraphs``, which records kernels and makes none."""

    def __post_init__(self) -> None:
        for name, low, high, what in _NUMBERS:
            value = getattr(self, name)
            whole = name in ("epochs", "batch", "cutout")
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise Theta0Error(f"{name} of a recipe is {what}; found {value!r}")
            if not (low <= value < high and math.isfinite(value)):
                raise Theta0Error(f"{name} of a recipe is {what}; found {value!r}")
        for name, kinds in (("schedule", Schedule), ("precision", Precision), ("compile", Compile)):
            value = getattr(self, name)
            if value not in get_args(kinds) and not (name == "compile" and value is None):
                raise Theta0Error(f"{name} of a recipe is one of {', '.join(get_args(kinds))}; found {value!r}")
        if self.learning_rate <= 0:
            raise Theta0Error(f"learning_rate of a recipe is more than 0; found {self.learning_rate!r}")
        if self.warmup >= self.epochs:
            raise Theta0Error(
                f"a warm-up of {self.warmup:g} epochs does not fit into a training of {self.epochs}; shorten it with "
                f"dataclasses.replace(recipe, warmup=...)"
            )
        if self.nesterov and not self.momentum:
            raise Theta0Error("nesterov of a recipe needs momentum of more than 0")

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of step ``step``, counted from 0 over all epochs, where an epoch has ``steps``."""
        rising = round(self.warmup * steps)
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        progress = (step - rising) / max(1, self.epochs * steps - rising)
        left = (1 + math.cos(math.pi * progress)) / 2 if self.schedule == "cosine" else 1 - progress
        return self.final_learning_rate + (self.learning_rate - self.final_learning_rate) * left

    def drop_probability(self, epoch: int) -> float:
        """The drop-path probability in epoch ``epoch``, counted from 0."""
        return self.drop_path * epoch / self.epochs

    def facts(self) -> dict[str, Any]:
        """Every setting by name."""
        return asdict(self)


_NUMBERS = (
    ("epochs", 1, math.inf, "an integer of 1 or more"),
    ("batch", 1, math.inf, "an integer of 1 or more"),
    ("learning_rate", 0, math.inf, "a number of more than 0"),
    ("final_learning_rate", 0, math.inf, "a number of 0 or more"),
    ("warmup", 0, math.inf, "a number of epochs, 0 or more"),
    ("momentum", 0, 1, "a number from 0 to less than 1"),
    ("weight_decay", 0, math.inf, "a number of 0 or more"),
    ("clip", 0, math.inf, "a norm of 0 (off) or more"),
    ("label_smoothing", 0, 1, "a number from 0 to less than 1"),
    ("cutout", 0, math.inf, "a number of pixels, 0 or more"),
    ("auxiliary", 0, math.inf, "a number of 0 or more"),
    ("drop_path", 0, 1, "a probability from 0 to less than 1"),
    ("ema", 0, 1, "a decay from 0 (off) to less than 1"),
)
"""Name, least value, what it stays below, and how that is said."""

_CIFAR = Recipe(
    epochs=600, batch=96, learning_rate=0.025, weight_decay=3e-4, clip=5.0, cutout=16, auxiliary=0.4, drop_path=0.2
)

RECIPES: dict[str, Recipe] = {
    "cifar": _CIFAR,
    "cifar100": replace(_CIFAR, learning_rate=0.035, final_learning_rate=0.001, auxiliary=0.6, drop_path=0.3),
    "imagenet": Recipe(
        epochs=250,
        batch=1024,
        learning_rate=0.5,
        schedule="linear",
        warmup=5,
        weight_decay=3e-5,
        clip=5.0,
        label_smoothing=0.1,
        auxiliary=0.4,
    ),
    "nasbench201": Recipe(epochs=200, batch=256, learning_rate=0.1, nesterov=True, weight_decay=5e-4),
    "brief": Recipe(
        epochs=4,
        batch=64,
        learning_rate=0.1,
        warmup=0.5,
        nesterov=True,
        weight_decay=5e-4,
        clip=5.0,
        channels_last=True,
    ),
}
"""``brief`` is for the short trainings of a search; the others are named in this file's first lines."""


def get_recipe(name: str) -> Recipe:
    """The recipe called ``name``."""
    if name not in RECIPES:
        raise Theta0Error(f"no recipe is called {name!r}; {nearest(name, RECIPES)}")
    return RECIPES[name]
