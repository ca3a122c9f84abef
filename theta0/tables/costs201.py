"""The published costs of NAS-Bench-201 cells, from the number of operations of each kind.

A cell's parameters are linear in its operations: each of its 15 copies (5 at each of 16, 32 and 64 channels) has C x C
weights for a 1x1 convolution, 9 times as many for a 3x3 one, and 2 C for the normalisation behind either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CLASSES = {"cifar10": 10, "cifar100": 100, "imagenet16": 120}
"""The data sets by the names that tables use here, and their classes."""
SIDES = {"cifar10": 32, "cifar100": 32, "imagenet16": 16}
_CHANNELS, _CELLS = (16, 32, 64), 5
_SKELETON = 73_306 - 65 * 10
"""Parameters of the network whose cells have no convolution, without the classifier."""


def counts(cells: Sequence[str], op: str) -> NDArray[np.int64]:
    """How often each cell has an operation."""
    return np.array([cell.count(f"{op}~") for cell in cells], dtype=np.int64)


def parameters(cells: Sequence[str], dataset: str) -> NDArray[np.float64]:
    """Trainable parameters of each cell's network."""
    squares, channels = sum(c * c for c in _CHANNELS), sum(_CHANNELS)
    small, large = counts(cells, "nor_conv_1x1"), counts(cells, "nor_conv_3x3")
    inside = _CELLS * (squares * (small + 9 * large) + 2 * channels * (small + large))
    return (_SKELETON + 65 * CLASSES[dataset] + inside).astype(np.float64)


def naslib_surplus(cells: Sequence[str], dataset: str) -> NDArray[np.int64]:
    """What NASLib's FLOPs count for normalisation and pools inside the cells, and multiply-adds do not."""
    values = _CELLS * sum(c * (SIDES[dataset] * 16 // c) ** 2 for c in _CHANNELS)
    convolutions = counts(cells, "nor_conv_1x1") + counts(cells, "nor_conv_3x3")
    return values * (3 * convolutions + 9 * counts(cells, "avg_pool_3x3"))


NASLIB_CONSTANT = {"cifar10": 160_832, "cifar100": 160_832, "imagenet16": 40_512}
"""What NASLib's FLOPs count in the rest of the network; found by comparison, the same for all cells."""
