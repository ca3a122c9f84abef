"""Scores of a supernet's mixture at initialization that can be differentiated with respect to its weights.

    mix(model, alphas.mixtures(alphas.gumbel(generator)))
    value = get_score("trace").compute(Pass(model, x, y, seed=0))        # a tensor with a graph back to the logits

NASI takes any of them. One of your own is ``package.module:NAME`` or ``path/to/file.py:NAME``, a :class:`GateScore`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.errors import Theta0Error, nearest
from theta0.registry import imported


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass of a model; labels are None where there are none."""

    model: nn.Module
    x: Tensor
    y: Tensor | None
    seed: int

    @cached_property
    def logits(self) -> Tensor:
        """(N, classes)."""
        logits: Tensor = self.model(self.x)
        return logits

    @cached_property
    def losses(self) -> Tensor:
        """(N,) cross entropy."""
        if self.y is None:
            raise Theta0Error(
                "this score needs the labels of images; give labelled images, or take labels=random, which NASI shows "
                "to do as well"
            )
        return F.cross_entropy(self.logits, self.y, reduction="none")

    def gradient(self, of: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Parameters that take part and the gradient of ``of`` there, with a graph of its own."""
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        found = torch.autograd.grad(of, parameters, create_graph=True, allow_unused=True)
        return [(p, g) for p, g in zip(parameters, found, strict=True) if g is not None]

    def square(self, of: Tensor) -> Tensor:
        """The squared norm of the gradient of ``of``."""
        return torch.stack([g.square().sum() for _, g in self.gradient(of)]).sum()


@dataclass(frozen=True)
class GateScore:
    """A score, and whether it needs labels."""

    compute: Callable[[Pass], Tensor]
    formula: str
    labels: bool = True


def _snip(run: Pass) -> Tensor:
    return torch.stack([(p.detach() * g).abs().sum() for p, g in run.gradient(run.losses.mean())]).sum()


def _samples(run: Pass) -> Tensor:
    return torch.stack([run.square(loss) for loss in run.losses]).sum()


def _projected(run: Pass) -> Tensor:
    signs = torch.randint(2, run.logits.shape, generator=torch.Generator().manual_seed(run.seed)) * 2 - 1
    return run.square((run.logits * signs.to(run.logits)).sum())


def _exact(run: Pass) -> Tensor:
    return torch.stack([run.square(logit) for logit in run.logits.flatten()]).sum()


SCORES = {
    "trace": GateScore(lambda run: run.square(run.losses.mean()), "||g||^2, g of the mean loss (NASI, equation 12)"),
    "samples": GateScore(_samples, "sum_n ||g_n||^2: the first bound of NASI's equation 11, a backward pass a sample"),
    "grad": GateScore(lambda run: run.square(run.losses.mean()).sqrt(), "||g||"),
    "snip": GateScore(_snip, "sum |theta g|"),
    "projected": GateScore(_projected, "||grad of s . f||^2, signs s at random: its mean is the trace", labels=False),
    "exact": GateScore(_exact, "the trace of the NTK: a backward pass for each logit of each sample", labels=False),
}


def get_score(name: str) -> GateScore:
    """The score called ``name``, or one's own at ``module:NAME``."""
    if ":" in name:
        found = imported(name)
        if not isinstance(found, GateScore):
            raise Theta0Error(f"{name!r} is no theta0.gates.GateScore but {found!r}")
        return found
    if name not in SCORES:
        raise Theta0Error(
            f"no score that is differentiable through the gates is called {name!r}; {nearest(name, SCORES)}; one of "
            f"your own is path/to/file.py:NAME, a theta0.gates.GateScore"
        )
    return SCORES[name]
