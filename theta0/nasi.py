"""NASI (Shu et al., ICLR 2022; thesis, chapter 6): a supernet at initialization, one step up the expected NTK trace.

    search = Nasi(space, images, NasiSettings(steps=100, batch=64), seed=0)
    found = search.run()                    # the Distribution p of alpha*
    found.derive()                          # the architecture

Every step draws an architecture by straight-through Gumbel from uniform logits and differentiates

    R = trace~ - mu max(0, trace~ - nu),    trace~ = the squared norm of the gradient of a batch's loss

with respect to the logits. The step is the mean of the gradients G_t, each divided by the largest norm until then
(equation 18). ``fixed`` nu is given, or the mean of 50 random architectures (equation 40); ``adaptive`` nu_t is the
mean of nu_0 and all traces before step t (equation 41). Neither weights nor logits change before the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theta0.data.dataset import ImageDataset
from theta0.errors import Theta0Error
from theta0.gates import Pass, get_score
from theta0.seeding import derived
from theta0.space import Skeleton, Space
from theta0.supernet import Distribution, mix, supernet

CONSTRAINTS = ("adaptive", "fixed")
_RANDOM = 50
"""Architectures whose mean is nu, where it is not given (appendix B.1)."""


class NoGradientError(Theta0Error):
    """A search whose reward does not depend on the logits."""


@dataclass(frozen=True)
class NasiSettings:
    """The defaults are the paper's for small spaces; for DARTS it takes mu=2 and nu=500, or 100 if fixed."""

    steps: int = 100
    batch: int = 64
    mu: float = 1.0
    nu: float = 1000.0
    """0: the mean of 50 random architectures."""
    constraint: str = "adaptive"
    score: str = "trace"
    """In place of the trace: see :mod:`theta0.gates`."""
    labels: str = "given"
    """``random``: drawn anew for each batch."""
    data: str = "given"
    """``random``: normally distributed pixels; without images there is nothing else."""
    whole: bool = False
    """Gradients through candidates that are not drawn too; these then run."""
    form: str = "nodes"
    """How the architecture is decided: see :mod:`theta0.forms`."""
    temperature: float = 1.0
    step_size: float = 1.0
    """The paper's xi."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise Theta0Error(f"{name} of NASI is an integer of {least} or more, not {value!r}")
        for name in ("mu", "nu"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise Theta0Error(
                    f"{name} of NASI is a finite number of 0 or more, not {value!r}; nu=0 takes the mean of random "
                    f"architectures, mu=0 limits nothing"
                )
        for name in ("temperature", "step_size"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise Theta0Error(f"{name} of NASI is finite and more than 0, not {value!r}")
        if self.constraint not in CONSTRAINTS:
            raise Theta0Error(f"nu of NASI is {' or '.join(CONSTRAINTS)}, not {self.constraint!r}")
        for name in ("labels", "data"):
            if getattr(self, name) not in ("given", "random"):
                raise Theta0Error(f"{name} of NASI are given or random, not {getattr(self, name)!r}")


class Nasi:
    """One search; :meth:`state` after any step is all that :meth:`load` needs to go on."""

    def __init__(
        self,
        space: Space[Any],
        images: ImageDataset | Tensor | None,
        settings: NasiSettings | None = None,
        *,
        seed: int,
        skeleton: Skeleton | str | None = None,
        device: torch.device | str = "cpu",
        **changes: Any,
    ) -> None:
        """``images`` without labels are a tensor (N, C, H, W), normalised. ``changes`` are of the skeleton.

        Without a ``skeleton`` it is the space's ``nasi``, ``search`` or first one.
        """
        self.space, self.settings, self.seed = space, settings or NasiSettings(), seed
        self.score = get_score(self.settings.score)
        if isinstance(images, ImageDataset):
            changes = {"shape": images.shape, "classes": len(images.classes), **changes}
            device = images.images.device
        elif images is not None:
            if images.dim() != 4 or not images.is_floating_point():
                raise Theta0Error(
                    f"images without labels are floats (N, C, H, W), not {images.dtype} {tuple(images.shape)}"
                )
            changes, device = {"shape": tuple(images.shape[1:]), **changes}, images.device
        self.images, self.device = images, torch.device(device)
        if self._labelled and not isinstance(images, ImageDataset):
            raise Theta0Error(
                f"the score {self.settings.score} needs labels, and these images have none; take labels=random, or the "
                f"score projected, which needs none"
            )
        if skeleton is None:
            skeleton = next((name for name in ("nasi", "search") if name in space.skeletons), None)
        self.skeleton = space.options(skeleton, **changes)
        self.model = supernet(space, self.skeleton, seed=derived(seed, "weights")).to(self.device)
        self.alphas = Distribution.uniform(space.form(self.settings.form), device=self.device)
        self.total = [torch.zeros_like(value) for value in self.alphas.parameters()]
        self.highest = 0.0
        self.traces: list[float] = []
        self.limit = self.settings.nu

    @property
    def _random_data(self) -> bool:
        return self.images is None or self.settings.data == "random"

    @property
    def _labelled(self) -> bool:
        """Whether the labels of images are read."""
        return self.score.labels and self.settings.labels == "given" and not self._random_data

    def run(self, stop: Callable[[], bool] | None = None) -> Distribution:
        """Goes on to the end; or until ``stop()``, which is asked before each step."""
        while len(self.traces) < self.settings.steps:
            if stop is not None and stop():
                break
            self.step()
        return self.distribution()

    def step(self) -> None:
        """One sampled gradient."""
        number, settings = len(self.traces), self.settings
        if number == 0 and settings.nu == 0 and settings.mu:
            self.limit = self._mean_of_random()
        generator = np.random.default_rng(derived(self.seed, "gumbel", number))
        weights = self.alphas.gumbel(generator, settings.temperature, whole=settings.whole)
        value = self._value(self.alphas.mixtures(weights), derived(self.seed, "batch", number))
        reward = value - settings.mu * torch.relu(value - self.nu())
        gradients = torch.autograd.grad(reward, self.alphas.parameters(), allow_unused=True)
        found = [torch.zeros_like(p) if g is None else g for p, g in zip(self.total, gradients, strict=True)]
        norm = float(torch.stack([g.double().square().sum() for g in found]).sum().sqrt())
        if not (math.isfinite(norm) and math.isfinite(float(value.detach()))):
            raise Theta0Error(
                f"in step {number} of NASI {settings.score} is {float(value.detach()):g} and its gradient with respect "
                f"to the logits has the norm {norm:g}, which must be finite; use normalised images, a smaller supernet "
                f"or another score"
            )
        self.highest = max(self.highest, norm)
        if self.highest:
            self.total = [total + g / self.highest for total, g in zip(self.total, found, strict=True)]
        self.traces.append(float(value.detach()))

    def nu(self) -> float:
        """The limit in the next step."""
        if self.settings.constraint == "fixed":
            return self.limit
        return (self.limit + math.fsum(self.traces)) / (len(self.traces) + 1)

    def distribution(self) -> Distribution:
        """p of alpha* after the steps that are done."""
        done = len(self.traces)
        if not done or not self.highest:
            raise NoGradientError(
                f"{done} steps of NASI gave no gradient: with mu={self.settings.mu:g} that of a trace above "
                f"nu={self.limit:g} is {1 - self.settings.mu:g} times its own; raise nu, or take another mu"
            )
        scale = self.settings.step_size / done
        logits = {d.name: total * scale for d, total in zip(self.alphas.form.decisions, self.total, strict=True)}
        return Distribution(self.alphas.form, logits)

    def state(self) -> dict[str, Any]:
        """Tensors and plain values."""
        return {
            "total": [value.clone() for value in self.total],
            "highest": self.highest,
            "traces": list(self.traces),
            "limit": self.limit,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from ``state``, of a search with the same settings, data and seed."""
        self.total = [value.to(self.device) for value in state["total"]]
        self.highest, self.limit = state["highest"], state["limit"]
        self.traces = list(state["traces"])

    def identity(self) -> dict[str, Any]:
        """What makes this search the one that it is."""
        images = self.images
        data = images.fingerprint() if isinstance(images, ImageDataset) else None if images is None else "a tensor"
        known = {"space": self.space.name, "skeleton": str(self.skeleton), "seed": self.seed}
        return {**known, **asdict(self.settings), "images": data}

    def _mean_of_random(self) -> float:
        """Equation 40."""
        values = []
        for number in range(_RANDOM):
            weights = self.alphas.drawn(np.random.default_rng(derived(self.seed, "random", number)))
            values.append(float(self._value(self.alphas.mixtures(weights), derived(self.seed, "nu", number)).detach()))
        if not all(map(math.isfinite, values)):
            raise Theta0Error(f"nu would be the mean of traces that are not all finite: {values}; give it")
        return math.fsum(values) / _RANDOM

    def _value(self, mixtures: Any, seed: int) -> Tensor:
        mix(self.model, mixtures)
        x, y = self._batch(seed)
        return self.score.compute(Pass(self.model, x, y, seed))

    def _batch(self, seed: int) -> tuple[Tensor, Tensor | None]:
        size, classes, images = self.settings.batch, self.skeleton.classes, self.images
        generator = torch.Generator().manual_seed(seed)
        y: Tensor | None = None
        if self._random_data:
            x = torch.randn(size, *self.skeleton.shape, generator=generator).to(self.device)
        elif isinstance(images, ImageDataset):
            x, y = images.batch(size, seed=seed)
        else:
            assert images is not None
            if len(images) < size:
                raise Theta0Error(
                    f"a batch of {size} images is more than the {len(images)} there are; take a smaller one"
                )
            x = images[torch.randperm(len(images), generator=generator)[:size].to(images.device)]
        if not self._labelled:
            y = torch.randint(classes, (size,), generator=generator).to(self.device)
        return x, y
