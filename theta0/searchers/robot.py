"""RoBoT (He et al., ICLR 2024): a Gaussian process weighs scores; the best ranking is then gone down greedily."""

from __future__ import annotations

import numpy as np

from theta0.candidates import Floats
from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.surrogate import Acquisition, Surrogate

_REPEATS = 20
"""So many proposals in a row whose architecture is known already, and the exploration ends."""


@searchers.register("robot")
def robot(
    task: Task,
    generator: np.random.Generator,
    *,
    scores: tuple[str, ...] = ("grad", "snip", "grasp", "fisher", "synflow", "jacob_cov"),
    explore: float = 0.5,
    acquisition: Acquisition = "ucb",
    probes: int = 3,
    epochs: int = 0,
) -> Search:
    """Weights in [-1, 1] of scores, each stretched to [0, 1] over the pool.

    A ranking is worth the validation accuracy of its first architecture. After the share ``explore`` of the
    evaluations, or of the seconds, the best ranking is evaluated from the top.
    """
    pool = task.pool()
    if not 0 < explore <= 1:
        raise Theta0Error(f"explore is a share of the budget above 0 and at most 1, not {explore}")
    columns = []
    for score in scores:
        values, ok = pool.column(score), pool.ok(score)
        if not ok.any():
            raise Theta0Error(f"none of the {len(pool):,} architectures has a valid {score}; leave it out of scores")
        low, high = values[ok].min(), values[ok].max()
        columns.append(np.where(ok, (values - low) / max(high - low, 1e-300), 0.0))
    stretched = np.stack(columns, axis=1)
    budget = epochs or task.epochs[0]
    known: dict[int, float] = {}
    points: list[Floats] = []
    values_seen: list[float] = []
    best: tuple[float, Floats] | None = None
    model: Surrogate | None = None
    spent, count, repeats = 0.0, 0, 0
    while (task.budget.evaluations is None or count < explore * task.budget.evaluations) and (
        task.budget.seconds is None or spent < explore * task.budget.seconds
    ):
        if len(points) < probes:
            point = generator.random(len(scores))
        else:
            # An architecture that was seen before adds a point but nothing measured: no reason to fit again.
            fit = not repeats or model is None
            model = Surrogate(np.array(points), np.array(values_seen), start=model, fit=fit)
            point = model.propose(generator, acquisition)
        place = int(np.argmax(stretched @ (2 * point - 1)))
        repeats = repeats + 1 if place in known else 0
        if not repeats:
            (outcome,) = yield [task.proposal(pool.architectures[place], budget)]
            known[place] = outcome.ranked
            spent += outcome.seconds
            count += 1
        if np.isfinite(known[place]):
            points.append(point)
            values_seen.append(known[place])
            if best is None or known[place] > best[0]:
                best = (known[place], point)
        if repeats >= _REPEATS:  # the weights find nothing new
            break
    point = generator.random(len(scores)) if best is None else best[1]
    for place in np.argsort(-(stretched @ (2 * point - 1)), kind="stable"):
        if int(place) not in known:
            yield [task.proposal(pool.architectures[place], budget)]
