"""Regularized evolution (Real et al., AAAI 2019): a tournament chooses the parent, and the oldest dies."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers


@searchers.register("evolution")
def evolution(
    task: Task, generator: np.random.Generator, *, population: int = 10, tournament: int = 5, epochs: int = 0
) -> Search:
    """``epochs`` is the training budget of each evaluation, 0 the smallest one."""
    if population < 1 or not 1 <= tournament <= population:
        raise Theta0Error(f"a tournament needs 1 to {population} of the population, not {tournament}")
    budget = epochs or task.epochs[0]
    alive: deque[tuple[float, Any]] = deque()
    for _ in range(population):
        architecture = task.sample(generator)
        (outcome,) = yield [task.proposal(architecture, budget)]
        alive.append((outcome.ranked, architecture))
    while True:
        drawn = generator.choice(len(alive), size=tournament, replace=False)
        parent = max((alive[i] for i in drawn), key=lambda member: member[0])[1]
        child = task.mutate(parent, generator)
        (outcome,) = yield [task.proposal(child, budget)]
        alive.append((outcome.ranked, child))
        alive.popleft()
