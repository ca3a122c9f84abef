"""Random search: each architecture with the same probability, none twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from theta0.searchers import Search, Task, searchers

_REPEATS = 10
"""For each architecture seen: so many draws in a row of one seen before, and there are no others. How many are within
the limits is not known; were there one more, this would go wrong once in 20,000 times."""


@searchers.register("random")
def random(task: Task, generator: np.random.Generator) -> Search:
    """Draws without replacement until the budget is spent, or all that is allowed seems to be."""
    if task.candidates is not None:
        for place in generator.permutation(len(task.candidates)):
            yield [task.proposal(task.candidates.architectures[place])]
        return
    seen: set[Any] = set()
    repeats = 0
    while repeats < _REPEATS * (len(seen) + 1):
        architecture = task.sample(generator)
        if architecture in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(architecture)
        yield [task.proposal(architecture)]
