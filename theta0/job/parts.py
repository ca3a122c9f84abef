"""The images of a search in disjoint parts: to train on, to choose by, and to test with, once, at the end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from theta0.data import Data, ImageDataset, load, split
from theta0.errors import DataError
from theta0.seeding import derived

Source = str | os.PathLike[str] | tuple[Any, ...]
"""What :func:`theta0.load` takes."""

_HELD_OUT = 0.2
"""The share of images that is held out: for the test where the data have no part for it, and for validation."""


@dataclass(frozen=True, eq=False)
class Parts:
    """``whole`` is what may be trained on in the end; the search trains on ``train`` and chooses by ``validation``."""

    ARRAYS: ClassVar[str] = "arrays"

    name: str
    """The source: a known name, an absolute path, or :attr:`ARRAYS`."""
    given: Data
    whole: ImageDataset
    train: ImageDataset
    validation: ImageDataset
    test: ImageDataset

    @classmethod
    def load(cls, source: Source, *, size: int | None, seed: int) -> Parts:
        """Loads and splits; the same seed gives the same parts."""
        data = load(cast(Any, source), size=size)
        if int((data.train.labels.bincount() > 0).sum()) < 2:
            raise DataError(
                f"a network that tells classes apart needs images of two classes or more; {data.train.name} has "
                f"only {data.train.classes[int(data.train.labels[0])]!r}"
            )
        rest, test = data.train, data.test
        if test is None:
            rest, test = split(rest, (1 - _HELD_OUT, _HELD_OUT), seed=derived(seed, "test"))
        train, validation = split(rest, (1 - _HELD_OUT, _HELD_OUT), seed=derived(seed, "validation"))
        return cls(_name(source), data, rest, train, validation, test)

    @cached_property
    def fingerprint(self) -> str:
        """Of everything that was given."""
        test = "" if self.given.test is None else self.given.test.fingerprint()
        return self.given.train.fingerprint() + test


def _name(source: Source) -> str:
    """The source by a name that means the same from every folder."""
    if isinstance(source, tuple):
        return Parts.ARRAYS
    path = Path(source).expanduser()
    return str(path.absolute()) if path.exists() and not _known(source) else str(source)


def _known(source: str | os.PathLike[str]) -> bool:
    from theta0.data import names

    return isinstance(source, str) and source in names()


def share(dataset: ImageDataset, images: int, seed: int) -> ImageDataset:
    """About so many images with the shares of the classes; all of them if there are not more."""
    if images >= len(dataset):
        return dataset
    fraction = images / len(dataset)
    return split(dataset, (fraction, 1 - fraction), seed=seed)[0]
