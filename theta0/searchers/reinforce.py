"""REINFORCE (Williams, 1992) as in NAS-Bench-201: a softmax for each choice of the space, a moving-average baseline.

    log p <- log p + (reward - baseline) grad log p(what was drawn), by Adam.

Codes that are no architecture, or none that is allowed, are drawn again. The probability of an episode is that of all
its draws, the refused ones too: so the expected step is the gradient of the expected reward *given* what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.searchers.codes import allowed_of
from theta0.space import Choice

_TRIES = 10_000
"""How many draws of one episode may be refused."""


@searchers.register("reinforce")
def reinforce(
    task: Task,
    generator: np.random.Generator,
    *,
    learning_rate: float = 1e-3,
    decay: float = 0.9,
    epochs: int = 0,
) -> Search:
    """``decay`` is that of the baseline; ``epochs`` is the training budget of each evaluation, 0 the smallest one.

    An evaluation that failed has no reward and makes no step.
    """
    if not 0 < learning_rate < np.inf:
        raise Theta0Error(f"a learning rate is more than zero and finite, not {learning_rate}")
    if not 0 < decay < 1:
        raise Theta0Error(f"the decay of the baseline lies between 0 and 1, not at {decay}")
    policy = Policy(task.space.choices, learning_rate)
    budget = epochs or task.epochs[0]
    total = weight = 0.0
    while True:
        architecture, draws = _episode(policy, task, generator)
        (outcome,) = yield [task.proposal(architecture, budget, draws=len(draws))]
        if outcome.failed:
            continue
        # The average begins with this reward itself, as in the benchmark's code: the first step is zero.
        total, weight = decay * total + (1 - decay) * outcome.value, decay * weight + 1 - decay
        policy.step(draws, outcome.value - total / weight)


class Policy:
    """Independent softmax distributions, one for each choice, that begin uniform."""

    def __init__(self, choices: Sequence[Choice], learning_rate: float) -> None:
        sizes = torch.tensor([len(choice.candidates) for choice in choices])
        self._logits = torch.zeros(len(sizes), int(sizes.max()), dtype=torch.float64)
        self._beyond = torch.arange(int(sizes.max())) >= sizes[:, None]
        self._adam = torch.optim.Adam([self._logits], lr=learning_rate)
        self._update()

    def _update(self) -> None:
        self.probabilities = self._logits.masked_fill(self._beyond, -torch.inf).softmax(dim=1).numpy()
        """(choices, candidates of the widest choice): zero beyond the last candidate of a choice."""
        self._cumulated = self.probabilities.cumsum(axis=1)

    def draw(self, generator: np.random.Generator) -> list[int]:
        """A code for each choice."""
        # The last sum is one up to rounding; what is drawn stays below it.
        points = generator.random(len(self._cumulated)) * self._cumulated[:, -1]
        return [int(code) for code in (self._cumulated <= points[:, None]).sum(axis=1)]

    def step(self, draws: Sequence[Sequence[int]], advantage: float) -> None:
        """One step of Adam up ``advantage`` times the log-probability of ``draws``."""
        self._logits.grad = torch.from_numpy(-advantage * self.score(draws))
        self._adam.step()
        self._update()

    def score(self, draws: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """The gradient of the log-probability of ``draws`` with respect to the logits."""
        gradient = -len(draws) * self.probabilities
        codes = np.array(draws)
        np.add.at(gradient, (np.arange(codes.shape[1]), codes), 1.0)
        return gradient


def _episode(policy: Policy, task: Task, generator: np.random.Generator) -> tuple[Any, list[list[int]]]:
    """An allowed architecture, and all that was drawn until it came."""
    draws: list[list[int]] = []
    while len(draws) < _TRIES:
        draws.append(policy.draw(generator))
        architecture = allowed_of(task, draws[-1])
        if architecture is not None:
            return architecture, draws
    raise Theta0Error(
        f"none of {_TRIES:,} architectures drawn from the policy may be evaluated; raise the limits, or lower the "
        f"learning rate if it was found before"
    )
