"""``load``: from a name, a path or arrays to ``Data``."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from theta0.data import arrays
from theta0.data.dataset import Data, ImageDataset
from theta0.data.digits import digits
from theta0.data.readers import Part, Reader, readers
from theta0.data.resize import check_size, resized
from theta0.data.sources import SOURCES, candidates, names
from theta0.errors import DataError, nearest
from theta0.places import data_root


def load(
    source: str | os.PathLike[str] | tuple[Any, ...] = "digits",
    *,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    part: Part | None = None,
    layout: str | None = None,
) -> Data:
    """Images and labels from ``source``; every format ends up as uint8 (N, C, H, W) with int64 (N,) labels.

    ``source`` is the name of a known data set (``theta0.data.names()``), looked up under ``root``, the environment's
    THETA0_DATA or ~/.cache/theta0; or the path of a file or folder, whose format is recognised; or arrays or tensors:
    ``(x, y)`` or ``(x, y, x_test, y_test)``. A folder called like a known name is written with a slash: ``"./mnist"``.

    ``size`` scales the shorter side and keeps the central square. ``part`` loads one part only, "train" or "test"; it
    comes back as ``.train``, its own name says which it is, and ``.test`` is None. ``layout`` ("NHWC" or "NCHW") is for
    arrays whose shape leaves open where the channels are.
    """
    if size is not None:
        check_size(size)
    if part not in (None, "train", "test"):
        raise DataError(f"part is None (both), 'train' or 'test'; found {part!r}")
    if layout is not None and not isinstance(source, tuple):
        raise DataError("layout= is for arrays given as (x, y); in a .npz file or folder it is an entry called layout")
    if isinstance(source, tuple):
        return _one(_sized(_from_arrays(source, layout), size), part, "the arrays")
    if source == "digits":
        return _one(_sized(digits(), size), part, "digits")
    if isinstance(source, str) and source in SOURCES:
        return _known(source, data_root(root), size, part, "" if root is None else f", root={os.fspath(root)!r}")
    path = Path(source).expanduser()
    if not path.exists():
        hint = ""
        if isinstance(source, str) and not {"/", "\\", "."} & set(source):
            hint = f"; of the data sets known by name, {nearest(source, names())}"
        raise DataError(f"{path}: expected a file or folder, found nothing there (from {Path.cwd()}){hint}")
    return _read(_reader(path), path, size, part)


def _known(name: str, root: Path, size: int | None, part: Part | None, root_argument: str) -> Data:
    """A known data set under ``root``, with the class names that its files may lack."""
    places = candidates(name, root)
    for path in places:
        if path.is_dir() and len(_matching(path)) == 1:
            data = _read(_reader(path), path, size, part)
            return Data(_named(data.train, name, path), None if data.test is None else _named(data.test, name, path))
    raise DataError(
        f"the files of {name!r} are not there; looked in {', '.join(map(str, places))}. Download them (once) with "
        f"theta0.data.get({name!r}{root_argument}) or the command `theta0 data get {name}`; or say where they are with "
        f"root= or the environment variable THETA0_DATA"
    )


def _named(dataset: ImageDataset, name: str, path: Path) -> ImageDataset:
    classes = SOURCES[name].classes or dataset.classes
    if len(classes) != len(dataset.classes):
        raise DataError(
            f"{path}: expected the {len(classes)} classes of {name!r}, found labels for {len(dataset.classes)}; these "
            f"are the files of another data set: load them by their path, {str(path)!r}"
        )
    return dataclasses.replace(dataset, name=f"{name}/{dataset.name.rsplit('/', 1)[-1]}", classes=classes)


def _matching(path: Path) -> dict[str, Reader]:
    made = {name: readers.get(name)() for name in readers.names()}
    try:
        return {name: reader for name, reader in made.items() if reader.matches(path)}
    except OSError as error:
        raise DataError(f"{path}: expected files that can be read, found: {error}; check the permissions") from error


def _reader(path: Path) -> Reader:
    """The one reader whose format ``path`` has."""
    found = _matching(path)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        looks = "; ".join(f"{name}: {reader.wants}" for name, reader in found.items())
        raise DataError(f"{path}: expected one data format, found {len(found)} ({looks}); move one of them away")
    known = "\n  ".join(readers.get(name).wants for name in readers.names())
    inside = ""
    if path.is_dir():
        entries = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
        inside = f" (it holds {', '.join(entries[:6]) or 'nothing'}{', ...' if len(entries) > 6 else ''})"
    raise DataError(f"{path}: no data format matches{inside}; looked for\n  {known}")


def _read(reader: Reader, path: Path, size: int | None, part: Part | None) -> Data:
    if part is None:
        train = reader.read(path, "train", size)
        return Data(_there(train, path, "train"), reader.read(path, "test", size))
    return Data(_there(reader.read(path, part, size), path, part))


def _there(dataset: ImageDataset | None, where: Path | str, part: Part) -> ImageDataset:
    if dataset is None:
        raise DataError(f"{where}: there is no {part} part; leave out part= and use theta0.data.split")
    return dataset


def _one(data: Data, part: Part | None, where: str) -> Data:
    if part is None:
        return data
    return Data(_there(data.train if part == "train" else data.test, where, part))


def _sized(data: Data, size: int | None) -> Data:
    return Data(resized(data.train, size), None if data.test is None else resized(data.test, size))


def _from_arrays(source: tuple[Any, ...], layout: str | None) -> Data:
    if len(source) not in (2, 4):
        raise DataError(f"arrays come as (x, y) or (x, y, x_test, y_test); found {len(source)} of them")
    named = dict(zip(("x", "y", "x_test", "y_test"), source, strict=False))
    array = {name: arrays.to_numpy(value, name) for name, value in named.items()}
    pairs = [("x", "y"), ("x_test", "y_test")][: len(source) // 2]
    labels, classes = arrays.labels_from([(array[y], y) for _, y in pairs], None)
    made = [
        arrays.dataset_from(array[x], encoded, classes, f"arrays/{part}", where=x, layout=layout)
        for part, (x, _), encoded in zip(("train", "test"), pairs, labels, strict=False)
    ]
    return Data(*made)
