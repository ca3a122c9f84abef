"""Records of a TFRecord file, checked: length (8 bytes), its CRC, the record, its CRC; no TensorFlow.

The CRC is CRC-32C, rotated and shifted by a constant ("masked"). Byte by byte in Python it would take longer than all
the rest; here thousands of records are taken at once, and numpy advances all their checksums by one byte at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from theta0.errors import DataError

_BATCH = 8192
_LARGEST = 2**24
"""Bytes of one record; a wrong length would otherwise ask for all memory before its checksum is known."""


def _table() -> NDArray[np.uint32]:
    table: NDArray[np.uint32] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (table & np.uint32(1)) * np.uint32(0x82F63B78)
    return table


_TABLE = _table()


def masked_crcs(blobs: Sequence[bytes]) -> NDArray[np.uint32]:
    """The masked CRC-32C of each of the blobs."""
    lengths = np.array([len(blob) for blob in blobs], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    columns = np.zeros((int(lengths.max(initial=0)), len(blobs)), dtype=np.uint8)
    for column, place in enumerate(order):
        columns[: lengths[place], column] = np.frombuffer(blobs[place], dtype=np.uint8)
    ends = lengths[order]
    crcs = np.full(len(blobs), 0xFFFFFFFF, dtype=np.uint32)
    for position, row in enumerate(columns):
        count = int(np.searchsorted(-ends, -position))  # the blobs that are longer, which come first
        part = crcs[:count]
        crcs[:count] = _TABLE[(part ^ row[:count]) & 0xFF] ^ (part >> 8)
    crcs ^= np.uint32(0xFFFFFFFF)
    masked = np.empty_like(crcs)
    masked[order] = ((crcs >> 15) | (crcs << 17)) + np.uint32(0xA282EAD8)
    return masked


def records(path: Path, tick: Callable[[int], None] = lambda position: None) -> Iterator[bytes]:
    """The records of the file, in order; ``tick`` gets the position in bytes now and then."""
    again = "download it again"
    with path.open("rb") as file:
        number = 0
        while True:
            batch: list[bytes] = []
            heads: list[bytes] = []
            sums: list[int] = []
            while len(batch) < _BATCH and (head := file.read(12)):
                length = struct.unpack_from("<Q", head)[0] if len(head) == 12 else 0
                if len(head) < 12 or length > _LARGEST:
                    found = f"a length of {length}" if len(head) == 12 else f"{len(head)} bytes at the end"
                    raise DataError(
                        f"{path}: expected the head of record {number + len(batch)}, found {found}; {again}"
                    )
                body = file.read(length + 4)
                if len(body) < length + 4:
                    raise DataError(
                        f"{path}: expected {length} bytes of record {number + len(batch)}, found the end of the file; "
                        f"it was cut short: {again}"
                    )
                heads.append(head[:8])
                batch.append(body[:-4])
                sums += [*struct.unpack("<I", head[8:]), *struct.unpack("<I", body[-4:])]
            if not batch:
                return
            found_sums = np.stack([masked_crcs(heads), masked_crcs(batch)], axis=1)
            wrong = np.flatnonzero((found_sums != np.array(sums, dtype=np.uint32).reshape(-1, 2)).any(axis=1))
            if len(wrong):
                raise DataError(f"{path}: record {number + wrong[0]} has a wrong checksum (CRC-32C); {again}")
            yield from batch
            number += len(batch)
            tick(file.tell())
