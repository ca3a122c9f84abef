"""The best of a scored pool by one score: nothing is trained (Abdelfattah et al., ICLR 2021)."""

from __future__ import annotations

import numpy as np

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers


@searchers.register("zerocost")
def zerocost(
    task: Task, generator: np.random.Generator, *, score: str = "synflow", sample: int = 0, train: int = 0
) -> Search:
    """The arg max of ``score`` over the pool, or over ``sample`` architectures drawn from it.

    With ``train`` the best so many are trained, and the best validation accuracy is chosen.
    """
    pool = task.pool()
    if sample < 0 or train < 0:
        raise Theta0Error(f"sample and train are numbers of architectures, 0 or more, not {sample} and {train}")
    ranks = pool.ranks(score)
    places = np.arange(len(pool))
    if sample:
        places = generator.choice(len(pool), size=min(sample, len(pool)), replace=False)
    order = places[np.argsort(-ranks[places], kind="stable")]
    if not pool.ok(score)[order[0]]:
        raise Theta0Error(f"none of {len(order):,} architectures has a valid {score}; take another score or pool")
    for place in order[:train]:
        yield [task.proposal(pool.architectures[place])]
    return None if train else pool.architectures[order[0]]
