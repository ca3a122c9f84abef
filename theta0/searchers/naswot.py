"""NASWOT (Mellor et al., ICML 2021): the best of some random architectures by the score of that name, untrained."""

from __future__ import annotations

import numpy as np

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.searchers.zerocost import zerocost


@searchers.register("naswot")
def naswot(task: Task, generator: np.random.Generator, *, sample: int = 1000, score: str = "naswot") -> Search:
    """``sample`` is the paper's N: 10, 100 or 1000 architectures of the scored pool, drawn without replacement."""
    if sample < 1:
        raise Theta0Error(f"sample is a number of architectures, 1 or more, not {sample}")
    return (yield from zerocost(task, generator, score=score, sample=sample))
