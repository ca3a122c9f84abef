"""Small data sets and networks, for the tests of training."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from theta0.data import ImageDataset, load
from theta0.recipe import Recipe
from theta0.space import get_space
from theta0.train import Record

QUICK = Recipe(epochs=2, batch=32, learning_rate=0.1, nesterov=True, weight_decay=5e-4, clip=5.0)


@cache
def digits() -> tuple[ImageDataset, ImageDataset]:
    """150 digits to train on, 100 to validate."""
    data = load()
    assert data.test is not None
    return data.train.subset(range(150)), data.test.subset(range(100))


@cache
def pictures() -> tuple[ImageDataset, ImageDataset]:
    """Noise with labels, large enough for an auxiliary tower."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (18, 3, 32, 32), generator=generator, dtype=torch.uint8)
    whole = ImageDataset(images, torch.arange(18) % 3, ("a", "b", "c"), "noise")
    return whole.subset(range(12)), whole.subset(range(12, 18))


def cell(seed: int = 0) -> nn.Module:
    """A NAS-Bench-201 network for the digits."""
    space = get_space("nasbench201")
    text = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
    return space.build(space.parse(text), seed=seed, shape=(1, 8, 8), channels=4, cells=1)


def darts(seed: int = 0, **options: object) -> nn.Module:
    """A network with drop-path and auxiliary tower for the pictures."""
    space = get_space("darts")
    settings = {"channels": 2, "layers": 3, "classes": 3, "auxiliary": True, **options}
    return space.build(space.parse("DARTS_V2"), seed=seed, **settings)


def plain(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    """For the digits, without batch normalisation."""
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Dropout(dropout), nn.Linear(384, 10)]
    return nn.Sequential(*layers)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all that a network keeps."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def untimed(history: list[Record]) -> list[Record]:
    """Records without what a clock says."""
    return [record._replace(images_per_second=0.0) for record in history]
