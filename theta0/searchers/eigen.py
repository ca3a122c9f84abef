"""Eigen-NAS (Zhu et al., NeurIPS 2022): the pool's best by a cheap bound of the NTK's least eigenvalue are trained.

The bound is (1 / d) sum_i K_ii; the best validation accuracy among the ``train`` best is chosen (k = 5 or 20 in the
paper). A pool that has trace = sqrt(sum_i K_ii / N) and no bound will do: they order architectures alike.
"""

from __future__ import annotations

import numpy as np

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.searchers.zerocost import zerocost


@searchers.register("eigen")
def eigen(
    task: Task, generator: np.random.Generator, *, train: int = 20, sample: int = 0, score: str = "eigen_bound"
) -> Search:
    """``train`` is the paper's k; ``sample`` draws so many of the pool first, 0 takes it whole."""
    if train < 1 or 0 < sample < train:
        raise Theta0Error(f"train is 1 or more, and at most the {sample or 'whole'} sample, not {train}")
    known = {name.partition(":")[0] for name in task.pool().scores}
    if score == "eigen_bound" and score not in known and "trace" in known:
        score = "trace"
    return (yield from zerocost(task, generator, score=score, sample=sample, train=train))
