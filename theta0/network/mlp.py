"""The fully connected network of the Eigen-NAS space: an activation and perhaps a skip connection for each layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from theta0.ops import ACTIVATIONS


class MLP(nn.Module):
    """f_1 = s_1(W_1 x); f_l = s_l(W_l f_{l-1}) + a_{l-1} f_{l-1}; logits = W_L f_{L-1} (Eigen-NAS, equation 1).

    No biases; all weights are drawn from N(0, 1 / width), whatever the size of their input.
    """

    def __init__(
        self, activations: Sequence[str], skips: Sequence[bool], inputs: int, width: int, classes: int
    ) -> None:
        super().__init__()
        sizes = [inputs] + [width] * len(activations)
        self.layers = nn.ModuleList(nn.Linear(size, width, bias=False) for size in sizes[:-1])
        self.activations = nn.ModuleList(ACTIVATIONS[name]() for name in activations)
        self.skips = (False, *skips)
        self.head = nn.Linear(width, classes, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        for layer in (*self.layers, self.head):
            nn.init.normal_(layer.weight, std=1 / math.sqrt(self.head.in_features))

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W), or vectors (N, D), to logits (N, classes)."""
        x = torch.flatten(x, 1)
        for layer, activation, skip in zip(self.layers, self.activations, self.skips, strict=True):
            value = activation(layer(x))
            x = value + x if skip else value
        logits: Tensor = self.head(x)
        return logits
