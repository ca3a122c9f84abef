"""The objective of a search on somebody's data: each architecture is trained for some epochs, then evaluated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from theta0.data.dataset import Data, ImageDataset
from theta0.errors import DivergedError, Theta0Error, nearest
from theta0.objective import Objective, Outcome
from theta0.recipe import RECIPES, Recipe
from theta0.scoring import score
from theta0.seeding import derived
from theta0.space import Skeleton, Space, get_space
from theta0.train import Record, train

LIMITS = ("parameters", "flops", "latency")
"""What may be limited; latency in milliseconds, of a batch on the device of the search."""


class TrainingObjective(Objective[Any]):
    """Trains on ``train_set`` and tells the accuracy on ``validation``.

    ``recipe`` is used with each of the ``epochs`` (by default its own). ``skeleton`` and ``options`` are as in
    ``space.build``; shape and classes are those of the data. Latency is that of ``latency_batch`` images at once. The
    seed of a training follows from ``seed``, the architecture and the epochs, so a value does not depend on what was
    evaluated before. ``on_record(architecture, record)`` gets each record of a training as it is made; every
    ``validate_every`` epochs it has an accuracy.
    """

    clock = True

    def __init__(
        self,
        space: Space[Any] | str,
        train_set: ImageDataset,
        validation: ImageDataset,
        *,
        recipe: Recipe = RECIPES["brief"],
        epochs: Sequence[int] | None = None,
        skeleton: Skeleton | str | None = None,
        options: Mapping[str, Any] | None = None,
        limits: Mapping[str, float] | None = None,
        latency_batch: int = 1,
        seed: int = 0,
        device: torch.device | str = "cpu",
        validate_every: int | None = None,
        on_record: Callable[[Any, Record], None] | None = None,
    ) -> None:
        Data(train_set, validation)  # same classes, same shape
        self.space = get_space(space) if isinstance(space, str) else space
        self.recipe, self.seed, self.device = recipe, seed, torch.device(device)
        self.validate_every, self.on_record = validate_every, on_record
        self.epochs = tuple(sorted(set(epochs))) if epochs else (recipe.epochs,)
        self._recipes = {count: replace(recipe, epochs=count) for count in self.epochs}
        shape, classes = train_set.shape, len(train_set.classes)
        self.skeleton = self.space.options(skeleton, **{"shape": shape, "classes": classes, **(options or {})})
        self.limits = dict(limits or {})
        for name, limit in self.limits.items():
            if name not in LIMITS:
                raise Theta0Error(f"there is no limit of {name!r}; {nearest(name, LIMITS)}")
            if not limit > 0:
                raise Theta0Error(f"the limit of {name} is more than 0; found {limit!r}")
        self.train_set, self.validation = train_set.to(self.device), validation.to(self.device)
        self.images = self.train_set
        self._normalization = self.train_set.mean_std()  # once, not in each training
        self._batch = self.train_set.batch(latency_batch, seed=0)
        self._latencies: dict[Any, float] = {}

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        """Trains anew; a training that is cut short by ``seconds`` counts with the accuracy that it reached."""
        start = time.perf_counter()
        seed = derived(self.seed, self.space.format(architecture), epochs)
        model = self.space.build(architecture, self.skeleton, seed=seed)
        on_record = self.on_record
        try:
            result = train(
                model,
                self.train_set,
                self._recipes[epochs],
                seed=seed,
                device=self.device,
                validation=self.validation,
                validate_every=self.validate_every,
                normalization=self._normalization,
                seconds=seconds,
                progress=None if on_record is None else lambda record: on_record(architecture, record),
            )
        except (DivergedError, torch.OutOfMemoryError) as error:
            return Outcome(math.nan, time.perf_counter() - start, str(error))
        assert result.evaluation is not None
        note = f"cut after {result.epochs:.2f} of {epochs} epochs" if result.cut else ""
        return Outcome(result.evaluation.accuracy, time.perf_counter() - start, note)

    def allowed(self, architecture: Any) -> bool:
        """Whether it is within the limits; latency is measured, once for each architecture."""
        if not self.limits:
            return True
        measured = self.space.measure(architecture, self.skeleton)
        costs = {"parameters": measured.parameters, "flops": measured.flops}
        within = all(cost <= self.limits.get(name, math.inf) for name, cost in costs.items())
        return within and ("latency" not in self.limits or self.latency(architecture) <= self.limits["latency"])

    def latency(self, architecture: Any) -> float:
        """Milliseconds for a batch on the device."""
        if architecture not in self._latencies:
            model = self.space.build(architecture, self.skeleton, seed=0).to(self.device)
            self._latencies[architecture] = score(model, *self._batch, ["latency"]).value("latency")
        return self._latencies[architecture]
