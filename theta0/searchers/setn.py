"""SETN (Dong and Yang, ICCV 2019): weights by uniform single paths, and an evaluator that learns what is worth a look.

The evaluator is the softmax over candidates of each decision, trained on the other half of the images through the
weighted sum of all; it does not choose what trains the weights, so that none of them is trained less for a bad start.
Of the ``candidates_count`` most probable architectures that are drawn, the most accurate one is chosen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from theta0.forms import Mixtures, single
from theta0.oneshot import Run, best, searcher
from theta0.oneshot.method import Batch, descend_logits
from theta0.searchers import searchers
from theta0.searchers.shared import SharedWeights


@dataclass(frozen=True)
class SETN(SharedWeights):
    """As random search with shared weights, and the evaluator's settings."""

    def weights(self, run: Run, generator: np.random.Generator) -> Mixtures:
        """A uniform single path, whatever the evaluator says."""
        return single(run.space, run.space.sample(generator))

    def learn(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> None:
        """The evaluator: down the validation loss of the weighted sum."""
        descend_logits(run, run.loss(run.alphas.mixtures(run.alphas.softmax()), validation))

    def candidates(self, run: Run, generator: np.random.Generator) -> Iterator[Any]:
        """The most accurate one first, of those that the evaluator favours."""
        allowed = (architecture for architecture in run.alphas.near(generator) if run.task.allowed(architecture))
        pool = list(itertools.islice(allowed, self.candidates_count))
        return iter(best(run, pool or [run.task.sample(generator)], self.judging))


setn: Any = searchers.register("setn")(searcher(SETN))
