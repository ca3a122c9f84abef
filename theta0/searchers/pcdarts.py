"""PC-DARTS (Xu et al., ICLR 2020): operations on one in four channels, weights for edges, and a head start of weights.

What passes by is not weighed, so that the operations without weights have less of an advantage; edge normalisation
makes up for what the channels that are taken add at random. The architecture is not trained in the first epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from theta0.errors import Theta0Error
from theta0.oneshot import Run, searcher
from theta0.oneshot.method import Batch
from theta0.searchers import searchers
from theta0.searchers.darts import DARTS


@dataclass(frozen=True)
class PCDARTS(DARTS):
    """``channels_share`` K: one in K channels is operated on."""

    batch: int = 256
    learning_rate: float = 0.1
    final_learning_rate: float = 0.0
    alpha_rate: float = 6e-4
    channels_share: int = 4
    head_start: int = 15
    """Epochs before the architecture is trained."""

    form: ClassVar[str] = "normalised"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels_share < 1 or not 0 <= self.head_start < self.search_epochs:
            raise Theta0Error(
                f"channels_share is 1 or more and head_start less than the {self.search_epochs} epochs of the search; "
                f"they are {self.channels_share} and {self.head_start}"
            )

    @property
    def partial(self) -> int:
        """As asked for."""
        return self.channels_share

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """After the head start, as DARTS does."""
        if run.done // run.whole >= self.head_start:
            super().learn(run, train, validation, generator)


pc_darts: Any = searchers.register("pc-darts")(searcher(PCDARTS))
