"""Which images make up a batch, and how their pixels become normalised floats.

All draws come from a CPU generator that is seeded here. They are a few integers per image, so this costs nothing, and
the same seed gives the same batches on the CPU and on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from theta0.errors import DataError

Normalization = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation of each channel, for pixels in [0, 1]."""


def seeded(seed: int) -> torch.Generator:
    """A CPU generator; ``seed`` is checked, as torch takes a float or a bool without a word."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise DataError(f"a seed is an integer from 0 to 2**63 - 1; found {seed!r}")
    return torch.Generator().manual_seed(seed)


def check_size(size: int, what: str) -> None:
    """A batch has at least one image."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise DataError(f"{what} is an integer of 1 or more; found {size!r}")


def normalize(images: Tensor, normalization: Normalization) -> Tensor:
    """(N, C, H, W) uint8 to float32 with mean 0 and standard deviation 1 per channel.

    A constant channel has standard deviation 0. It is divided by 1 instead: it carries no information, and becomes
    zeros where the images are those that the mean was taken from.
    """
    shift, scale = shift_scale(normalization, images.shape[1])
    return images.float().sub_(shift.to(images.device)).mul_(scale.to(images.device))


def shift_scale(normalization: Normalization, channels: int) -> tuple[Tensor, Tensor]:
    """What :func:`normalize` subtracts from bytes, and then multiplies with; each (C, 1, 1)."""
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in normalization)
    if len(mean) != channels or len(std) != channels:
        raise DataError(
            f"normalization has {len(mean)} means and {len(std)} standard deviations for images of "
            f"{channels} channels; take it from the same data: Data.normalization"
        )
    if not bool(torch.isfinite(mean).all() and torch.isfinite(std).all() and (std >= 0).all()):
        raise DataError(f"normalization takes finite means and standard deviations of 0 or more; found {normalization}")
    std = torch.where(std == 0, torch.ones_like(std), std)
    return (255 * mean).float()[:, None, None], (1 / (255 * std)).float()[:, None, None]


def order(count: int, seed: int) -> tuple[Tensor, torch.Generator]:
    """A permutation (count,) and the generator behind it, which augmentation goes on drawing from."""
    generator = seeded(seed)
    return torch.randperm(count, generator=generator), generator


def choose(labels: Tensor, size: int, seed: int, classes: Sequence[str], *, balanced: bool) -> Tensor:
    """(size,) indices without replacement; ``balanced`` makes the class counts differ by one at most.

    Balanced, every class must be able to give its larger share, ceil(size / classes): which classes give one more is
    random, and a batch that exists for one seed should exist for all.
    """
    check_size(size, "the size of a batch")
    total = len(labels)
    if size > total:
        raise DataError(f"a batch of {size} images is larger than the data set of {total}; ask for {total} at most")
    permutation, generator = order(total, seed)
    if not balanced:
        return permutation[:size]
    kinds = len(classes)
    counts = torch.bincount(labels, minlength=kinds)
    share, rest = divmod(size, kinds)
    largest = share + (rest > 0)
    poorest = int(counts.argmin())
    if int(counts[poorest]) < largest:
        raise DataError(
            f"a balanced batch of {size} takes {largest} images of each of {kinds} classes, but class "
            f"{classes[poorest]!r} has {int(counts[poorest])}; ask for {int(counts[poorest]) * kinds} images at most, "
            f"or balanced=False"
        )
    quota = torch.full((kinds,), share)
    quota[torch.randperm(kinds, generator=generator)[:rest]] += 1
    # Rank of each image among those of its class, in the order of the permutation.
    shuffled = labels[permutation]
    by_class = torch.argsort(shuffled, stable=True)
    rank = torch.empty_like(by_class)
    rank[by_class] = torch.arange(total) - (counts.cumsum(0) - counts)[shuffled[by_class]]
    return permutation[rank < quota[shuffled]]
