"""How fast this machine trains and scores networks, measured in moments."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from theta0.job.asked import Asked
from theta0.job.parts import Parts, share
from theta0.pool import score_pool
from theta0.recipe import Recipe
from theta0.space import Skeleton
from theta0.threads import threads
from theta0.train import train

_SHARE = 0.03
"""Of the budget's time, after which fewer networks have to do."""


class Pace(NamedTuple):
    """Seconds that things take here."""

    score: float
    """For the scores of one network."""
    image: float
    """For one image in a training."""


def pace(asked: Asked, parts: Parts, recipe: Recipe, skeleton: Skeleton, architectures: Sequence[Any]) -> Pace:
    """Trains each architecture for a moment and scores it; the first one only wakes the machine up."""
    space = asked.architectures
    few, short = _moment(asked, parts, recipe, 2)
    x, y = scoring_batch(parts, asked)
    scores: list[float] = []
    images: list[float] = []
    begun = time.perf_counter()
    for one in architectures:
        start = time.perf_counter()
        if len(images) >= 2 and start - begun > _SHARE * (asked.budget["seconds"] or math.inf):
            break
        train(space.build(one, skeleton, seed=0), few, short, seed=0, device=asked.device, validate_every=None)
        images.append((time.perf_counter() - start) / len(few))
        if asked.scores:
            start = time.perf_counter()
            score_pool(space, [one], x, y, asked.scores, skeleton=skeleton, device=asked.device)
            scores.append(time.perf_counter() - start)
    return Pace(float(np.mean(scores[1:] or scores or [0.0])), float(np.mean(images[1:] or images)))


def faster(asked: Asked, parts: Parts, recipe: Recipe, skeleton: Skeleton, architecture: Any) -> int:
    """Threads: all of them, or one, which is faster where networks are small or others use the machine too."""
    whole = torch.get_num_threads()
    if whole == 1 or torch.device(asked.device).type != "cpu":
        return whole
    few, short = _moment(asked, parts, recipe, 1)
    taken = {}
    for count in (1, whole, 1, whole):  # the first ones wake the machine up
        model = asked.architectures.build(architecture, skeleton, seed=0)
        start = time.perf_counter()
        with threads(count):
            train(model, few, short, seed=0, validate_every=None)
        taken[count] = time.perf_counter() - start
    return min(taken, key=lambda count: taken[count])


def _moment(asked: Asked, parts: Parts, recipe: Recipe, batches: int) -> tuple[Any, Recipe]:
    return share(parts.train, batches * recipe.batch, asked.seed), replace(recipe, epochs=1, warmup=0.0)


def scoring_batch(parts: Parts, asked: Asked) -> tuple[Tensor, Tensor]:
    """The images and labels that networks are scored on."""
    return parts.train.batch(min(64, len(parts.train)), seed=asked.seed)
