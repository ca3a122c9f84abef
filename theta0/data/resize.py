"""One size for all images: the shorter side is scaled, the longer one loses its ends."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from theta0.data.dataset import ImageDataset
from theta0.errors import DataError

# Pixels that are floats at once while scaling: 64 MB.
_CHUNK = 2**24


def fit(images: Tensor, size: int) -> Tensor:
    """(N, C, H, W) uint8 to (N, C, size, size) uint8: bilinear with antialiasing, then the central square.

    Images that already have this size come back as they are, byte for byte.
    """
    check_size(size)
    count, channels, height, width = images.shape
    if (height, width) == (size, size):
        return images
    short = min(height, width)
    scaled = max(size, round(height * size / short)), max(size, round(width * size / short))
    top, left = (scaled[0] - size) // 2, (scaled[1] - size) // 2
    fitted = torch.empty(count, channels, size, size, dtype=torch.uint8, device=images.device)
    step = max(1, _CHUNK // (channels * max(height * width, scaled[0] * scaled[1])))
    for start in range(0, count, step):
        chunk = images[start : start + step].float()
        if scaled != (height, width):
            chunk = interpolate(chunk, size=scaled, mode="bilinear", antialias=True, align_corners=False)
        chunk = chunk[:, :, top : top + size, left : left + size]
        fitted[start : start + step] = chunk.round().clamp(0, 255).to(torch.uint8)
    return fitted


def resized(dataset: ImageDataset, size: int | None) -> ImageDataset:
    """``dataset`` with images of ``size`` x ``size``; None leaves it alone."""
    return dataset if size is None else dataclasses.replace(dataset, images=fit(dataset.images, size))


def check_size(size: int) -> None:
    """A side is a whole number of pixels."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise DataError(f"size is the side of the square images in pixels, an integer of 1 or more; found {size!r}")
