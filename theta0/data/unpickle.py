"""The pickles of the CIFAR python archives, read by :mod:`theta0.unpickle`: five names, and arrays of bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from theta0.errors import DataError
from theta0.unpickle import NUMPY, Array, Restricted, guarded

# The largest official file, CIFAR-100's training half, has 155 MB.
_LARGEST = 512 * 2**20


def read(path: Path) -> dict[str, Any]:
    """The dictionary in the file: keys as text, arrays as uint8, lists and bytes as they are."""
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: a CIFAR batch has less than {_LARGEST} bytes; found {path.stat().st_size}")
    with guarded(
        path,
        "a pickled dictionary as in the CIFAR python archive",
        "the file is cut short or another one; download the archive again",
    ):
        # Python 2 wrote the official files: its strings are bytes.
        content = Restricted(
            io.BytesIO(path.read_bytes()),
            path,
            NUMPY,
            what="CIFAR file",
            advice="take the data from theta0.data.get",
            encoding="bytes",
        ).load()
        if not isinstance(content, dict):
            raise ValueError(f"a {type(content).__name__}")
        return {_text(key): value.bytes() if isinstance(value, Array) else value for key, value in content.items()}


def _text(key: object) -> str:
    if isinstance(key, bytes):
        return key.decode("latin1")
    if isinstance(key, str):
        return key
    raise ValueError(f"the key {key!r}")
