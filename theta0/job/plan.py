"""How a budget is spent: decided once, in numbers of networks and epochs, so that a run that goes on does the same.

A time is turned into numbers by measuring a few networks here. The networks themselves are made shallower or thinner
where the time would not suffice to train the paper's size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from theta0.job.asked import Asked
from theta0.job.parts import Parts, share
from theta0.pool import score_pool
from theta0.recipe import Recipe
from theta0.space import Skeleton, Space
from theta0.threads import threads
from theta0.train import train

POOL, TRIALS, LAST = 0.25, 0.3, 0.35
"""Shares of the time for scores, for trials, and for the final trainings; the rest is for what is not foreseen."""
_MEASURING = 0.03
"""The share of the time in which a few networks are measured."""
_EPOCHS = 12
"""A trial's epochs at most: what the tables' short budgets have."""
_LEAST = 3
"""So many epochs at least; where the time is shorter, it is spent on fewer images."""
_LONGEST = 200
_RUNGS = ((0.6, 1.0), (0.2, 1.0), (0.2, 0.5))
"""Shares of the skeleton's depth and of its channels that are tried, one after the other."""
_DEPTHS = {"cells": 1, "layers": 3}
"""What skeletons call their depth, and the least of it."""


@dataclass(frozen=True)
class Plan:
    """Numbers of all that will be done."""

    pool: int
    """Architectures to score; 0 where the searcher needs no scores."""
    evaluations: int | None
    """Trials at most."""
    seconds: float | None
    """What all trials together may take."""
    epochs: int
    """Of a trial."""
    images: int
    """That a trial trains on."""
    random: int
    """Architectures to compare with."""
    final_epochs: int | None
    """None: as many as fit into the time that is left then."""
    shrink: Mapping[str, int]
    """What of the skeleton is smaller than usual."""
    threads: int
    """Of the processor; a run that goes on with others would round otherwise."""

    def facts(self) -> dict[str, Any]:
        """For the run."""
        return asdict(self)


class Pace(NamedTuple):
    """Seconds that things take here."""

    score: float
    """For the scores of one network."""
    image: float
    """For one image in a training."""


def plan(asked: Asked, parts: Parts, recipe: Recipe, sample: Callable[[Skeleton], Sequence[Any]]) -> Plan:
    """``sample(skeleton)`` draws a few architectures that are allowed, to measure by."""
    images, scored, evaluations = len(parts.train), bool(asked.scores), asked.budget["evaluations"]
    most = None if evaluations is None else int(evaluations)
    seconds = asked.budget["seconds"]
    if seconds is None:
        return Plan(
            pool=(asked.pool or 256) if scored else 0,
            evaluations=most,
            seconds=None,
            epochs=asked.epochs or 4,
            images=images,
            random=3 if asked.random is None else asked.random,
            final_epochs=asked.final_epochs or 20,
            shrink={},
            threads=torch.get_num_threads(),
        )
    random = asked.random if asked.random is not None else 3 if seconds < 1200 else 5
    afford = LAST * seconds / (1 + random)
    count = faster(asked, parts, recipe, sample(asked.made_skeleton(parts))[0])
    with threads(count):
        shrink, pace = _fitting(asked, parts, recipe, sample, lambda one: afford / one.image >= 8 * min(images, 10_000))
    trials = most or int(min(40, max(6, 4 + seconds / 20)))
    epochs, taken = spread(TRIALS * seconds / trials / pace.image, images, _EPOCHS, recipe.batch)
    return Plan(
        pool=(asked.pool or int(min(5000, max(40, POOL * seconds / pace.score)))) if scored else 0,
        evaluations=trials,
        seconds=1.5 * TRIALS * seconds,
        epochs=asked.epochs or epochs,
        images=taken,
        random=random,
        final_epochs=asked.final_epochs,
        shrink=shrink,
        threads=count,
    )


