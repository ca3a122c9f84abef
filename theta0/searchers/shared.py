"""Random search with shared weights (Li and Talwalkar, UAI 2019): train what is drawn uniformly, then compare draws.

No architecture is learned. The supernet's weights are trained by single paths, and of ``candidates`` random
architectures the one of best validation accuracy with these weights is chosen. With a warm start, architectures are
drawn from NASI's distribution instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from theta0.errors import Theta0Error
from theta0.forms import Mixtures, single
from theta0.oneshot import Method, Run, best, searcher
from theta0.searchers import searchers


@dataclass(frozen=True)
class SharedWeights(Method):
    """``judging`` validation images, the same ones for all, decide between ``candidates``."""

    search_epochs: int = 250
    candidates_count: int = 100
    judging: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates_count < 1 or self.judging < 2:
            raise Theta0Error(
                f"at least one candidate and two images to judge them by are needed, not {self.candidates_count} and "
                f"{self.judging}"
            )

    def drawn(self, run: Run, generator: np.random.Generator) -> Any:
        """An architecture: uniform, or of NASI's distribution."""
        return run.space.sample(generator) if run.warmed is None else run.warmed.draw(generator)

    def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
        """A single path."""
        return single(run.space, self.drawn(run, generator))

    def candidates(self, run: Run, generator: np.random.Generator) -> Iterator[Any]:
        """The most accurate one first."""
        pool = [run.task.sample(generator)]
        pool += [self.drawn(run, generator) for _ in range(self.candidates_count - 1)]
        return iter(best(run, pool, self.judging))


random_shared: Any = searchers.register("random-shared")(searcher(SharedWeights))
