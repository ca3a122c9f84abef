"""Reads the pickles of the CIFAR python archives without running anything that a pickle can ask for.

A pickle is a program: it names Python functions and has them called. These files need five names. Each of them gets a
stand-in of this file that only writes down what it was given, so neither numpy nor anything else runs on the file's
word; every other name is refused before it is looked up. The arrays are built afterwards from the checked record.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from theta0.errors import DataError

# The largest official file, CIFAR-100's training half, has 155 MB.
_LARGEST = 512 * 2**20


class _Array:
    """What the pickle says of an array: (version, shape, dtype, Fortran order, raw bytes)."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self) -> npt.NDArray[np.uint8]:
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise ValueError("an array without its five fields")
        _, shape, dtype, fortran, raw = self.state
        if not isinstance(dtype, _Dtype) or dtype.code not in ("u1", b"u1"):
            raise ValueError(f"an array of {getattr(dtype, 'code', dtype)!r} where bytes ('u1') belong")
        if fortran or not isinstance(raw, bytes) or not isinstance(shape, tuple):
            raise ValueError("an array that is not plain bytes in C order")
        if not all(isinstance(side, int) and side >= 0 for side in shape) or math.prod(shape) != len(raw):
            raise ValueError(f"an array of shape {shape} with {len(raw)} bytes")
        # A copy: memory of a bytes object is read-only, which torch warns of.
        return np.frombuffer(raw, dtype=np.uint8).reshape(shape).copy()


class _Dtype:
    """The type code of an array; the state that follows (byte order, fields) says nothing about single bytes."""

    __slots__ = ("code",)

    def __init__(self, code: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        pass


class _StandIn:
    """A name the pickle may call. Slots and no state, so that a pickle cannot change it for the next file."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[..., object]) -> None:
        self._answer = answer

    def __call__(self, *args: object) -> object:
        return self._answer(*args)

    def __setstate__(self, state: object) -> None:
        raise ValueError("a state for a function")


def _encode(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
        raise ValueError(f"_codecs.encode with {encoding!r}")
    return text.encode("latin1")


_ARRAY_CLASS = _StandIn(lambda *args: _Array())
_ALLOWED = {
    ("numpy", "ndarray"): _ARRAY_CLASS,
    ("numpy", "dtype"): _StandIn(lambda code, *flags: _Dtype(code)),
    ("numpy.core.multiarray", "_reconstruct"): _ARRAY_CLASS,
    ("numpy._core.multiarray", "_reconstruct"): _ARRAY_CLASS,
    ("_codecs", "encode"): _StandIn(_encode),
}


class _Restricted(pickle.Unpickler):
    def __init__(self, blob: bytes, path: Path) -> None:
        # Python 2 wrote the official files: its strings are bytes.
        super().__init__(io.BytesIO(blob), encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataError(
                f"{self.path}: this pickle asks for {module}.{name}, which no CIFAR file needs; refused, nothing was "
                f"run. Do not open this file with other tools; take the data from theta0.data.get"
            )
        return _ALLOWED[module, name]


def read(path: Path) -> dict[str, Any]:
    """The dictionary in the file: keys as text, arrays as uint8, lists and bytes as they are."""
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: a CIFAR batch has less than {_LARGEST} bytes; found {path.stat().st_size}")
    try:
        content = _Restricted(path.read_bytes(), path).load()
        if not isinstance(content, dict):
            raise ValueError(f"a {type(content).__name__}")
        return {_text(key): value.build() if isinstance(value, _Array) else value for key, value in content.items()}
    except DataError:
        raise
    except (
        pickle.UnpicklingError,
        EOFError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        MemoryError,
    ) as error:
        raise DataError(
            f"{path}: expected a pickled dictionary as in the CIFAR python archive, found {error or 'damage'}; the "
            f"file is cut short or another one; download the archive again"
        ) from error


def _text(key: object) -> str:
    if isinstance(key, bytes):
        return key.decode("latin1")
    if isinstance(key, str):
        return key
    raise ValueError(f"the key {key!r}")
