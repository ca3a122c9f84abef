"""KNAS (Xu et al., ICML 2021): the best of some random architectures by the gradients' Gram matrix are trained.

The best validation accuracy among them is chosen. The shipped code computes another score, which the pool may have as
``knas:series``; Eigen-NAS keeps the protocol with ``score=eigen_bound`` and 5 or 20 trainings.
"""

from __future__ import annotations

import numpy as np

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.searchers.zerocost import zerocost


@searchers.register("knas")
def knas(
    task: Task, generator: np.random.Generator, *, sample: int = 300, train: int = 20, score: str = "knas"
) -> Search:
    """``sample`` architectures of the scored pool; the ``train`` best of them by ``score`` are trained."""
    if not 1 <= train <= sample:
        raise Theta0Error(f"train is 1 to {sample}, the number of architectures sampled, not {train}")
    return (yield from zerocost(task, generator, score=score, sample=sample, train=train))
