"""The data set that is always there: scikit-learn's 1,797 handwritten digits, 8 x 8, grey.

It comes inside scikit-learn, so the first search needs no file and no network. Source: E. Alpaydin and C. Kaynak,
"Optical Recognition of Handwritten Digits", UCI repository, 1998.
"""

from __future__ import annotations

import dataclasses

import torch

from theta0.data.dataset import Data, ImageDataset
from theta0.data.splitting import split
from theta0.errors import DataError

# Part of the definition of the data set: another seed is another test set, and its scores do not compare.
SEED = 0


def digits() -> Data:
    """Train and test set (N, 1, 8, 8), four fifths and one fifth of every class, always the same images.

    The values 0..16 are scaled to 0..255 and rounded (halves up).
    """
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise DataError(
            "the data set 'digits' comes with scikit-learn, which is not installed; pip install scikit-learn, "
            "or load a folder or file of your own"
        ) from error
    bunch = load_digits()
    grey = torch.from_numpy(bunch.images).long()
    images = torch.div(grey * 255 + 8, 16, rounding_mode="floor").to(torch.uint8)[:, None]
    whole = ImageDataset(images, torch.from_numpy(bunch.target).long(), tuple("0123456789"), "digits")
    train, test = split(whole, (0.8, 0.2), seed=SEED)
    return Data(dataclasses.replace(train, name="digits/train"), dataclasses.replace(test, name="digits/test"))
