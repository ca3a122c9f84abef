"""GDAS (Dong and Yang, CVPR 2019): one candidate of each decision runs, drawn by straight-through Gumbel.

A step trains the weights that were drawn; another draw on the other half of the images trains the logits of its own
candidates. The temperature falls linearly over epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from theta0.forms import Mixtures
from theta0.oneshot import Method, Run, searcher
from theta0.oneshot.method import Batch, check_temperatures, descend_logits
from theta0.searchers import searchers


@dataclass(frozen=True)
class GDAS(Method):
    """``hot`` and ``cold`` are the first and the last temperature."""

    search_epochs: int = 250
    hot: float = 10.0
    cold: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_temperatures(self.hot, self.cold)

    def spread(self) -> float:
        """As in the official code."""
        return 1e-3

    def temperature(self, run: Run) -> float:
        """Of this epoch."""
        share = (run.done // run.whole) / max(1, self.search_epochs - 1)
        return self.hot + (self.cold - self.hot) * min(1.0, share)

    def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
        """A draw; its weights are one, whatever the temperature."""
        return run.alphas.mixtures(run.alphas.drawn(generator))

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """Down the validation loss of a draw."""
        weights = run.alphas.gumbel(generator, self.temperature(run))
        descend_logits(run, run.loss(run.alphas.mixtures(weights), validation))


gdas: Any = searchers.register("gdas")(searcher(GDAS))
