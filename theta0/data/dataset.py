"""A data set as two tensors on one device: every image as bytes, every label as an integer.

Small images fit into memory whole (CIFAR-10 takes 184 MB), so there are no workers and no files while training:
a batch is an index, normalised and augmented where the data lie.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from theta0.data import sampling
from theta0.data.augment import Augmentation
from theta0.data.sampling import Normalization
from theta0.errors import DataError

# Elements that a pass over all pixels works on at once: 8 bytes each while they are counted, so 64 MB at most.
_CHUNK = 2**23


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images (N, C, H, W) uint8 with labels (N,) int64 below ``len(classes)``; ``name`` appears in reports."""

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        images, labels, where = self.images, self.labels, f"data set {self.name!r}"
        if not isinstance(images, Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
            raise DataError(f"{where}: images are a uint8 tensor (N, C, H, W); found {_describe(images)}")
        if not isinstance(labels, Tensor) or labels.dtype != torch.int64 or labels.ndim != 1:
            raise DataError(f"{where}: labels are an int64 tensor (N,); found {_describe(labels)}")
        if images.numel() == 0:
            raise DataError(f"{where}: at least one image of at least one pixel is needed; found {tuple(images.shape)}")
        if len(images) != len(labels):
            raise DataError(f"{where}: one label per image is needed; found {len(images)} images, {len(labels)} labels")
        if images.device != labels.device:
            raise DataError(f"{where}: images are on {images.device}, labels on {labels.device}; put both on one")
        if not isinstance(self.classes, tuple) or not all(isinstance(name, str) for name in self.classes):
            raise DataError(f"{where}: classes are a tuple of names; found {self.classes!r}")
        if len(set(self.classes)) != len(self.classes):
            twice = sorted({name for name in self.classes if self.classes.count(name) > 1})
            raise DataError(f"{where}: class names must differ; found more than once: {', '.join(twice)}")
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= len(self.classes):
            raise DataError(
                f"{where}: labels run from 0 to {len(self.classes) - 1} for {len(self.classes)} classes; "
                f"found {low} to {high}"
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    def to(self, device: torch.device | str) -> ImageDataset:
        """The same data set with both tensors on ``device``."""
        return dataclasses.replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def subset(self, indices: Tensor | Sequence[int]) -> ImageDataset:
        """The images at ``indices`` (K,), in that order; all classes are kept, so labels mean the same."""
        chosen = torch.as_tensor(indices)
        if chosen.ndim != 1 or chosen.numel() == 0 or chosen.dtype == torch.bool or chosen.is_floating_point():
            raise DataError(f"subset takes a list of one or more integers; found {_describe(chosen)}")
        low, high = int(chosen.min()), int(chosen.max())
        if low < 0 or high >= len(self):
            raise DataError(f"subset: indices run from 0 to {len(self) - 1} in {self.name!r}; found {low} to {high}")
        chosen = chosen.long().to(self.images.device)
        return dataclasses.replace(self, images=self.images[chosen], labels=self.labels[chosen])

    def mean_std(self) -> Normalization:
        """Mean and (population) standard deviation of each channel, for pixels in [0, 1].

        Counted from exact histograms, so the result is the same on every device. A constant channel reports 0;
        ``sampling.normalize`` divides it by 1.
        """
        return self._statistics

    @cached_property
    def _statistics(self) -> Normalization:
        channels, height, width = self.shape
        step = max(1, _CHUNK // (channels * height * width))
        counts = torch.zeros(channels, 256, dtype=torch.int64)
        for chunk in torch.split(self.images, step):
            for channel in range(channels):
                counts[channel] += torch.bincount(chunk[:, channel].reshape(-1).long(), minlength=256).cpu()
        value = torch.arange(256, dtype=torch.float64) / 255
        weight = counts.double() / counts.sum(1, keepdim=True)
        mean = weight @ value
        variance = (weight * (value - mean[:, None]).square()).sum(1)
        # A constant channel has one weight of exactly 1, so its mean is exact and its standard deviation exactly 0.
        return tuple(mean.tolist()), tuple(variance.sqrt().tolist())

    def fingerprint(self) -> str:
        """sha256 over shape, pixels, labels and class names; the same on every device, whatever the ``name``."""
        digest = hashlib.sha256(repr((tuple(self.images.shape), "uint8", "int64", self.classes)).encode())
        for chunk in torch.split(self.images, max(1, _CHUNK // self.images[0].numel())):
            digest.update(chunk.cpu().contiguous().numpy().tobytes())
        digest.update(self.labels.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def batches(
        self,
        batch_size: int,
        *,
        seed: int | None = None,
        augmentation: Augmentation | None = None,
        normalization: Normalization | None = None,
        drop_last: bool = False,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """One epoch of (x, y): x (B, C, H, W) float32 normalised, y (B,) int64, on the device of the data.

        ``seed=None`` keeps the order of the data. With a seed, the order and the augmentation come from one CPU
        generator: the same seed gives the same batches; give each epoch its own. ``normalization=None`` takes this
        data set's own ``mean_std``; a test set should get ``Data.normalization`` of its training set.
        """
        sampling.check_size(batch_size, "batch_size")
        if augmentation is not None and seed is None:
            raise DataError("augmentation draws random numbers; give a seed as well, another one for each epoch")
        if drop_last and batch_size > len(self):
            raise DataError(
                f"batch_size {batch_size} is larger than the {len(self)} images of {self.name!r} and drop_last=True "
                f"drops the only batch; use drop_last=False or a smaller batch"
            )
        generator: torch.Generator | None = None
        chosen = torch.arange(len(self))
        if seed is not None:
            chosen, generator = sampling.order(len(self), seed)
        if drop_last:
            chosen = chosen[: len(self) // batch_size * batch_size]
        return self._each(chosen, batch_size, generator, augmentation, normalization or self.mean_std())

    def _each(
        self,
        chosen: Tensor,
        batch_size: int,
        generator: torch.Generator | None,
        augmentation: Augmentation | None,
        normalization: Normalization,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        for indices in torch.split(chosen.to(self.images.device), batch_size):
            x = sampling.normalize(self.images[indices], normalization)
            if augmentation is not None and generator is not None:
                x = augmentation(x, generator)
            yield x, self.labels[indices]

    def batch(
        self, size: int, seed: int, *, balanced: bool = False, normalization: Normalization | None = None
    ) -> tuple[Tensor, Tensor]:
        """One batch for scoring, without replacement: x (size, C, H, W) float32 normalised, y (size,) int64.

        ``balanced`` makes the class counts differ by one at most. ``normalization`` is as in ``batches``.
        """
        chosen = sampling.choose(self.labels.cpu(), size, seed, self.classes, balanced=balanced)
        chosen = chosen.to(self.images.device)
        return sampling.normalize(self.images[chosen], normalization or self.mean_std()), self.labels[chosen]


@dataclass(frozen=True, eq=False)
class Data:
    """A training set and, where there is one, its test set: the same classes in the same order, the same shape."""

    train: ImageDataset
    test: ImageDataset | None = None

    def __post_init__(self) -> None:
        if self.test is None:
            return
        if self.train.classes != self.test.classes:
            raise DataError(
                f"{self.train.name!r} and {self.test.name!r} must have the same classes in the same order; found "
                f"{_short(self.train.classes)} and {_short(self.test.classes)}"
            )
        if self.train.shape != self.test.shape:
            raise DataError(
                f"{self.train.name!r} and {self.test.name!r} must have images of one shape (C, H, W); found "
                f"{self.train.shape} and {self.test.shape}; load(..., size=...) brings images to one size"
            )

    @property
    def normalization(self) -> Normalization:
        """Mean and standard deviation of the training images: what training and test batches are normalised with."""
        return self.train.mean_std()

    def to(self, device: torch.device | str) -> Data:
        """The same data on ``device``."""
        return Data(self.train.to(device), None if self.test is None else self.test.to(device))


def _describe(value: object) -> str:
    return f"{tuple(value.shape)} {value.dtype}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _short(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
