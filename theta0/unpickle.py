"""Reads pickles that came from the internet without running anything that a pickle can ask for.

A pickle is a program: it names Python functions and has them called. Data files need a handful of names. Each of them
gets a stand-in of this file that only writes down what it was given, so neither numpy nor torch nor anything else runs
on the file's word; every other name is refused before it is looked up.

:class:`Restricted` reads a file at once; :class:`Streaming` shows every dictionary while the file is being read, so
that what is not needed can be thrown away before the rest comes.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from theta0.errors import DataError

Names = Mapping[tuple[str, str], Any]
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    struct.error,
    OSError,  # of a compressed stream
    RecursionError,
    NotImplementedError,
)


class Array:
    """What a pickle says of an array: (version, shape, dtype, Fortran order, raw bytes)."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def bytes(self) -> npt.NDArray[np.uint8]:
        """The array, which must be one of single bytes."""
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise ValueError("an array without its five fields")
        _, shape, dtype, fortran, raw = self.state
        if not isinstance(dtype, Dtype) or dtype.code not in ("u1", b"u1"):
            raise ValueError(f"an array of {getattr(dtype, 'code', dtype)!r} where bytes ('u1') belong")
        if fortran or not isinstance(raw, bytes) or not isinstance(shape, tuple):
            raise ValueError("an array that is not plain bytes in C order")
        if not all(isinstance(side, int) and side >= 0 for side in shape) or math.prod(shape) != len(raw):
            raise ValueError(f"an array of shape {shape} with {len(raw)} bytes")
        # A copy: memory of a bytes object is read-only, which torch warns of.
        return np.frombuffer(raw, dtype=np.uint8).reshape(shape).copy()


class Dtype:
    """The type code of an array, and its byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: object) -> None:
        self.code, self.order = code, "<"

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else "<"
        self.order = order.decode("latin1") if isinstance(order, bytes) else str(order)


class StandIn:
    """A name the pickle may call. Slots and no state, so that a pickle cannot change it for the next file."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[..., object]) -> None:
        self._answer = answer

    def __call__(self, *args: object) -> object:
        """What the name would have made."""
        return self._answer(*args)

    def __setstate__(self, state: object) -> None:
        raise ValueError("a state for a function")


class Dict(dict[Any, Any]):
    """An ``OrderedDict`` of the file; attributes that hang on it are left out."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        pass


class Ignored:
    """A part of the file that nobody needs, such as a tensor of weights."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        pass


def _encode(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
        raise ValueError(f"_codecs.encode with {encoding!r}")
    return text.encode("latin1")


def _scalar(dtype: object, raw: object = None) -> float | int | bool:
    """A number of numpy, as one of Python."""
    formats = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "u1": "B", "b1": "?"}
    code = dtype.code if isinstance(dtype, Dtype) else None
    code = code.decode("latin1") if isinstance(code, bytes) else code
    if not isinstance(dtype, Dtype) or code not in formats or not isinstance(raw, bytes):
        raise ValueError(f"a number of the type {code!r}")
    (value,) = struct.unpack((">" if dtype.order == ">" else "<") + formats[str(code)], raw)
    number: float | int | bool = value
    return number


def _ordered(pairs: object = ()) -> Dict:
    if not isinstance(pairs, list | tuple | dict):
        raise ValueError(f"an OrderedDict of a {type(pairs).__name__}")
    return Dict(pairs)


_ARRAY = StandIn(lambda *args: Array())
_IGNORED = StandIn(lambda *args: Ignored())

NUMPY: Names = {
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): StandIn(lambda code, *flags: Dtype(code)),
    ("numpy.core.multiarray", "_reconstruct"): _ARRAY,
    ("numpy._core.multiarray", "_reconstruct"): _ARRAY,
    ("_codecs", "encode"): StandIn(_encode),
}
"""The names of arrays."""

RECORDS: Names = {
    **NUMPY,
    ("numpy.core.multiarray", "scalar"): StandIn(_scalar),
    ("numpy._core.multiarray", "scalar"): StandIn(_scalar),
    ("collections", "OrderedDict"): StandIn(_ordered),
}
"""The names of nested dictionaries of numbers."""

TENSORS: Names = {
    ("torch._utils", "_rebuild_tensor"): _IGNORED,
    ("torch._utils", "_rebuild_tensor_v2"): _IGNORED,
    **{
        ("torch", f"{kind}Storage"): _IGNORED
        for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
    },
}
"""The names of tensors, whose values are left out."""


def _find(path: Path, names: Names, what: str, advice: str, module: str, name: str) -> Any:
    if (module, name) not in names:
        raise DataError(
            f"{path}: this pickle asks for {module}.{name}, which no {what} needs; refused, nothing was run. "
            f"Do not open this file with other tools; {advice}"
        )
    return names[module, name]


class Restricted(pickle.Unpickler):
    """Reads one pickle in which only ``names`` may occur; ``what`` and ``advice`` are for the message."""

    def __init__(
        self, stream: BinaryIO, path: Path, names: Names, *, what: str, advice: str, encoding: str = "ASCII"
    ) -> None:
        super().__init__(stream, encoding=encoding)
        self._asked = (path, names, what, advice)

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in of a name."""
        return _find(*self._asked, module, name)

    def persistent_load(self, pid: object) -> object:
        """Data kept outside the pickle are not needed."""
        return Ignored()


class _Memo:
    """The pickle's memory of earlier objects: a list, and each text once, since millions of them are equal."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._others: dict[int, Any] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._items) + len(self._others)

    def __setitem__(self, index: int, value: Any) -> None:
        if type(value) is str:
            value = self._texts.setdefault(value, value)
        if index == len(self._items):
            self._items.append(value)
        else:  # not in order: nothing is reserved for a number that a file makes up
            self._others[index] = value

    def __getitem__(self, index: int) -> Any:
        if index in self._others:
            return self._others[index]
        if not 0 <= index < len(self._items):
            raise KeyError(index)
        return self._items[index]


_Python: Any = pickle._Unpickler  # the same reader in Python, whose steps can be watched


class Streaming(_Python):  # type: ignore[misc]
    """As :class:`Restricted`, in Python: ``seen`` gets every dictionary of the file as soon as it is filled.

    A dictionary of more than a thousand entries comes once for each thousand. What ``seen`` empties is gone, although
    the pickle may name it again.
    """

    def __init__(
        self,
        stream: BinaryIO,
        path: Path,
        names: Names,
        seen: Callable[[dict[Any, Any]], None],
        *,
        what: str,
        advice: str,
    ) -> None:
        super().__init__(stream)
        self._asked = (path, names, what, advice)
        self._seen = seen
        self.memo = _Memo()

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in of a name."""
        return _find(*self._asked, module, name)

    def persistent_load(self, pid: object) -> object:
        """Data kept outside the pickle are not needed."""
        return Ignored()

    def _filled(self, opcode: int) -> None:
        _Python.dispatch[opcode](self)
        filled = self.stack[-1]
        if isinstance(filled, dict):
            self._seen(filled)

    dispatch = {
        **_Python.dispatch,
        pickle.SETITEM[0]: lambda self: self._filled(pickle.SETITEM[0]),
        pickle.SETITEMS[0]: lambda self: self._filled(pickle.SETITEMS[0]),
    }


@contextmanager
def guarded(path: Path, expected: str, advice: str) -> Iterator[None]:
    """Turns what a damaged pickle can raise into an error that names the file."""
    try:
        yield
    except DataError:
        raise
    except _DAMAGE as error:
        found = str(error) or "the end too early"
        raise DataError(f"{path}: expected {expected}, found {found}; {advice}") from error
