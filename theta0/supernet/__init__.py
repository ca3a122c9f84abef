"""Networks that hold every architecture of a space at once, with one set of weights for all of them.

    model = supernet(space, channels=8, cells=1, seed=0)
    mix(model, single(space, architecture))            # runs one candidate: what its own network would compute
    alphas = Distribution.uniform(space.form())
    mix(model, alphas.mixtures(alphas.softmax()))      # DARTS's sum of all operations
    network = inherited(model, single(space, architecture))

A mixture tells for each place of a cell which operations run and what their results are multiplied by: a number, or a
tensor that gradients go through. What it does not name does not run. Four ways to mix:

softmax sum           ``alphas.softmax()``: all run, weighted
straight-through      ``alphas.gumbel(...)``: one candidate of each decision runs, its weight is one; gradients reach
                      the logits through the weight's soft counterpart (``relaxed``: that one itself, all run)
uniform single path   ``single(space, space.sample(generator))``
partial channels      ``supernet(space, partial=K)``: one in K channels goes through the operations of any mixture

``cells`` has the cells with operations on edges and the choices of a space of one's own, ``nodes`` the cells with
operations on nodes, ``distribution`` the logits over decisions. See docs/supernets.md.
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from theta0.errors import Theta0Error
from theta0.forms import Mixture, Mixtures, single
from theta0.initialize import seeded
from theta0.space import Skeleton, Space
from theta0.supernet.cells import Mixed, MixedCell, MixedModule, Partial, evenly, inherited, mix
from theta0.supernet.distribution import Distribution

__all__ = [
    "Distribution",
    "Mixed",
    "MixedCell",
    "Mixture",
    "Mixtures",
    "Partial",
    "evenly",
    "inherited",
    "mix",
    "single",
    "supernet",
]


def supernet(
    space: Space[Any], skeleton: Skeleton | str | None = None, *, seed: int, partial: int = 1, **changes: Any
) -> nn.Module:
    """The supernet of a space at its initial parameters.

    ``skeleton`` and ``changes`` are as in ``space.build``; without one it is the space's skeleton ``search``, or its
    first. One in ``partial`` channels goes through the operations.
    """
    if isinstance(partial, bool) or not isinstance(partial, int) or partial < 1:
        raise Theta0Error(f"one in partial channels goes through operations, so partial is 1 or more, not {partial!r}")
    if skeleton is None and "search" in space.skeletons:
        skeleton = "search"
    options: Any = space.options(skeleton, **changes)
    if partial > 1:
        if "partial" not in inspect.signature(space.supernet).parameters:
            raise Theta0Error(f"the supernet of {space.name} knows no partial channels; take partial=1")
        channels = getattr(options, "channels", partial)
        if channels % partial:
            raise Theta0Error(
                f"one in {partial} channels is asked for, and {channels} initial channels do not divide; take "
                f"channels={channels // partial * partial or partial}"
            )
    with seeded(seed):
        model = space.supernet(options) if partial == 1 else space.supernet(options, partial)
    if not any(isinstance(module, MixedModule) for module in model.modules()):
        raise Theta0Error(f"the supernet of {space.name} has nothing to choose: no Mixed is in it")
    return model
