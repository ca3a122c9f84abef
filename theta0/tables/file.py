"""The file form of tables: one compressed .npz with plain arrays, no pickle, and a checksum of everything in it.

The entry ``table`` is a JSON text with the format's version, the names and the order of the budgets and costs; texts
are UTF-8 bytes, one line for each row. A file is written beside its place and takes its name when it is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.errors import DataError, Theta0Error
from theta0.tables.table import Table, Trained

FORMAT = "theta0 table"
VERSION = 1
_HEADER = "table"
_DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    RuntimeError,  # what zipfile raises for ways of packing that it does not know
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)
_AGAIN = "convert the source again with `theta0 data convert SOURCE FILE.npz`"


def check_target(path: str | Path) -> Path:
    """A path to which a table can be written; asked before minutes of work."""
    path = Path(path)
    if path.suffix != ".npz":
        raise Theta0Error(f"tables are written to .npz files, not to {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise Theta0Error(f"there is no folder {path.absolute().parent} to write {path.name!r} to; make it first")
    return path


def save(table: Table, path: str | Path) -> Path:
    """Writes ``table`` to a .npz file, which appears whole or not at all."""
    path = check_target(path)
    if table.hidden:
        raise Theta0Error(f"{table.name} is a searcher's view, without test accuracy; save the whole table")
    header, arrays = _content(table)
    header["sha256"] = _digest(header, arrays)
    part = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as out:
            np.savez_compressed(out, allow_pickle=False, **{_HEADER: _bytes([json.dumps(header)])}, **arrays)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def checksum(table: Table) -> str:
    """The sha256 of a table's content, the same for the same numbers wherever they come from."""
    return _digest(*_content(table))


def is_table(path: Path) -> bool:
    """Whether a .npz file says that it is a table; what is wrong inside is found by :func:`load`."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{_HEADER}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def load(path: str | Path) -> Table:
    """Reads what :func:`save` wrote."""
    path = Path(path)
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as file:
            if f"{_HEADER}.npy" not in file.namelist():
                raise DataError(f"{path}: expected a table of theta0, found another file without the entry {_HEADER!r}")
            arrays = {name.removesuffix(".npy"): _array(file, name) for name in file.namelist()}
        header = json.loads(_lines(arrays.pop(_HEADER))[0])
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise DataError(f"{path}: expected the format {FORMAT!r}, found another one; {_AGAIN}")
        if header.get("version") != VERSION:
            raise DataError(
                f"{path}: expected version {VERSION} of the format, found {header.get('version')}; {_AGAIN}"
            )
        said = header.pop("sha256", None)
        if (found := _digest(header, arrays)) != said:
            raise DataError(f"{path}: expected content with sha256 {said}, found {found}; it was changed: {_AGAIN}")
        return _table(header, arrays)
    except FileNotFoundError as error:
        raise DataError(f"{path}: expected a table, found no file; {_AGAIN}") from error
    except _DAMAGE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: expected a table of theta0 (.npz), found {error}; it is damaged: {_AGAIN}") from error


def _content(table: Table) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": table.name,
        "space": table.space,
        "source": table.source,
        "notes": list(table.notes),
        "budgets": [[dataset, epochs, *one.averaged] for (dataset, epochs), one in table.trained.items()],
        "costs": [list(key) for key in table.costs],
    }
    arrays: dict[str, NDArray[Any]] = {"cells": _bytes(table.cells)}
    if table.keys is not None:
        arrays["keys"] = _bytes(table.keys)
    if table.suspect is not None:
        arrays["suspect"] = np.asarray(table.suspect, dtype=bool)
    for number, one in enumerate(table.trained.values()):
        arrays[f"validation {number}"], arrays[f"seconds {number}"] = one.validation, one.seconds
        if one.test is not None:
            arrays[f"test {number}"] = one.test
    arrays |= {f"cost {number}": values for number, values in enumerate(table.costs.values())}
    return header, arrays


def _table(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Table:
    return Table(
        name=header["name"],
        space=header["space"],
        source=header["source"],
        notes=tuple(header["notes"]),
        cells=tuple(_lines(arrays["cells"])),
        keys=tuple(_lines(arrays["keys"])) if "keys" in arrays else None,
        suspect=arrays.get("suspect"),
        trained={
            (dataset, epochs): Trained(
                arrays[f"validation {number}"],
                arrays[f"seconds {number}"],
                arrays.get(f"test {number}"),
                (averaged, test_averaged),
            )
            for number, (dataset, epochs, averaged, test_averaged) in enumerate(header["budgets"])
        },
        costs={(dataset, name): arrays[f"cost {i}"] for i, (dataset, name) in enumerate(header["costs"])},
    )


def _digest(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _array(file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with file.open(name) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _bytes(lines: list[str] | tuple[str, ...]) -> NDArray[np.uint8]:
    if any("\n" in line for line in lines):
        raise Theta0Error("a text of a table has a line break in it; the notation of a space must be one line")
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def _lines(array: NDArray[Any]) -> list[str]:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"{array.dtype} {array.shape} where a text belongs")
    return array.tobytes().decode().split("\n")
