"""NASI (Shu et al., ICLR 2022): one step up the expected NTK trace of a supernet at initialization; nothing is trained.

What the options mean is told in :mod:`theta0.nasi`. Without images, pixels and labels are drawn at random.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from theta0 import checkpoint as checkpoints
from theta0.nasi import Nasi, NasiSettings
from theta0.oneshot.loop import options_of
from theta0.oneshot.searcher import first_allowed
from theta0.searchers import BudgetSpentError, Search, Task, searchers


@searchers.register("nasi")
def nasi(
    task: Task,
    generator: np.random.Generator,
    *,
    steps: int = 100,
    batch: int = 64,
    mu: float = 1.0,
    nu: float = 1000.0,
    constraint: str = "adaptive",
    score: str = "trace",
    labels: str = "given",
    data: str = "given",
    whole: bool = False,
    form: str = "nodes",
    temperature: float = 1.0,
    step_size: float = 1.0,
    skeleton: tuple[str, ...] = (),
    checkpoint: str = "",
) -> Search:
    """The most probable architecture after the step is evaluated and chosen.

    ``skeleton`` are options of the supernet's skeleton; from the file ``checkpoint`` a search goes on after a stop.
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if name in _NAMES}
    search = Nasi(
        task.space,
        task.images,
        NasiSettings(**given),
        seed=int(generator.integers(2**62)),
        **options_of(skeleton),
    )
    path = Path(checkpoint) if checkpoint else None
    if path is not None and path.exists():
        content = checkpoints.read(path)
        checkpoints.check_identity(path, content["identity"], search.identity())
        search.load(content["state"])
    stop = task.stop()
    while len(search.traces) < steps and not (search.traces and stop()):
        search.step()
        if path is not None:
            checkpoints.write(path, {"identity": search.identity(), "state": search.state()})
    chosen = first_allowed(task, search.distribution().near(generator), generator)
    try:
        (outcome,) = yield [task.proposal(chosen, trace=search.traces[-1], nu=search.nu())]
    except BudgetSpentError:
        return chosen
    return None if outcome.failed else chosen


_NAMES = frozenset(field.name for field in fields(NasiSettings))
