"""Random search: each architecture with the same probability, none twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from theta0.searchers import Search, Task, searchers


@searchers.register("random")
def random(task: Task, generator: np.random.Generator) -> Search:
    """Draws without replacement until the budget is spent, or a pool is."""
    if task.candidates is not None:
        for place in generator.permutation(len(task.candidates)):
            yield [task.proposal(task.candidates.architectures[place])]
        return
    seen: set[Any] = set()
    while True:
        architecture = task.sample(generator)
        if len(seen) < task.space.size and architecture in seen:
            continue
        seen.add(architecture)
        yield [task.proposal(architecture)]
