"""Networks that look as if they had been trained, with their cards, for the tests of files and exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from theta0.model import Card
from theta0.space import get_space

CELL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
FACTS = {
    "test": {"images": 360, "accuracy": 97.5, "nll": 0.0934, "ece": 1.12},
    "data": "digits",
    "recipe": {"batch": 32, "epochs": 2},
    "seed": 3,
}


def used(module: nn.Module, shape: tuple[int, int, int], seed: int = 0) -> nn.Module:
    """With statistics and factors of normalisation that are not those of the first moment."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if name.endswith("running_var"):
                value.copy_(0.5 + torch.rand(value.shape, generator=generator))
            elif name.endswith("running_mean"):
                value.copy_(0.1 * torch.randn(value.shape, generator=generator))
            elif value.ndim == 1 and value.is_floating_point():
                value.add_(0.1 * torch.randn(value.shape, generator=generator))
    return module.eval()


def made(space: str, architecture: str, **skeleton: Any) -> tuple[nn.Module, Card]:
    """A network and its card."""
    found = get_space(space)
    options = found.options(None, **skeleton)
    module = used(found.build(found.parse(architecture), options, seed=1), options.shape)
    channels = options.shape[0]
    normalization = tuple(0.3 + 0.1 * c for c in range(channels)), tuple(0.2 + 0.05 * c for c in range(channels))
    names = tuple(f"kind {number}" for number in range(options.classes))
    return module, Card(space, architecture, asdict(options), names, options.shape, normalization, FACTS)


def digits() -> tuple[nn.Module, Card]:
    """For grey images of 8 x 8."""
    return made("nasbench201", CELL, shape=(1, 8, 8), channels=4, cells=1)


def colours() -> tuple[nn.Module, Card]:
    """For colour images that are not square."""
    return made("nasbench201", CELL, shape=(3, 8, 12), channels=4, cells=1, classes=4)


def towered() -> tuple[nn.Module, Card]:
    """With an auxiliary classifier and drop-path."""
    return made("darts", "DARTS_V2", channels=4, layers=3, classes=5, auxiliary=True)


def images(card: Card, count: int = 7, seed: int = 0) -> Tensor:
    """(N, C, H, W) uint8."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count, *card.shape), generator=generator, dtype=torch.uint8)


def probabilities(module: nn.Module, card: Card, x: Tensor) -> Tensor:
    """(N, classes) float64, in a way of its own."""
    mean, std = (torch.tensor(values, dtype=torch.float64)[:, None, None] for values in card.normalization)
    module.eval()
    with torch.no_grad():
        return module(((x.double() / 255 - mean) / std).float()).double().softmax(dim=1)
