from __future__ import annotations

import struct

import pytest

from tests.tables.official import message, varint
from theta0.tables.protobuf import double, fields


def test_a_message() -> None:
    content = list(fields(message(108, 0.9, 0.8, 100.0, 12_345_678)))
    assert [number for number, _ in content] == [1, 1, 1, 2, 3]
    assert content[3] == (2, 12_345_678)
    assert double(content[4][1]) == 200.0
    end = dict(fields(content[2][1]))  # type: ignore[arg-type]
    assert {number: double(end[number]) for number in range(1, 6)} == {1: 108, 2: 100, 3: 0.9, 4: 0.9, 5: 0.8}
    assert end[6] == b"ckpt"


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**63])
def test_varints(value: int) -> None:
    assert list(fields(b"\x08" + varint(value))) == [(1, value)]


def test_four_bytes() -> None:
    assert list(fields(varint(2 << 3 | 5) + b"abcd")) == [(2, b"abcd")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x09abc", "ends within field 1"),
        (b"\x0a\x05abc", "ends within field 1"),
        (b"\x08\x80", "ends within a number"),
        (b"\x08" + b"\xff" * 20, "ends within a number"),
        (b"\x0b", "the unknown kind 3"),
    ],
)
def test_damage(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(fields(content))


@pytest.mark.parametrize("value", [3, b"abc", struct.pack("<f", 1)])
def test_no_double(value: int | bytes) -> None:
    with pytest.raises(ValueError, match="where a double belongs"):
        double(value)
