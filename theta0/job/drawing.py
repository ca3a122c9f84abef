"""Random architectures within the limits of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from theta0.errors import Theta0Error
from theta0.job.asked import Asked
from theta0.job.parts import Parts
from theta0.seeding import derived
from theta0.space import Skeleton
from theta0.training_objective import TrainingObjective

_TRIES, _TIMED_TRIES = 200, 40
"""Draws for each architecture before the space is taken to have no more within the limits; latencies take time."""
_SHOWN = 20
"""Architectures by which somebody is told how small networks are."""


class BeyondLimitsError(Theta0Error):
    """No architecture was found within the limits."""


def objective(asked: Asked, parts: Parts, skeleton: Skeleton, **training: Any) -> TrainingObjective:
    """What keeps the limits; with the images and the rest in ``training`` it trains as well."""
    few = parts.train.subset(range(1))
    return TrainingObjective(
        asked.architectures,
        **{"train_set": few, "validation": few, **training},
        skeleton=skeleton,
        limits=asked.limits,
        seed=asked.seed,
        device=asked.device,
    )


def drawn(asked: Asked, within: TrainingObjective, count: int, purpose: str) -> list[Any]:
    """``count`` different architectures within the limits; fewer only where there are no more."""
    space = asked.architectures
    generator = np.random.default_rng(derived(asked.seed, purpose))
    found: dict[Any, Any] = {}
    tries, most = 0, _TIMED_TRIES if "latency" in asked.limits else _TRIES
    while len(found) < count and tries < most * (len(found) + 1):
        architecture = space.sample(generator)
        key = space.canonical(architecture)
        tries += 1
        if key not in found and within.allowed(architecture):
            found[key] = architecture
    if not found:
        limits = ", ".join(f"{name} at most {limit:g}" for name, limit in asked.limits.items())
        raise BeyondLimitsError(
            f"none of {tries} random architectures of {asked.space} is within the limits ({limits}); "
            f"{_least(asked, within)}; raise the limits, or make networks smaller with options of the skeleton"
        )
    return list(found.values())


def _least(asked: Asked, within: TrainingObjective) -> str:
    """How small networks here are."""
    space = asked.architectures
    generator = np.random.default_rng(asked.seed)
    some = [space.sample(generator) for _ in range(_SHOWN)]
    costs = [space.measure(one, within.skeleton) for one in some]
    parts = {
        "parameters": lambda: f"{min(cost.parameters for cost in costs):,} parameters",
        "flops": lambda: f"{min(cost.flops for cost in costs):,} multiply-adds",
        "latency": lambda: f"{min(within.latency(one) for one in some):.3g} ms",
    }
    return f"the least of {_SHOWN} is {', '.join(parts[name]() for name in asked.limits)}"
