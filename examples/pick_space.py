"""A search space of one's own with a supernet: four blocks, each with one of four operations, and an activation.

    theta0 sample examples/pick_space.py:PickNet --data digits

What a supernet needs is the same network once more, with a ``Mixed`` in each place where an architecture has a choice;
NASI, DARTS, GDAS and the others then search the space, and a sampled candidate shares its weights.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from theta0 import Choice, Chosen, Skeleton, Space
from theta0.ops import build
from theta0.supernet import Mixed, Partial

OPERATIONS = ("skip_connect", "nor_conv_3x3", "sep_conv_3x3", "max_pool_3x3")
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU}
WIDTH = 8


def stacked(block: Callable[[str], nn.Module], activation: Callable[[], nn.Module], skeleton: Skeleton) -> nn.Module:
    """Stem, four blocks with an activation behind each, global average, classifier."""
    layers: list[nn.Module] = [nn.Conv2d(skeleton.shape[0], WIDTH, 3, padding=1)]
    for i in range(4):
        layers += [block(f"block {i}"), activation()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, skeleton.classes))


class PickNet(Space[Chosen]):
    """An operation for each block, and one activation for all of them."""

    name = "pick"
    title = "Four blocks with an operation each, and an activation"
    choices = (*(Choice(f"block {i}", OPERATIONS) for i in range(4)), Choice("activation", tuple(ACTIVATIONS)))
    identity = frozenset({"skip_connect"})

    def network(self, architecture: Chosen, skeleton: Skeleton) -> nn.Module:
        """The network of one architecture."""
        chosen = dict(zip(architecture.names, architecture.values, strict=True))
        return stacked(lambda name: build(chosen[name], WIDTH), ACTIVATIONS[chosen["activation"]], skeleton)

    def supernet(self, skeleton: Skeleton, partial: int = 1) -> nn.Module:
        """The network of all of them; PC-DARTS asks for operations on one in ``partial`` channels."""

        def candidate(op: str) -> nn.Module:
            return build(op, WIDTH) if partial == 1 else Partial(build(op, WIDTH // partial), partial)

        return stacked(
            lambda name: Mixed(name, {op: candidate(op) for op in OPERATIONS}),
            lambda: Mixed("activation", {name: make() for name, make in ACTIVATIONS.items()}),
            skeleton,
        )
