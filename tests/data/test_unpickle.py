"""Pickles that are fine, damaged and malicious."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct

import numpy as np
import pytest

from theta0.data import unpickle
from theta0.errors import DataError

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 12)


def python2(entries: dict[bytes, bytes]) -> bytes:
    """A protocol-2 pickle as Python 2 wrote it: keys and raw bytes as byte strings; values are ready opcodes."""
    body = b"".join(short(key) + value for key, value in entries.items())
    return b"\x80\x02}(" + body + b"u."


def short(text: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(text)) + text


def python2_array(array: np.ndarray, code: bytes = b"u1") -> bytes:
    """numpy.core.multiarray._reconstruct and the state that follows it, as numpy 1 wrote them under Python 2."""
    shape = b"(" + b"".join(b"J" + struct.pack("<i", side) for side in array.shape) + b"t"
    dtype = (
        b"cnumpy\ndtype\n("
        + short(code)
        + b"K\x00K\x01tR(K\x03"
        + short(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + short(b"b") + b"tR"
    return made + b"(K\x01" + shape + dtype + b"\x89" + short(array.tobytes()) + b"tb"


def write(path, blob):
    file = path / "data_batch_1"
    file.write_bytes(blob)
    return file


def test_a_python_2_pickle_is_read(tmp_path):
    blob = python2({b"data": python2_array(PIXELS), b"labels": b"]K\x03a", b"batch_label": short(b"one")})
    pickletools.dis(blob, out=io.StringIO())
    content = unpickle.read(write(tmp_path, blob))
    assert content["data"].dtype == np.uint8
    assert content["data"].flags.writeable
    np.testing.assert_array_equal(content["data"], PIXELS)
    assert content["labels"] == [3]
    assert content["batch_label"] == b"one"


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_pickles_of_this_numpy_are_read(tmp_path, protocol):
    content = unpickle.read(write(tmp_path, pickle.dumps({"data": PIXELS, b"labels": [1, 2]}, protocol=protocol)))
    np.testing.assert_array_equal(content["data"], PIXELS)
    assert content["labels"] == [1, 2]


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_os_system_is_refused_and_does_not_run(tmp_path, protocol):
    witness = tmp_path / "ran"
    file = write(tmp_path, pickle.dumps({"data": Evil(os.system, f"touch {witness}")}, protocol=protocol))
    with pytest.raises(DataError, match=r"data_batch_1: .*(posix|nt)\.system.*refused"):
        unpickle.read(file)
    assert not witness.exists()
    pickle.loads(file.read_bytes())
    assert witness.exists(), "the pickle must be one that would have run"


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (eval, ("1+1",), r"builtin\S*\.eval"),
        (getattr, (1, "real"), r"builtin\S*\.getattr"),
        (np.load, ("x.npy",), r"numpy\S*\.load"),
        (np.frombuffer, (b"12",), r"numpy\S*\.frombuffer"),
    ],
)
def test_other_names_are_refused(tmp_path, function, arguments, name):
    with pytest.raises(DataError, match=name):
        unpickle.read(write(tmp_path, pickle.dumps({"data": Evil(function, *arguments)}, protocol=2)))


def test_an_allowed_name_of_another_module_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"asks for evil\.encode, .*refused"):
        unpickle.read(write(tmp_path, b"\x80\x02cevil\nencode\n(tR."))


def test_a_name_with_dots_does_not_slip_through(tmp_path):
    # Protocol 4 lets a name walk attributes: numpy's "ndarray.tofile" is not numpy's "ndarray".
    blob = b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93."
    with pytest.raises(DataError, match=r"numpy\.ndarray\.tofile"):
        unpickle.read(write(tmp_path, blob))


def test_a_pickle_cannot_change_the_stand_ins(tmp_path):
    build = b"\x80\x02cnumpy\ndtype\n}" + short(b"_answer") + b"K\x01sb."
    with pytest.raises(DataError, match="a state for a function"):
        unpickle.read(write(tmp_path, build))
    assert unpickle.read(write(tmp_path, pickle.dumps({"data": PIXELS}, protocol=2)))["data"].shape == (2, 12)


@pytest.mark.parametrize(
    ("blob", "found"),
    [
        (b"", "Ran out of input"),
        (pickle.dumps({"data": PIXELS}, protocol=2)[:-20], "."),
        (b"not a pickle at all", "."),
        (pickle.dumps([1, 2]), "a list"),
        (pickle.dumps({1: 2}), "the key 1"),
        (pickle.dumps({"data": PIXELS.astype(np.float32)}, protocol=2), "an array of 'f4'"),
        (pickle.dumps({"data": np.array([None])}, protocol=2), "an array of 'O8'"),
        (pickle.dumps({"data": np.asfortranarray(PIXELS)}, protocol=2), "C order"),
        (
            python2({b"data": python2_array(PIXELS).replace(b"J\x0c\x00\x00\x00", b"J\x0d\x00\x00\x00")}),
            r"\(2, 13\) with 24",
        ),
        (b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.", "_codecs.encode with 'rot13'"),
        (b"\x80\x02}(" + short(b"data") + b"cnumpy.core.multiarray\n_reconstruct\n)Ru.", "without its five fields"),
    ],
)
def test_damage_is_named(tmp_path, blob, found):
    with pytest.raises(DataError, match=rf"data_batch_1: expected a pickled dictionary.*found .*{found}"):
        unpickle.read(write(tmp_path, blob))


def test_a_file_beyond_all_measure_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(unpickle, "_LARGEST", 10)
    with pytest.raises(DataError, match="less than 10 bytes; found 11"):
        unpickle.read(write(tmp_path, b"x" * 11))
