"""The idx format, plain and gzipped, whole and damaged."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from theta0.data import load
from theta0.errors import DataError

NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def idx(array, magic=None):
    header = bytes([0, 0, 8, array.ndim]) if magic is None else magic
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write(folder, packed=False, classes=10):
    """Both parts; returns them as {part: (images, labels)}."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    made = {}
    for part, count in (("train", 30), ("test", 20)):
        labels = np.arange(count, dtype=np.uint8) % classes
        made[part] = random.integers(256, size=(count, 5, 4), dtype=np.uint8), labels
        for name, array in zip(NAMES[part], made[part], strict=True):
            blob = idx(array)
            (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(blob, 1) if packed else blob)
    return made


@pytest.mark.parametrize("packed", [False, True])
def test_both_parts(tmp_path, packed):
    made = write(tmp_path / "idx", packed)
    data = load(tmp_path / "idx")
    for dataset, part in ((data.train, "train"), (data.test, "test")):
        np.testing.assert_array_equal(dataset.images[:, 0].numpy(), made[part][0])
        np.testing.assert_array_equal(dataset.labels.numpy(), made[part][1])
    assert data.train.shape == (1, 5, 4)
    assert data.train.classes == tuple("0123456789")


def test_names_with_a_dot_are_known(tmp_path):
    write(tmp_path / "idx")
    for file in list((tmp_path / "idx").iterdir()):
        file.rename(file.with_name(file.name.replace("-idx", ".idx")))
    assert len(load(tmp_path / "idx").test) == 20


def test_fashion_mnist_gets_its_class_names_by_name_only(tmp_path):
    write(tmp_path / "fashion_mnist", packed=True)
    data = load("fashion_mnist", root=tmp_path)
    assert data.train.classes[-1] == data.test.classes[-1] == "Ankle boot"
    assert data.train.name == "fashion_mnist/train"
    assert load(tmp_path / "fashion_mnist").train.classes[-1] == "9"


def test_a_known_name_with_other_labels(tmp_path):
    write(tmp_path / "mnist", classes=7)
    with pytest.raises(DataError, match="expected the 10 classes of 'mnist', found labels for 7"):
        load("mnist", root=tmp_path)


def test_a_missing_file_is_named_and_the_other_part_loads(tmp_path):
    write(tmp_path / "idx")
    (tmp_path / "idx" / NAMES["test"][1]).unlink()
    with pytest.raises(DataError, match=r"test part is missing t10k-labels-idx1-ubyte \(or \.gz\).*part='train'"):
        load(tmp_path / "idx")
    assert len(load(tmp_path / "idx", part="train").train) == 30


IMAGES = np.zeros((30, 5, 4), np.uint8)


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "expected the magic number 0x00000803, found an empty file"),
        (idx(np.zeros(30, np.uint8)), "expected the magic number 0x00000803, found 0x00000801"),
        (idx(IMAGES, b"\0\0\x0d\3"), "found 0x00000d03"),
        (b"\x89PNG and more", "found 0x89504e47"),
        (idx(IMAGES)[:10], "expected 3 dimensions, found the end"),
        (idx(IMAGES)[:-1], r"expected 600 bytes for dimensions \(30, 5, 4\), found 599"),
        (idx(IMAGES) + b"x", "expected 600 bytes .*found more"),
        (b"\0\0\x08\3" + struct.pack(">3I", 0, 28, 28), r"found dimensions \(0, 28, 28\)"),
        (b"\0\0\x08\3" + b"\xff" * 12, "expected 1 to 4294967296 bytes"),
        (idx(IMAGES[:29]), "expected one label for each of the 29 images.*found 30"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damage_is_named(tmp_path, blob, message, packed):
    write(tmp_path / "idx", packed)
    file = tmp_path / "idx" / (NAMES["train"][0] + ".gz" * packed)
    file.write_bytes(gzip.compress(blob) if packed else blob)
    with pytest.raises(DataError, match=rf"train-\w+-idx\d-ubyte.*{message}"):
        load(tmp_path / "idx")


@pytest.mark.parametrize(
    "change", [lambda blob: blob[:-9], lambda blob: b"no gzip", lambda blob: blob[:30] + b"x" * 200]
)
def test_a_damaged_gzip_file(tmp_path, change):
    write(tmp_path / "idx", packed=True)
    file = tmp_path / "idx" / f"{NAMES['train'][0]}.gz"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz: expected a readable idx file, found"):
        load(tmp_path / "idx")
