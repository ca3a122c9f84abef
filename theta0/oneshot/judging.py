"""Candidates of a trained supernet, judged with the weights that they share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from theta0.errors import Theta0Error
from theta0.forms import single
from theta0.oneshot.method import Batch
from theta0.supernet import mix

if TYPE_CHECKING:
    from theta0.oneshot.loop import Run


def accuracy(run: Run, architecture: Any, batch: Batch) -> float:
    """The share of a batch that it gets right; the batch normalises itself, as while training."""
    mix(run.model, single(run.space, architecture))
    with torch.no_grad():
        return float((run.model(batch[0]).argmax(dim=1) == batch[1]).double().mean())


def judging_batch(run: Run, count: int) -> Batch:
    """The same validation images for all candidates."""
    size = min(count, len(run.validation))
    return run.validation.batch(size, seed=run.seed, normalization=run.normalization)


def best(run: Run, candidates: Iterable[Any], images: int) -> list[Any]:
    """Allowed candidates, the most accurate one first; the first of equal ones first."""
    batch = judging_batch(run, images)
    kept = [architecture for architecture in dict.fromkeys(candidates) if run.task.allowed(architecture)]
    if not kept:
        raise Theta0Error("none of the candidates of the supernet is within the limits; raise them")
    return sorted(kept, key=lambda architecture: -accuracy(run, architecture, batch))
