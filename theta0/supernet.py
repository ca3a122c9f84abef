"""Networks that hold every architecture of a space at once, with one set of weights for all of them.

    model = supernet(space, "paper", channels=3, cells=1, seed=0)
    mix(model, evenly({(0, 1): ("skip_connect", "nor_conv_3x3"), (0, 2): ("avg_pool_3x3",), ...}))

A mixture tells for each edge which operations run and what the result of each is multiplied by: a number, or a tensor
that gradients go through. The mean of some operations, a softmax over all, a single one are mixtures alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error, nearest
from theta0.graph import Edge
from theta0.initialize import seeded
from theta0.network.nasbench import nasbench201
from theta0.space import Skeleton, Space, Supercell

Pair = tuple[int, int]
Mixture = Mapping[Pair, Mapping[str, float | Tensor]]
"""The weights of operations by name, for each edge; what is not named does not run."""


def evenly(active: Mapping[Pair, Iterable[str]]) -> Mixture:
    """The mean of the active operations of each edge."""
    return {pair: {name: 1 / len(list(names)) for name in names} for pair, names in active.items()}


class MixedCell(nn.Module):
    """Runs the operations of a mixture: an edge gives their weighted sum, and a node is the sum of its edges.

    Before :func:`mix` has set one, all operations run with weight one.
    """

    def __init__(self, supercell: Supercell, make: Callable[[Edge], nn.Module]) -> None:
        super().__init__()
        if supercell.inputs != 1 or supercell.ops:
            raise Theta0Error(
                f"a mixed cell has one input and operations on its edges; this one has {supercell.inputs} "
                f"and operations on {len(supercell.ops)} nodes"
            )
        self.nodes = supercell.nodes
        self.operations = nn.ModuleDict(
            {_key(pair, name): make(Edge(*pair, name)) for pair, names in supercell.edges.items() for name in names}
        )
        self.mixture: Mixture = {pair: dict.fromkeys(names, 1.0) for pair, names in supercell.edges.items()}

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        values = [x]
        for node in range(1, self.nodes):
            total: Tensor | None = None
            for source in range(node):
                for name, weight in self.mixture.get((source, node), {}).items():
                    term = self.operations[_key((source, node), name)](values[source]) * weight
                    total = term if total is None else total + term
            values.append(torch.zeros_like(x) if total is None else total)
        return values[-1]


def _key(pair: Pair, name: str) -> str:
    return f"{pair[0]}->{pair[1]} {name}"


def mix(model: nn.Module, mixture: Mixture) -> None:
    """Sets the mixture of every mixed cell of ``model``."""
    for module in model.modules():
        if isinstance(module, MixedCell):
            for key in (_key(pair, name) for pair, names in mixture.items() for name in names):
                if key not in module.operations:
                    raise Theta0Error(f"the supernet has no operation {key!r}; {nearest(key, module.operations)}")
            module.mixture = mixture


def supernet(space: Space[Any], skeleton: Skeleton | str | None = None, *, seed: int, **changes: Any) -> nn.Module:
    """The supernet of a space of cells like NAS-Bench-201's, in the macro skeleton of that benchmark."""
    supercells = space.supercells()
    if len(supercells) != 1:
        raise Theta0Error(f"a supernet is made of one cell; {space.name} has {', '.join(supercells)}")
    (supercell,) = supercells.values()
    options: Any = space.options(skeleton, **changes)
    missing = [name for name in ("channels", "cells", "affine", "track") if not hasattr(options, name)]
    if missing:
        raise Theta0Error(f"the skeleton of {space.name} has no {', '.join(missing)}, which a supernet is built by")
    norm = ops.batch_norm(affine=options.affine, track=options.track)

    def make_cell(channels: int) -> nn.Module:
        return MixedCell(supercell, lambda edge: ops.build(edge.op, channels, norm=norm))

    with seeded(seed):
        return nasbench201(make_cell, options.shape[0], options.classes, options.channels, options.cells, norm)
