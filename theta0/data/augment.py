"""Crop, flip and cutout of a whole batch at once, on the device of the images.

Every image draws its own offsets. The draws are a few integers per image and come from the caller's generator, so
they never touch the global seed; a CPU generator gives the same augmentation on every device.

The images are normalised before they come here. Zero is then the mean of the training data, so the border that a crop
brings in and the square that cutout takes away carry no signal.

Cutout follows T. DeVries and G. Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout",
arXiv:1708.04552: the centre is uniform over all pixels and the square may leave the image.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from theta0.errors import DataError


@dataclass(frozen=True)
class Augmentation:
    """Random crop after zero padding by ``crop`` pixels, random horizontal flip, cutout of a square of side ``cutout``.

    Zero (or False) switches a part off. The parts apply in this order.
    """

    crop: int = 4
    flip: bool = True
    cutout: int = 0

    def __post_init__(self) -> None:
        for name in ("crop", "cutout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise DataError(f"Augmentation({name}=...) is a number of pixels, 0 or more; found {value!r}")

    @classmethod
    def standard(cls, shape: tuple[int, int, int]) -> Augmentation:
        """The usual choice for images of ``shape`` (C, H, W).

        Padding is an eighth of the shorter side: 4 pixels for 32 x 32, as in the ResNet and DARTS recipes. Colour
        images are photographs and are flipped. Grey ones are often digits or letters, which a flip turns into
        something else; those only get the crop.
        """
        channels, height, width = shape
        return cls(crop=min(height, width) // 8, flip=channels == 3, cutout=0)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Augments (N, C, H, W) normalised floats; returns a new tensor of the same shape, dtype and device."""
        if images.ndim != 4 or not images.is_floating_point():
            raise DataError(
                f"augmentation takes normalised float images (N, C, H, W); found {tuple(images.shape)} {images.dtype}; "
                f"ImageDataset.batches(..., augmentation=...) does both steps"
            )
        count, _, height, width = images.shape
        if self.crop or self.flip:
            images = self._move(images, generator)
        if self.cutout:
            centres = torch.stack([_draw(height, count, generator), _draw(width, count, generator)])
            images = erase(images, centres.to(images.device), self.cutout)
        return images

    def _move(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Crop and flip: one gather from the padded images serves both."""
        count, channels, height, width = images.shape
        device = images.device
        rows = torch.arange(height, device=device).expand(count, height)
        columns = torch.arange(width, device=device).expand(count, width)
        if self.flip:
            flipped = _draw(2, count, generator).to(device).bool()
            columns = torch.where(flipped[:, None], columns.flip(1), columns)
        if self.crop:
            images = torch.nn.functional.pad(images, (self.crop,) * 4)
            rows = rows + _draw(2 * self.crop + 1, count, generator).to(device)[:, None]
            columns = columns + _draw(2 * self.crop + 1, count, generator).to(device)[:, None]
        sample = torch.arange(count, device=device)[:, None, None, None]
        channel = torch.arange(channels, device=device)[None, :, None, None]
        return images[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]


def erase(images: Tensor, centres: Tensor, side: int) -> Tensor:
    """Zeroes one square per image, clipped at the border.

    ``images`` (N, C, H, W), ``centres`` (2, N) rows and columns. The square covers ``side`` pixels from
    ``centre - side // 2`` on, so an even side has its centre just right of the middle.
    """
    top_left = centres - side // 2
    row = torch.arange(images.shape[2], device=images.device)
    column = torch.arange(images.shape[3], device=images.device)
    in_rows = (row >= top_left[0][:, None]) & (row < top_left[0][:, None] + side)
    in_columns = (column >= top_left[1][:, None]) & (column < top_left[1][:, None] + side)
    return images.masked_fill((in_rows[:, :, None] & in_columns[:, None, :])[:, None], 0.0)


def _draw(high: int, count: int, generator: torch.Generator) -> Tensor:
    """(count,) integers in 0 .. high-1, on the generator's device."""
    return torch.randint(high, (count,), generator=generator, device=generator.device)
