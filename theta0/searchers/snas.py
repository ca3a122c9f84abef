"""SNAS (Xie et al., ICLR 2019): concrete draws, and one loss that trains both weights and logits.

All candidates run, weighted by the softmax of logits and Gumbel noise, which grows sharp as the temperature falls from
1 to 0.03. There is no second half of the images: one batch, one gradient, both steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from theta0.oneshot import Method, Run, searcher
from theta0.oneshot.method import Batch, check_temperatures
from theta0.searchers import searchers


@dataclass(frozen=True)
class SNAS(Method):
    """``hot`` and ``cold`` are the first and the last temperature; it falls geometrically over steps."""

    search_epochs: int = 150
    alpha_rate: float = 3e-4
    hot: float = 1.0
    cold: float = 0.03

    joint: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_temperatures(self.hot, self.cold)

    def step(self, run: Run, train: Batch, validation: Batch, generator: np.random.Generator) -> Tensor:
        """One loss for both."""
        temperature = self.hot * (self.cold / self.hot) ** run.progress
        loss = run.loss(run.alphas.mixtures(run.alphas.relaxed(generator, temperature)), train)
        logits = run.alphas.parameters()
        found = torch.autograd.grad(loss, [*logits, *run.weights], allow_unused=True)
        run.step_logits([torch.zeros_like(p) if g is None else g for p, g in zip(logits, found, strict=False)])
        run.step_weights(found[len(logits) :])
        return loss.detach()


snas: Any = searchers.register("snas")(searcher(SNAS))
