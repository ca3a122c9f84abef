"""A search space of one's own: plain residual networks of some depth, width and kernel size.

    theta0 sample examples/plain_space.py:PlainResNet --data digits
    theta0 describe examples/plain_space.py:PlainResNet "depth=2, width=16, kernel=3"

Three things make a space: a name, the choices, and the network. Sampling, mutation, neighbours, notation, parameters
and multiply-adds follow from them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from theta0 import Choice, Chosen, Skeleton, Space


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(),
            nn.Conv2d(c_out, c_out, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(c_out),
        )
        same = stride == 1 and c_in == c_out
        self.shortcut = nn.Identity() if same else nn.Conv2d(c_in, c_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) to (N, C_out, H / stride, W / stride)."""
        return torch.relu(self.path(x) + self.shortcut(x))


class PlainResNet(Space[Chosen]):
    """Two stages of ``depth`` blocks; the second one has twice the channels and half the resolution."""

    name = "plain"
    title = "Plain residual networks: depth, width and kernel size"
    choices = (
        Choice("depth", (1, 2, 3)),
        Choice("width", (8, 16, 32)),
        Choice("kernel", (3, 5, 7)),
    )

    def network(self, architecture: Chosen, skeleton: Skeleton) -> nn.Module:
        """Stem, blocks, global average, classifier."""
        width = architecture.width
        layers: list[nn.Module] = [nn.Conv2d(skeleton.shape[0], width, 3, padding=1)]
        for i in range(2 * architecture.depth):
            first, second = i == architecture.depth, i >= architecture.depth
            c_out = 2 * width if second else width
            layers.append(Block(width if i <= architecture.depth else c_out, c_out, architecture.kernel, 1 + first))
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, skeleton.classes))
