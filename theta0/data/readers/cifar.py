"""CIFAR-10 and CIFAR-100 as published: the binary layout and the python (pickle) layout, fine labels.

https://www.cs.toronto.edu/~kriz/cifar.html. A binary record is one label byte (CIFAR-100: coarse, then fine) and 3,072
pixel bytes, channel by channel, row by row. The record counts are part of the format, so a file that was cut short is
found even where it ends between two records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from theta0.data import unpickle
from theta0.data.dataset import ImageDataset
from theta0.data.readers import Part, Reader, readers
from theta0.data.resize import resized
from theta0.errors import DataError

Bytes = npt.NDArray[np.uint8]
SHAPE = (3, 32, 32)
PIXELS = 3072


@dataclass(frozen=True)
class _Layout:
    """Where one of the four variants keeps what; ``label`` is the offset in a record or the key in a pickle."""

    name: str
    files: dict[Part, tuple[str, ...]]
    records: dict[Part, int]  # in each file
    names_file: str
    classes: int
    header: int
    label: int | str
    names_key: str = ""

    def present(self, path: Path) -> list[str]:
        return [file for files in self.files.values() for file in files if (path / file).is_file()]


_TEN: dict[Part, int] = {"train": 10_000, "test": 10_000}
_HUNDRED: dict[Part, int] = {"train": 50_000, "test": 10_000}
_FIVE = tuple(f"data_batch_{number}" for number in range(1, 6))
_BINARY = (
    _Layout(
        "cifar10",
        {"train": tuple(f"{name}.bin" for name in _FIVE), "test": ("test_batch.bin",)},
        _TEN,
        "batches.meta.txt",
        classes=10,
        header=1,
        label=0,
    ),
    _Layout(
        "cifar100",
        {"train": ("train.bin",), "test": ("test.bin",)},
        _HUNDRED,
        "fine_label_names.txt",
        classes=100,
        header=2,
        label=1,
    ),
)
_PYTHON = (
    _Layout("cifar10", {"train": _FIVE, "test": ("test_batch",)}, _TEN, "batches.meta", 10, 0, "labels", "label_names"),
    _Layout(
        "cifar100",
        {"train": ("train",), "test": ("test",)},
        _HUNDRED,
        "meta",
        100,
        0,
        "fine_labels",
        "fine_label_names",
    ),
)


@readers.register("cifar_binary")
class CifarBinary(Reader):
    """``cifar-10-batches-bin`` and ``cifar-100-binary``."""

    wants = "data_batch_1.bin .. data_batch_5.bin and test_batch.bin, or train.bin and test.bin (CIFAR, binary)"

    def matches(self, path: Path) -> bool:
        """Whether any of the files is there."""
        return any(layout.present(path) for layout in _BINARY)

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, 3, 32, 32); an error where a file of it is missing."""
        return _read(path, part, size, _BINARY, _records)


