"""Small data sets that the tests make themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from theta0.data import ImageDataset


@pytest.fixture(scope="session")
def random_dataset() -> Callable[..., ImageDataset]:
    """A function: ``counts[k]`` random images of class k, in mixed order."""

    def make(counts: list[int], shape: tuple[int, int, int] = (3, 5, 4), seed: int = 0) -> ImageDataset:
        generator = torch.Generator().manual_seed(seed)
        labels = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
        labels = labels[torch.randperm(len(labels), generator=generator)]
        images = torch.randint(256, (len(labels), *shape), generator=generator, dtype=torch.uint8)
        return ImageDataset(images, labels, tuple(f"class{label}" for label in range(len(counts))), "random")

    return make
