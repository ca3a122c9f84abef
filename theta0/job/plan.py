"""How a budget is spent: decided once, in numbers of networks and epochs, so that a run that goes on does the same.

A time is turned into numbers by measuring a few networks here. The networks themselves are made shallower or thinner
where the time, or the limits, would not suffice for the paper's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from theta0.job.asked import Asked
from theta0.job.drawing import drawn, objective
from theta0.job.pace import Pace, faster, pace
from theta0.job.parts import Parts
from theta0.job.sizes import Change, sizes
from theta0.recipe import Recipe
from theta0.threads import threads

POOL, TRIALS, LAST = 0.12, 0.25, 0.5
"""Shares of the time for scores, for trials, and for the final trainings; the rest is for what is not foreseen.

Half of it for the end: a short training costs more accuracy than a better search brings back.
"""
_OVERRUN = 1.5
"""How much longer than planned all trials together may take."""
_EPOCHS = 12
"""A trial's epochs at most: what the tables' short budgets have."""
_LEAST = 3
"""So many epochs at least; where the time is shorter, it is spent on fewer images."""
_LONGEST = 200
_WORTH, _VIEWED = 8, 10_000
"""Epochs that the final training should have, over so many images at most; else networks are made smaller."""
_RANDOM = ((600.0, 2), (1800.0, 3), (math.inf, 5))
"""Below so many seconds so many random architectures: each takes as long as the chosen one."""
_MEASURED = 4
"""Architectures by which the machine is measured."""
_SMALL = 10e6
"""Multiply-adds for an image, below which one thread of the processor is the rule: it is faster, or hardly slower."""


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
    """Of the processor; a run that went on with others would round otherwise."""

    def facts(self) -> dict[str, Any]:
        """For the run."""
        return asdict(self)


def plan(asked: Asked, parts: Parts, recipe: Recipe) -> Plan:
    """The plan for what was asked; trials are trained by ``recipe``."""
    images, scored, evaluations = len(parts.train), bool(asked.scores), asked.budget["evaluations"]
    most = None if evaluations is None else int(evaluations)
    seconds = asked.budget["seconds"]
    if seconds is None:
        shrink = sizes(asked, parts)[0]
        return Plan(
            pool=(asked.pool or 256) if scored else 0,
            evaluations=most,
            seconds=None,
            epochs=asked.epochs or 4,
            images=images,
            random=3 if asked.random is None else asked.random,
            final_epochs=asked.final_epochs or 20,
            shrink=shrink,
            threads=1 if _flops(asked, parts, shrink) < _SMALL else torch.get_num_threads(),
        )
    random = asked.random if asked.random is not None else next(count for most, count in _RANDOM if seconds < most)
    views = _WORTH * min(images, _VIEWED) * (1 + random)
    shrink, count, found = _fitting(asked, parts, recipe, LAST * seconds / views)
    trials = most or int(min(40, max(6, 4 + seconds / 20)))
    shown = min(TRIALS * seconds / trials, LAST * seconds / (1 + random)) / found.image
    if asked.epochs is None:
        epochs, taken = spread(shown, images, _EPOCHS, recipe.batch)
    else:
        epochs, taken = asked.epochs, int(min(images, max(2 * recipe.batch, shown // asked.epochs)))
    return Plan(
        pool=(asked.pool or int(min(5000, max(40, POOL * seconds / found.score)))) if scored else 0,
        evaluations=trials,
        seconds=_OVERRUN * TRIALS * seconds,
        epochs=epochs,
        images=taken,
        random=random,
        final_epochs=asked.final_epochs,
        shrink=shrink,
        threads=count,
    )


def spread(views: float, images: int, most: int, batch: int) -> tuple[int, int]:
    """Epochs and images for a training that may look at so many images, each time it does so counted."""
    if views >= _LEAST * images:
        return int(min(most, views // images)), images
    return _LEAST, int(min(images, max(2 * batch, views // _LEAST)))


def final(views: float, images: int, batch: int, trial: Plan) -> tuple[int, int]:
    """The same for the final training, which is no shorter than a trial of the plan."""
    epochs, taken = spread(views, images, _LONGEST, batch)
    return (epochs, taken) if epochs * taken >= trial.epochs * trial.images else (trial.epochs, trial.images)


def _fitting(asked: Asked, parts: Parts, recipe: Recipe, afford: float) -> tuple[Change, int, Pace]:
    """The largest size whose networks take ``afford`` seconds for an image or less, the threads, and what they take."""
    left = sizes(asked, parts)
    while True:
        change = left.pop(0)
        skeleton = asked.made_skeleton(parts, **change)
        some = drawn(asked, objective(asked, parts, skeleton), _MEASURED, "pace")
        count = faster(asked, parts, recipe, skeleton, some[0])
        with threads(count):
            found = pace(asked, parts, recipe, skeleton, some)
        if found.image <= afford or not left:
            return change, count, found
        # The time goes with the arithmetic, at best: a size that cannot do is not measured.
        cost = _flops(asked, parts, change)
        while len(left) > 1 and found.image * _flops(asked, parts, left[0]) / cost > afford:
            left.pop(0)


def _flops(asked: Asked, parts: Parts, change: Change) -> float:
    """The mean multiply-adds of a few networks."""
    skeleton = asked.made_skeleton(parts, **change)
    some = drawn(asked, objective(asked, parts, skeleton), _MEASURED, "pace")
    return float(np.mean([asked.architectures.measure(one, skeleton).flops for one in some]))
