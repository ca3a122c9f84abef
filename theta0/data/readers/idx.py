"""The idx format of MNIST and its kin (Fashion-MNIST, KMNIST): four files, plain or gzipped.

http://yann.lecun.com/exdb/mnist. Big-endian header: two zero bytes, the type (8: unsigned byte), the number of
dimensions, then each dimension as 32 bits. The file holds no class names: classes are "0", "1", ... up to the largest
label of both parts. ``theta0.data.load("fashion_mnist")`` knows the names.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from theta0.data.dataset import ImageDataset
from theta0.data.readers import Part, Reader, readers
from theta0.data.resize import resized
from theta0.errors import DataError

_STEM: dict[Part, str] = {"train": "train", "test": "t10k"}
_DIMENSIONS = {"images": 3, "labels": 1}
# A header may claim anything; a gzip file of a megabyte can unpack to a gigabyte.
_LARGEST = 4 * 2**30


@readers.register("idx")
class Idx(Reader):
    """``train-images-idx3-ubyte`` and its three companions, each plain or ``.gz``."""

    wants = "train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- pair, plain or .gz (MNIST idx)"

    def matches(self, path: Path) -> bool:
        """A folder with any of the four files."""
        return any(_find(path, part, kind) for part in _STEM for kind in _DIMENSIONS)

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, 1, H, W); an error where a file of it is missing."""
        files = {kind: _find(path, part, kind) for kind in _DIMENSIONS}
        images_file, labels_file = files["images"], files["labels"]
        if images_file is None or labels_file is None:
            missing = [_name(part, kind) for kind, file in files.items() if file is None]
            other = "test" if part == "train" else "train"
            raise DataError(
                f"{path}: the {part} part is missing {' and '.join(missing)} (or .gz); download the files, or load "
                f"the other part alone with part={other!r}"
            )
        images, labels = read_idx(images_file, 3), read_idx(labels_file, 1)
        if len(images) != len(labels):
            raise DataError(
                f"{labels_file}: expected one label for each of the {len(images)} images of {images_file.name}, "
                f"found {len(labels)}; the two files do not belong together"
            )
        every = [file for other in _STEM if (file := _find(path, other, "labels")) is not None]
        highest = max(int(read_idx(file, 1).max()) for file in every)
        classes = tuple(str(number) for number in range(highest + 1))
        whole = ImageDataset(
            torch.from_numpy(images)[:, None], torch.from_numpy(labels).long(), classes, f"{path.name}/{part}"
        )
        return resized(whole, size)


def read_idx(file: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """The array of unsigned bytes in ``file``, which must have that many ``dimensions`` and at least one entry."""
    again = "the file is damaged or another one; download it again"
    try:
        with _open(file) as stream:
            header = stream.read(4)
            expected = bytes([0, 0, 8, dimensions])
            if header != expected:
                found = f"0x{header.hex()}" if header else "an empty file"
                raise DataError(f"{file}: expected the magic number 0x{expected.hex()}, found {found}; {again}")
            sides = stream.read(4 * dimensions)
            if len(sides) != 4 * dimensions:
                raise DataError(f"{file}: expected {dimensions} dimensions, found the end of the file; {again}")
            shape = struct.unpack(f">{dimensions}I", sides)
            length = math.prod(shape)
            if not 0 < length <= _LARGEST:
                raise DataError(f"{file}: expected 1 to {_LARGEST} bytes of content, found dimensions {shape}; {again}")
            # One byte more than expected, to see whether there is more.
            content = stream.read(length + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: expected a readable idx file, found {error}; {again}") from error
    if len(content) != length:
        found = "more" if len(content) > length else f"{len(content)}"
        raise DataError(f"{file}: expected {length} bytes for dimensions {shape}, found {found}; {again}")
    # A copy: memory of a bytes object is read-only, which torch warns of.
    return np.frombuffer(content, dtype=np.uint8).reshape(shape).copy()


def _open(file: Path) -> BinaryIO:
    # GzipFile is a binary stream in all that matters here, but not by its declared type.
    return gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]


def _name(part: Part, kind: str) -> str:
    return f"{_STEM[part]}-{kind}-idx{_DIMENSIONS[kind]}-ubyte"


def _find(path: Path, part: Part, kind: str) -> Path | None:
    # Some unpackers write a dot for the last hyphen but one: train-images.idx3-ubyte.
    name = _name(part, kind)
    for candidate in (name, f"{name}.gz", name.replace("-idx", ".idx"), f"{name.replace('-idx', '.idx')}.gz"):
        if (path / candidate).is_file():
            return path / candidate
    return None
