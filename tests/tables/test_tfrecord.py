from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.tables.official import crc32c, frame, masked
from theta0.errors import DataError
from theta0.tables import tfrecord


def write(path: Path, content: bytes) -> Path:
    file = path / "some.tfrecord"
    file.write_bytes(content)
    return file


def test_published_values_of_the_checksum() -> None:
    """RFC 3720, B.4: 32 bytes of zeros, of ones, and counting up."""
    cases = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E}
    for blob, crc in cases.items():
        assert crc32c(blob) == crc
        assert struct.pack("<I", int(tfrecord.masked_crcs([blob])[0])) == masked(blob)


def test_many_lengths_at_once() -> None:
    generator = np.random.default_rng(0)
    blobs = [generator.bytes(int(length)) for length in generator.integers(0, 60, 200)]
    expected = [struct.unpack("<I", masked(blob))[0] for blob in blobs]
    assert tfrecord.masked_crcs(blobs).tolist() == expected


def test_records_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "_BATCH", 3)
    records = [b"a" * n for n in range(10)]
    seen: list[int] = []
    file = write(tmp_path, b"".join(map(frame, records)))
    assert list(tfrecord.records(file, seen.append)) == records
    assert seen[-1] == file.stat().st_size
    assert list(tfrecord.records(write(tmp_path, b""))) == []


WHOLE = frame(b"first") + frame(b"second")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WHOLE[:-3], "expected 6 bytes of record 1, found the end of the file"),
        (WHOLE[: len(frame(b"first")) + 5], "expected the head of record 1, found 5 bytes"),
        (WHOLE.replace(b"second", b"secomd"), r"record 1 has a wrong checksum \(CRC-32C\)"),
        (b"\x06" + WHOLE[1:], "record 0 has a wrong checksum|expected the head of record 1"),
        (b"\xff" * 200, "found a length of 18446744073709551615"),
        (b"not a record at all, but some text", "found a length of"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=rf"some\.tfrecord: .*({words})"):
        list(tfrecord.records(write(tmp_path, content)))
