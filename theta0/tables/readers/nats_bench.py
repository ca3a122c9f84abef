"""The official NATS-Bench files (Dong et al., TPAMI 2021), topology space: NAS-Bench-201 with its 12-epoch trainings.

``NATS-tss-v1_0-3ffb9-simple`` is a folder: ``meta.pickle.pbz2`` lists the cells, ``000000.pickle.pbz2`` and so on hold
the records of one cell each. ``NATS-tss-v1_0-3ffb9.pickle.pbz2`` holds all of that in one file. Both are pickles under
bzip2; the folder is read cell by cell, the file as a stream.
"""

from __future__ import annotations

import bz2
import io
import re
from pathlib import Path
from typing import Any, BinaryIO, cast

from theta0.errors import DataError
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.results201 import Collector, shrink
from theta0.tables.table import Table
from theta0.unpickle import RECORDS, TENSORS, Restricted, Streaming, guarded

_SUFFIX = ".pickle.pbz2"
_META = f"meta{_SUFFIX}"
_LARGEST = 2**28
"""Bytes that one cell's file may unpack to; the official ones have less than one MB."""
_NAMES = {**RECORDS, **TENSORS}
_WHAT = {"what": "NATS-Bench file", "advice": "take the official file, see docs/tables.md"}
_DAMAGED = "the file is damaged, cut short or another one; unpack or download it again"


@readers.register("nats_bench")
class NATSBench(Reader):
    """Folder or file."""

    wants = f"a folder NATS-tss-...-simple with {_META}, or a file NATS-tss-...{_SUFFIX}"
    slow = True

    def matches(self, path: Path) -> bool:
        """By its names."""
        return (path / _META).is_file() if path.is_dir() else path.name.endswith(_SUFFIX)

    def read(self, path: Path, meter: Meter) -> Table:
        """The table of all cells in the file."""
        collector = Collector(path)
        if path.is_dir():
            _folder(path, collector, meter)
        else:
            with path.open("rb") as packed, bz2.open(packed) as unpacked:
                size = path.stat().st_size
                stream = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, unpacked), 2**20))
                collect(stream, path, collector, lambda: meter.show(packed.tell(), size), _WHAT)
        return collector.table("NATS-Bench (topology)", f"NATS-Bench, {path.name}")


def collect(stream: BinaryIO, path: Path, collector: Collector, tick: Any, what: dict[str, str]) -> None:
    """All cells of one pickle with ``meta_archs`` and ``arch2infos``; trials are made small while they come."""

    def seen(filled: dict[Any, Any]) -> None:
        shrink(filled)
        tick()

    with guarded(path, "a pickled dictionary with meta_archs and arch2infos", _DAMAGED):
        content = Streaming(stream, path, _NAMES, seen, **what).load()
        texts = _archs(content)
        found = content.get("arch2infos")
        if not isinstance(found, dict):
            raise ValueError("no arch2infos")
        for index, schedules in found.items():
            collector.add(index, texts[index], schedules)


def _folder(path: Path, collector: Collector, meter: Meter) -> None:
    meta = path / _META
    with guarded(meta, "a pickled dictionary with meta_archs", _DAMAGED):
        texts = _archs(_load(meta))
    # Files are called 000012 or 12; there may be fewer of them than cells.
    numbers = {int(file.name.removesuffix(_SUFFIX)): file for file in path.iterdir() if _is_cell(file.name)}
    missing = [index for index in range(len(texts)) if index not in numbers]
    if missing:
        raise DataError(
            f"{path}: expected a file for each of {len(texts):,} cells, found none for {len(missing):,} of them, the "
            f"first {missing[0]:06d}{_SUFFIX}; unpack the archive again"
        )
    for index, text in enumerate(texts):
        file = numbers[index]
        with guarded(file, "the pickled records of a cell", _DAMAGED):
            collector.add(index, text, _load(file))
        meter.show(index + 1, len(texts))


def _is_cell(name: str) -> bool:
    return re.fullmatch(r"[0-9]{1,6}" + re.escape(_SUFFIX), name) is not None


def _load(file: Path) -> dict[Any, Any]:
    try:
        with bz2.open(file) as unpacked:
            content = unpacked.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(f"{file}: expected a bzip2 file, found {error}; {_DAMAGED}") from error
    if len(content) > _LARGEST:
        raise DataError(f"{file}: the records of a cell have less than {_LARGEST} bytes; found more; {_DAMAGED}")
    loaded = Restricted(io.BytesIO(content), file, _NAMES, **_WHAT).load()
    if not isinstance(loaded, dict):
        raise ValueError(f"a {type(loaded).__name__}")
    return loaded


def _archs(content: object) -> list[str]:
    texts = content.get("meta_archs") if isinstance(content, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("no list meta_archs")
    return texts
