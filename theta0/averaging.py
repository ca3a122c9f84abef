"""An exponential moving average of a network's weights, as a network of its own."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class Average:
    """``average <- average + (1 - d) (weights - average)`` after each step; running statistics are averaged likewise.

    d grows to ``decay`` as (1 + n) / (10 + n) after n steps, so that the start is soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self.model = copy.deepcopy(model).requires_grad_(False)
        pairs = list(zip(_tensors(self.model), _tensors(model), strict=True))
        self._floats = [(ours, theirs) for ours, theirs in pairs if ours.is_floating_point()]
        self._others = [(ours, theirs) for ours, theirs in pairs if not ours.is_floating_point()]

    def update(self) -> None:
        """Takes in the weights after another step."""
        self.steps += 1
        weight = 1 - min(self.decay, (1 + self.steps) / (10 + self.steps))
        with torch.no_grad():
            torch._foreach_lerp_([ours for ours, _ in self._floats], [theirs for _, theirs in self._floats], weight)
            for ours, theirs in self._others:
                ours.copy_(theirs)


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]
