"""Columns of a Parquet file as numpy arrays; pyarrow is imported only here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.errors import DataError


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet files need pyarrow: pip install 'theta0[tables]', or pip install pyarrow; tables in theta0's own "
            ".npz form need nothing"
        ) from error
    return pyarrow.parquet


def names(path: Path) -> list[str]:
    """The names of the columns."""
    parquet = _parquet()
    try:
        return [str(name) for name in parquet.read_schema(path).names]
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise _damaged(path, error) from error


def read(path: Path, wanted: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The columns called ``wanted``: numbers as float64 with NaN for gaps, texts as objects, truth values as bool."""
    missing = [name for name in wanted if name not in names(path)]
    if missing:
        raise DataError(f"{path}: expected the columns {', '.join(missing)}, found none of that name; another file")
    try:
        table = _parquet().read_table(path, columns=list(wanted))
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    found = {}
    for name in wanted:
        column = table[name].to_numpy()
        found[name] = column.astype(np.float64) if column.dtype.kind in "iuf" else column
    return found


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: expected a Parquet file, found {error}; the file is damaged or another one")
