"""The wire format of protocol buffers, as far as benchmarks use it: the fields of a message, undecoded.

A field is a number and one of four kinds: a varint (int), 8 bytes, bytes with a length, 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field in order; a message that ends too early is a ``ValueError``."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == 2:
            length, position = _varint(message, position)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if position + length > len(message):
            raise ValueError(f"a message that ends within field {number}")
        yield number, message[position : position + length]
        position += length


def double(value: int | bytes) -> float:
    """The number in a field of 8 bytes."""
    if not isinstance(value, bytes) or len(value) != 8:
        raise ValueError("a field of another kind where a double belongs")
    (number,) = struct.unpack("<d", value)
    return float(number)


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message) or shift > 63:
            raise ValueError("a message that ends within a number")
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