@readers.register("cifar_python")
class CifarPython(Reader):
    """``cifar-10-batches-py`` and ``cifar-100-python``; the pickles are read without running them."""

    wants = "data_batch_1 .. data_batch_5 and test_batch, or train, test and meta as files (CIFAR, python)"

    def matches(self, path: Path) -> bool:
        """Whether any of the files is there."""
        return any(layout.present(path) for layout in _PYTHON)

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, 3, 32, 32); an error where a file of it is missing."""
        return _read(path, part, size, _PYTHON, _pickled)


def _which(path: Path, layouts: tuple[_Layout, ...]) -> _Layout | None:
    found = [layout for layout in layouts if layout.present(path)]
    return found[0] if len(found) == 1 else None


def _read(
    path: Path,
    part: Part,
    size: int | None,
    layouts: tuple[_Layout, ...],
    read_file: Callable[[Path, _Layout, int], tuple[Bytes, Bytes]],
) -> ImageDataset:
    layout = _which(path, layouts)
    if layout is None:
        raise DataError(f"{path}: expected the files of either CIFAR-10 or CIFAR-100, found both; move one away")
    missing = [file for file in layout.files[part] if not (path / file).is_file()]
    if missing:
        other: Part = "test" if part == "train" else "train"
        complete = all((path / file).is_file() for file in layout.files[other])
        raise DataError(
            f"{path}: the {part} part of {layout.name} is missing {', '.join(missing)} (found: "
            f"{', '.join(layout.present(path))}); download it with theta0.data.get({layout.name!r})"
            + (f", or load the {other} part alone with part={other!r}" if complete else "")
        )
    classes = _class_names(path / layout.names_file, layout)
    pieces = [read_file(path / file, layout, layout.records[part]) for file in layout.files[part]]
    for file, (found, _) in zip(layout.files[part], pieces, strict=True):
        if int(found.max()) >= layout.classes:
            record = int(found.argmax())
            raise DataError(
                f"{path / file}: expected labels 0 to {layout.classes - 1}, found {int(found[record])} in record "
                f"{record}; this is not a file of {layout.name}"
            )
    images = torch.from_numpy(np.concatenate([pixels for _, pixels in pieces]).reshape(-1, *SHAPE))
    labels = torch.from_numpy(np.concatenate([numbers for numbers, _ in pieces]).astype(np.int64))
    return resized(ImageDataset(images, labels, classes, f"{layout.name}/{part}"), size)


def _records(file: Path, layout: _Layout, records: int) -> tuple[Bytes, Bytes]:
    expected, found = records * (layout.header + PIXELS), file.stat().st_size
    if found != expected:
        raise DataError(
            f"{file}: expected {expected} bytes ({records} records of {layout.header + PIXELS}), found {found}; the "
            f"file is cut short or another one; download it again with theta0.data.get({layout.name!r})"
        )
    table = np.fromfile(file, dtype=np.uint8).reshape(records, -1)
    assert isinstance(layout.label, int)
    return table[:, layout.label], table[:, layout.header :]


def _pickled(file: Path, layout: _Layout, records: int) -> tuple[Bytes, Bytes]:
    content = unpickle.read(file)
    pixels, labels = content.get("data"), content.get(str(layout.label))
    if not isinstance(pixels, np.ndarray) or pixels.shape != (records, PIXELS):
        found = getattr(pixels, "shape", f"a {type(pixels).__name__}")
        raise DataError(
            f"{file}: expected 'data' of shape {(records, PIXELS)}, found {found}; this is not a file of {layout.name}"
        )
    if not _is_labels(labels, records):
        found = f"{len(labels)} entries" if isinstance(labels, list) else f"keys {', '.join(sorted(content))}"
        raise DataError(f"{file}: expected {layout.label!r}, {records} integers from 0 to 255; found {found}")
    return np.array(labels, dtype=np.uint8), pixels


def _is_labels(labels: Any, records: int) -> bool:
    return (
        isinstance(labels, list)
        and len(labels) == records
        and all(isinstance(label, int) and 0 <= label <= 255 for label in labels)
    )


def _class_names(file: Path, layout: _Layout) -> tuple[str, ...]:
    if not file.is_file():
        raise DataError(
            f"{file}: the class names are missing; the archive has this file: theta0.data.get({layout.name!r})"
        )
    if layout.names_key:
        listed = unpickle.read(file).get(layout.names_key)
        raw = [entry for entry in listed if isinstance(entry, (str, bytes))] if isinstance(listed, list) else []
        names = [entry.decode("latin1") if isinstance(entry, bytes) else entry for entry in raw]
    else:
        names = [line.strip() for line in file.read_text("latin1").splitlines() if line.strip()]
    if len(names) != layout.classes or len(set(names)) != layout.classes:
        raise DataError(
            f"{file}: expected {layout.classes} different class names, found {len(names)} ({len(set(names))} "
            f"different); this is not the file of {layout.name}"
        )
    return tuple(names)
