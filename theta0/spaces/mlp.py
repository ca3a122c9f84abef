"""The space of Eigen-NAS (Zhu et al., NeurIPS 2022): for each layer an activation, and a skip connection or none.

    relu tanh+ swish

is a network of four layers: three hidden ones with these activations, the second with a skip connection (``+``: the
output of the layer before is added), and the linear output. With 10 layers there are 5^9 2^8 = 500,000,000.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from theta0 import space
from theta0.errors import ParseError, Theta0Error
from theta0.graph import Cell, Edge
from theta0.space import Choice, Space, Supercell, spaces

if TYPE_CHECKING:
    from torch import nn

ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "swish")


class Layers(NamedTuple):
    """The activations of the hidden layers, and for each but the first whether it has a skip connection."""

    activations: tuple[str, ...]
    skips: tuple[bool, ...]


@dataclass(frozen=True)
class Skeleton(space.Skeleton):
    """Width of the hidden layers; the images are those of Fashion-MNIST."""

    shape: tuple[int, int, int] = (1, 28, 28)
    width: int = 1024


@spaces.register("mlp")
class MLPSpace(Space[Layers]):
    """Networks of ``layers`` layers, the linear output included."""

    name = "mlp"
    title = "Eigen-NAS: activation and skip connection for each layer of a fully connected network"
    skeletons = {"paper": Skeleton()}

    def __init__(self, layers: int = 10) -> None:
        if layers < 3:
            raise Theta0Error(f"the Eigen-NAS space begins at 3 layers, not {layers}")
        self.layers = layers
        self.choices = (
            *(Choice(f"activation {layer}", ACTIVATIONS) for layer in range(1, layers)),
            *(Choice(f"skip {layer}", (False, True)) for layer in range(2, layers)),
        )

    def decode(self, codes: Sequence[int]) -> Layers:
        """The architecture of activation numbers and skip bits."""
        hidden = self.layers - 1
        return Layers(tuple(ACTIVATIONS[code] for code in codes[:hidden]), tuple(bool(code) for code in codes[hidden:]))

    def encode(self, architecture: Layers) -> tuple[int, ...]:
        """Activation numbers and skip bits."""
        return (*(ACTIVATIONS.index(name) for name in architecture.activations), *map(int, architecture.skips))

    def format(self, architecture: Layers) -> str:
        """The activations; ``+`` behind those whose layer has a skip connection."""
        marks = ("", *("+" if skip else "" for skip in architecture.skips))
        return " ".join(f"{name}{mark}" for name, mark in zip(architecture.activations, marks, strict=True))

    def parse(self, text: str) -> Layers:
        """The architecture of a line of activations."""
        activations, skips = [], []
        tokens = list(re.finditer(r"\S+", text))
        for i, token in enumerate(tokens):
            name, skip = token.group().removesuffix("+"), token.group().endswith("+")
            if name not in ACTIVATIONS:
                raise ParseError(text, token.start(), f"one of {', '.join(ACTIVATIONS)}")
            if skip and i == 0:
                raise ParseError(text, token.end() - 1, "no skip connection in the first layer")
            activations.append(name)
            skips.append(skip)
        if len(activations) != self.layers - 1:
            raise ParseError(text, len(text), f"{self.layers - 1} activations (there are {len(activations)})")
        return Layers(tuple(activations), tuple(skips[1:]))

    def cells(self, architecture: Layers) -> dict[str, Cell]:
        """The whole network as one graph: activations and skip connections on edges."""
        edges = [Edge(i, i + 1, name) for i, name in enumerate(architecture.activations)]
        edges += [Edge(i, i + 1, "skip_connect") for i, skip in enumerate(architecture.skips, start=1) if skip]
        return {"network": Cell(1, self.layers + 1, (*edges, Edge(self.layers - 1, self.layers)))}

    def supercells(self) -> dict[str, Supercell]:
        """All activations and all skip connections."""
        edges = {(i, i + 1): ACTIVATIONS + (("skip_connect",) if i else ()) for i in range(self.layers - 1)}
        return {"network": Supercell(1, self.layers + 1, {**edges, (self.layers - 1, self.layers): ("",)})}

    def network(self, architecture: Layers, skeleton: Skeleton) -> nn.Module:
        """The fully connected network; images are flattened."""
        from theta0.network.mlp import MLP

        channels, height, width = skeleton.shape
        return MLP(
            architecture.activations, architecture.skips, channels * height * width, skeleton.width, skeleton.classes
        )