def faster(asked: Asked, parts: Parts, recipe: Recipe, architecture: Any) -> int:
    """Threads: all of them, or one, which is faster where networks are small or others use the machine too."""
    whole = torch.get_num_threads()
    if whole == 1 or torch.device(asked.device).type != "cpu":
        return whole
    few, short = share(parts.train, recipe.batch, asked.seed), replace(recipe, epochs=1, warmup=0.0)
    taken = {}
    for count in (1, whole, 1, whole):  # the first ones wake the machine up
        model = asked.architectures.build(architecture, asked.made_skeleton(parts), seed=0)
        start = time.perf_counter()
        with threads(count):
            train(model, few, short, seed=0, validate_every=None)
        taken[count] = time.perf_counter() - start
    return min(taken, key=lambda count: taken[count])


def spread(views: float, images: int, most: int, batch: int) -> tuple[int, int]:
    """Epochs and images for a training that may look at so many images, each time it does so counted."""
    if views >= _LEAST * images:
        return int(min(most, views // images)), images
    return _LEAST, int(min(images, max(2 * batch, views // _LEAST)))


def final(views: float, images: int, batch: int) -> tuple[int, int]:
    """The same for the final training."""
    return spread(views, images, _LONGEST, batch)


def _fitting(
    asked: Asked,
    parts: Parts,
    recipe: Recipe,
    sample: Callable[[Skeleton], Sequence[Any]],
    enough: Callable[[Pace], bool],
) -> tuple[Mapping[str, int], Pace]:
    """The largest skeleton whose networks can be trained in the time, and what they take."""
    space = asked.architectures
    whole = asked.made_skeleton(parts)
    drawn = sample(whole)
    pace = measured(asked, parts, recipe, whole, drawn)
    if enough(pace):
        return {}, pace
    dense = _flops(space, whole, drawn)
    shrink: Mapping[str, int] = {}
    for shrink in rungs(whole, asked.options):
        ratio = _flops(space, asked.made_skeleton(parts, **shrink), drawn) / dense
        if enough(pace._replace(image=pace.image * ratio)):
            break
    if not shrink:
        return {}, pace
    return shrink, measured(asked, parts, recipe, asked.made_skeleton(parts, **shrink), drawn)


def _flops(space: Space[Any], skeleton: Skeleton, drawn: Sequence[Any]) -> float:
    return float(np.mean([space.measure(one, skeleton).flops for one in drawn]))


def rungs(skeleton: Skeleton, fixed: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Changes that make a skeleton smaller and smaller; what the user has ``fixed`` stays."""
    names = {one.name for one in fields(skeleton)} - set(fixed)
    for depth, width in _RUNGS:
        found = {
            name: max(least, round(getattr(skeleton, name) * depth)) for name, least in _DEPTHS.items() if name in names
        }
        if "channels" in names:
            found["channels"] = max(4, round(getattr(skeleton, "channels") * width))  # noqa: B009 (not every skeleton's)
        changed = {name: value for name, value in found.items() if value < getattr(skeleton, name)}
        if changed:
            yield changed


def measured(asked: Asked, parts: Parts, recipe: Recipe, skeleton: Skeleton, drawn: Sequence[Any]) -> Pace:
    """Trains each architecture for a moment and scores it; the first one only wakes the machine up.

    On a machine that needs long for that, fewer of them have to do.
    """
    space = asked.architectures
    few = share(parts.train, 2 * recipe.batch, asked.seed)
    short = replace(recipe, epochs=1, warmup=0.0)
    x, y = scoring_batch(parts, asked)
    scores: list[float] = []
    images: list[float] = []
    begun = time.perf_counter()
    for one in drawn:
        start = time.perf_counter()
        if len(images) >= 2 and start - begun > _MEASURING * (asked.budget["seconds"] or math.inf):
            break
        train(space.build(one, skeleton, seed=0), few, short, seed=0, device=asked.device, validate_every=None)
        images.append((time.perf_counter() - start) / len(few))
        if asked.scores:
            start = time.perf_counter()
            score_pool(space, [one], x, y, asked.scores, skeleton=skeleton, device=asked.device)
            scores.append(time.perf_counter() - start)
    return Pace(float(np.mean(scores[1:])) if scores else 0.0, float(np.mean(images[1:])))


def scoring_batch(parts: Parts, asked: Asked) -> Any:
    """The images and labels that networks are scored on."""
    return parts.train.batch(min(64, len(parts.train)), seed=asked.seed)
