"""Arrays as people have them (any layout, bytes or floats, numbers or names as labels) to the tensors of a data set.

Images: uint8, or floats in [0, 1], which are scaled to 0..255 and rounded. Shapes: (N, H, W) grey, (N, H, W, C) or
(N, C, H, W) with C = 1 or 3. Where both readings are possible, or C is another number, nothing is guessed.
Labels: integers or text, (N,) or (N, 1). Without class names, the different labels in sorted order are the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from theta0.data.dataset import ImageDataset
from theta0.errors import DataError

Array = npt.NDArray[Any]


def images_from(x: Array, where: str, layout: str | None = None) -> Tensor:
    """``x`` in any of the accepted shapes to (N, C, H, W) uint8; ``layout`` is None, "NHW", "NHWC" or "NCHW"."""
    layout = _layout(x.shape, where, layout)
    if x.dtype == np.uint8:
        values = x
    elif x.dtype.kind == "f":
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
        # NaN makes both comparisons false.
        if not (low >= 0 and high <= 1):
            way = (
                "divide by 255 or convert to uint8" if 1 < high <= 255 and low >= 0 else "bring the values into [0, 1]"
            )
            raise DataError(f"{where}: float images lie in [0, 1] without NaN; found {low:.6g} to {high:.6g}; {way}")
        values = np.rint(x * x.dtype.type(255)).astype(np.uint8)
    else:
        raise DataError(
            f"{where}: images are uint8, or floats in [0, 1]; found {x.dtype}; pixels 0..255 of another type: "
            f"x.astype('uint8')"
        )
    if layout == "NHW":
        values = values[:, None]
    elif layout == "NHWC":
        values = values.transpose(0, 3, 1, 2)
    # A copy: the caller may go on writing into his array, and memory that is mapped or read-only makes torch warn.
    return torch.from_numpy(np.array(values, order="C"))


def _layout(shape: tuple[int, ...], where: str, layout: str | None) -> str:
    if layout is not None:
        if layout not in ("NHW", "NHWC", "NCHW") or len(layout) != len(shape):
            raise DataError(f"{where}: layout is 'NHW', 'NHWC' or 'NCHW' and fits the shape; found {layout!r}, {shape}")
        return layout
    if len(shape) == 3:
        return "NHW"
    if len(shape) != 4:
        raise DataError(f"{where}: images have the shape (N, H, W), (N, H, W, C) or (N, C, H, W); found {shape}")
    first, last = shape[1] in (1, 3), shape[3] in (1, 3)
    if first != last:
        return "NCHW" if first else "NHWC"
    why = "could be channels first or last" if first else "has no dimension of 1 or 3 channels"
    raise DataError(
        f"{where}: images of shape {shape} {why}; say which with layout='NCHW' or layout='NHWC' (in a .npz file or "
        f"folder: an entry called layout with that text)"
    )


def labels_from(
    parts: Sequence[tuple[Array, str]], classes: Sequence[str] | None
) -> tuple[list[Tensor], tuple[str, ...]]:
    """Labels of one or more (array, where) to int64 (N,) each, and the class names that they share.

    ``classes`` given: integers index it, text names it. Otherwise the classes are the different labels of the first
    part in sorted order, and the other parts may not bring new ones.
    """
    flat = [(_flat(array, where), where) for array, where in parts]
    if len({array.dtype.kind == "U" for array, _ in flat}) > 1:
        raise DataError(
            f"{flat[0][1]} and {flat[1][1]}: labels of both parts are numbers or both are text; found a mix"
        )
    known = np.unique(flat[0][0])
    if classes is not None:
        text = flat[0][0].dtype.kind == "U"
        known = np.array(list(classes)) if text else np.arange(len(classes))
    names = tuple(str(value) for value in known.tolist()) if classes is None else tuple(str(name) for name in classes)
    order = np.argsort(known, kind="stable")
    encoded = []
    for array, where in flat:
        strange = np.setdiff1d(array, known)
        if len(strange):
            shown = ", ".join(repr(value) for value in strange[:5].tolist())
            source = (
                f"0 to {len(names) - 1} for {len(names)} class names" if classes is not None else "the training labels"
            )
            if classes is not None and array.dtype.kind == "U":
                source = f"the {len(names)} class names"
            raise DataError(
                f"{where}: expected labels among {source}; found {shown}{', ...' if len(strange) > 5 else ''}"
            )
        encoded.append(torch.from_numpy(order[np.searchsorted(known, array, sorter=order)].astype(np.int64)))
    return encoded, names


def _flat(labels: Array, where: str) -> Array:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{where}: labels have the shape (N,) or (N, 1) with N of 1 or more; found {labels.shape}")
    if labels.dtype.kind == "S":
        return np.char.decode(labels, "utf-8")
    if labels.dtype.kind not in "iuU":
        raise DataError(f"{where}: labels are integers or text; found {labels.dtype}; for example y.astype('int64')")
    return labels


def dataset_from(
    x: Array, labels: Tensor, classes: tuple[str, ...], name: str, *, where: str, layout: str | None = None
) -> ImageDataset:
    """Images in any accepted form with labels (N,) from ``labels_from``; ``where`` is the name of ``x`` in errors."""
    images = images_from(x, where, layout)
    if len(images) != len(labels):
        raise DataError(f"{where}: one label per image is needed; found {len(images)} images, {len(labels)} labels")
    return ImageDataset(images, labels, classes, name)


def to_numpy(value: object, where: str) -> Array:
    """A tensor, array or nested list as a numpy array that holds numbers or text, never Python objects."""
    if isinstance(value, Tensor):
        return np.asarray(value.detach().cpu().numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{where}: expected an array, found rows of different lengths ({error})") from error
    if array.dtype.kind == "O":
        raise DataError(f"{where}: expected an array of numbers or text, found Python objects ({type(value).__name__})")
    return array
