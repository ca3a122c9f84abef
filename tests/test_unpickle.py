"""The restricted readers of pickles: what is refused, and that a stream can be emptied while it comes."""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch

from theta0.errors import DataError
from theta0.unpickle import RECORDS, TENSORS, Restricted, Streaming, guarded

HERE = Path("some.file")


def restricted(blob: bytes) -> Any:
    return Restricted(io.BytesIO(blob), HERE, RECORDS, what="table", advice="take another").load()


def streaming(blob: bytes) -> Any:
    return Streaming(io.BytesIO(blob), HERE, RECORDS, lambda filled: None, what="table", advice="take another").load()


BOTH = pytest.mark.parametrize("load", [restricted, streaming])


class Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@BOTH
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_plain_content(load: Any, protocol: int) -> None:
    content = {
        "a": [1, 2.5, None, True, "text", b"bytes", (1, 2)],
        ("key", 777): OrderedDict([(0, np.float64(0.5)), (1, np.float32(0.25)), (2, np.int64(3)), (3, np.bool_(True))]),
    }
    found = load(pickle.dumps(content, protocol=protocol))
    assert found == {**content, ("key", 777): {0: 0.5, 1: 0.25, 2: 3, 3: True}}
    assert type(found["key", 777][0]) is float


@BOTH
def test_numbers_of_the_other_byte_order(load: Any) -> None:
    assert load(pickle.dumps({"x": np.array([1.5], dtype=">f8")[0]}, protocol=2)) == {"x": 1.5}
    with pytest.raises(ValueError, match="a number of the type 'c16'"):
        load(pickle.dumps({"x": np.complex128(1)}, protocol=2))


@BOTH
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_nothing_is_run(load: Any, protocol: int, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    blob = pickle.dumps({"x": Evil(os.system, f"touch {witness}")}, protocol=protocol)
    with pytest.raises(
        DataError, match=r"some\.file: this pickle asks for (posix|nt)\.system.* refused.* take another"
    ):
        load(blob)
    assert not witness.exists()
    pickle.loads(blob)
    assert witness.exists(), "the pickle must be one that would have run"


@BOTH
@pytest.mark.parametrize(
    "call", [(eval, "1+1"), (getattr, 1, "real"), (np.load, "x.npy"), (__import__, "os"), (OrderedDict.fromkeys, "ab")]
)
def test_other_names_are_refused(load: Any, call: tuple[Any, ...]) -> None:
    with pytest.raises(DataError, match="refused"):
        load(pickle.dumps(Evil(*call), protocol=2))


@BOTH
@pytest.mark.parametrize(
    "blob",
    [
        b"\x80\x02ccollections\nOrderedDict\n}X\x07\x00\x00\x00_answerK\x01sb.",  # a state for a function
        b"\x80\x02ccollections\nOrderedDict\nK\x05\x85R.",  # OrderedDict(5)
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # OrderedDict.__new__, past the stand-in
        b"\x80\x02]K\x01}X\x01\x00\x00\x00aK\x02s\x86b.",  # attributes for a list
        b"\x80\x02K\x05)R.",  # a number that is called
        b"\x80\x02\x82\x01.",  # a code of the extension registry
        b"\x80\x02r\xff\xff\xff\xff.",
        b"",
        b"\x80\x02}",
        b"\x80\x02h\x07.",  # a memory that is not there
        b"\x80\x99.",
    ],
)
def test_tricks_and_damage_are_errors(load: Any, blob: bytes) -> None:
    with (
        pytest.raises(DataError, match=r"some\.file: expected a table, found .+; take another"),
        guarded(HERE, "a table", "take another"),
    ):
        load(blob)


def test_a_number_that_the_file_makes_up_reserves_nothing() -> None:
    assert streaming(b"\x80\x02K\x05r\x00\x00\x00\x10.") == 5


def test_tensors_are_left_out() -> None:
    file = io.BytesIO()
    torch.save({"weights": torch.ones(3), "x": 1}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    names = {**RECORDS, **TENSORS}
    for _ in range(3):  # magic number, version, facts
        Restricted(file, HERE, names, what="table", advice="").load()
    content = Restricted(file, HERE, names, what="table", advice="").load()
    assert content["x"] == 1
    assert type(content["weights"]).__name__ == "Ignored"


def test_a_stream_is_emptied_while_it_comes() -> None:
    """Memory stays small: the file's dictionaries of numbers add up to a hundred times what is held at any time."""
    content = [{"big": dict.fromkeys(range(500), float(i)), "last": i} for i in range(200)]
    largest = 0
    held: list[dict[Any, Any]] = []

    def seen(filled: dict[Any, Any]) -> None:
        nonlocal largest
        held.append(filled)
        if "last" in filled:
            filled["big"].clear()
        largest = max(largest, sum(len(each) for each in held))

    blob = pickle.dumps(content, protocol=2)
    stream: BinaryIO = io.BytesIO(blob)
    found = Streaming(stream, HERE, {}, seen, what="table", advice="").load()
    assert [each["last"] for each in found] == list(range(200))
    assert largest < 1000
    assert not any(each["big"] for each in found)


def test_equal_texts_are_held_once() -> None:
    texts = ["".join(["x-valid", "@199"]) for _ in range(3)]
    assert len({id(text) for text in texts}) == 3
    reader = Streaming(io.BytesIO(pickle.dumps(texts, protocol=2)), HERE, {}, lambda f: None, what="", advice="")
    assert reader.load() == texts
    assert len({id(reader.memo[i]) for i in range(1, 4)}) == 1
