"""numpy files: one ``.npz``, or a folder of ``.npy`` files.

Entries (or files): ``x`` and ``y``, or ``x_train``, ``y_train`` and, where there is a test part, ``x_test`` and
``y_test``. Optional: ``classes`` (names in the order of the labels) and ``layout`` ("NHW", "NHWC" or "NCHW"). What
shapes, types and labels are accepted is said in ``theta0.data.arrays``. Python objects in the files are refused:
reading one would run it.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from theta0.data.arrays import dataset_from, labels_from
from theta0.data.dataset import ImageDataset
from theta0.data.readers import Part, Reader, readers
from theta0.data.resize import resized
from theta0.errors import DataError

Array = npt.NDArray[Any]
KEYS = ("x", "y", "x_train", "y_train", "x_test", "y_test", "classes", "layout")


@readers.register("arrays")
class Arrays(Reader):
    """A ``.npz`` file or a folder of ``.npy`` files."""

    wants = "a .npz file, or a folder, with x and y (or x_train, y_train, x_test, y_test) as .npy"

    def matches(self, path: Path) -> bool:
        """A ``.npz`` file, or a folder with any of the known ``.npy`` files."""
        if path.is_dir():
            return any((path / f"{key}.npy").is_file() for key in KEYS[:6])
        return path.suffix == ".npz"

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, C, H, W); None where the files hold no test part."""
        keys = _keys(path)
        pairs = _pairs(keys, path)
        if part not in pairs:
            if part == "train":
                raise DataError(f"{path}: expected x_train and y_train (or x and y) beside x_test and y_test")
            return None
        names = None
        if "classes" in keys:
            listed = _entry(path, "classes")
            if listed.ndim != 1 or listed.dtype.kind != "U":
                raise DataError(f"{path}: classes are a list of names; found {listed.shape} {listed.dtype}")
            names = listed.tolist()
        layout = str(_entry(path, "layout")) if "layout" in keys else None
        # The labels of both parts, although one is wanted: those of the training part say what the classes are.
        labels, classes = labels_from([(_entry(path, y), f"{path}: {y}") for _, y in pairs.values()], names)
        x, _ = pairs[part]
        encoded = labels[list(pairs).index(part)]
        name = f"{path.resolve().stem}/{part}"
        whole = dataset_from(_entry(path, x), encoded, classes, name, where=f"{path}: {x}", layout=layout)
        return resized(whole, size)


def _pairs(keys: list[str], path: Path) -> dict[Part, tuple[str, str]]:
    """The names of images and labels of each part that is there."""
    pairs: dict[Part, tuple[str, str]] = {}
    if {"x", "y"} & set(keys) and {"x_train", "y_train"} & set(keys):
        raise DataError(f"{path}: expected x, y or x_train, y_train; found {', '.join(keys)}; remove one of them")
    train = ("x", "y") if {"x", "y"} & set(keys) else ("x_train", "y_train")
    candidates: list[tuple[Part, tuple[str, str]]] = [("train", train), ("test", ("x_test", "y_test"))]
    for part, (x, y) in candidates:
        if (x in keys) != (y in keys):
            there, gone = (x, y) if x in keys else (y, x)
            raise DataError(f"{path}: expected both {x} and {y}, found {there} without {gone}")
        if x in keys:
            pairs[part] = (x, y)
    if not pairs:
        raise DataError(f"{path}: expected x and y, or x_train and y_train; found {', '.join(keys) or 'nothing'}")
    return pairs


def _keys(path: Path) -> list[str]:
    if path.is_dir():
        return [key for key in KEYS if (path / f"{key}.npy").is_file()]
    with _npz(path) as archive:
        return list(archive.files)


def _entry(path: Path, key: str) -> Array:
    """One array; only what is asked for is read from the file."""
    if not path.is_dir():
        with _npz(path) as archive:
            return np.asarray(archive[key])
    file = path / f"{key}.npy"
    with _explained(file), file.open("rb") as stream:
        array = np.load(stream, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            array.close()
            raise DataError(f"{file}: expected a single array (.npy), found an archive (.npz); name it so")
        return array


@contextmanager
def _npz(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    # Opened here: numpy leaves its own file open where the content is wrong.
    with _explained(path), path.open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{path}: expected a .npz archive of several arrays, found a single array (.npy)")
        with archive:
            yield archive


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Whatever numpy says of a file that it cannot read, with the file's name."""
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        found, way = str(error), "the file is damaged or another one"
        if "Object arrays" in found:
            found = "Python objects, which are refused as reading them would run them"
            way = "save numbers or text, not object arrays"
        elif "allow_pickle" in found:
            # What numpy takes for a pickle is anything that starts neither like .npy nor like .npz.
            found = "a file that is neither .npy nor .npz"
        raise DataError(f"{file}: expected numpy arrays, found {found}; {way}") from error
