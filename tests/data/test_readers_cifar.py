"""CIFAR in both layouts: built here with few records, and the real CIFAR-100 test half."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from theta0.data import load
from theta0.data.readers import cifar
from theta0.errors import DataError

RECORDS = 7
TRAIN = [f"data_batch_{number}" for number in range(1, 6)]


@pytest.fixture(autouse=True)
def few_records(request, monkeypatch):
    """The real counts make files of 30 MB; only the real-data test uses them."""
    if "shared" not in request.fixturenames:
        for counts in (cifar._TEN, cifar._HUNDRED):
            monkeypatch.setitem(counts, "train", RECORDS)
            monkeypatch.setitem(counts, "test", RECORDS)


def part(seed, classes):
    random = np.random.default_rng(seed)
    return random.integers(classes, size=RECORDS, dtype=np.uint8), random.integers(
        256, size=(RECORDS, 3072), dtype=np.uint8
    )


def write_ten(folder, python=False):
    folder.mkdir(exist_ok=True)
    made = {}
    for seed, name in enumerate([*TRAIN, "test_batch"]):
        labels, pixels = made[name] = part(seed, 10)
        if python:
            content = {b"data": pixels, b"labels": labels.tolist(), b"batch_label": b"x"}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        else:
            np.concatenate([labels[:, None], pixels], axis=1).tofile(folder / f"{name}.bin")
    names = [f"kind {number}" for number in range(10)]
    if python:
        (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": names}, protocol=2))
    else:
        (folder / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    return made


def write_hundred(folder, python=False):
    folder.mkdir(exist_ok=True)
    made = {}
    for seed, name in enumerate(["train", "test"]):
        labels, pixels = made[name] = part(seed, 100)
        coarse = np.full_like(labels, 19)
        if python:
            content = {b"data": pixels, b"fine_labels": labels.tolist(), b"coarse_labels": coarse.tolist()}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        else:
            np.concatenate([coarse[:, None], labels[:, None], pixels], axis=1).tofile(folder / f"{name}.bin")
    names = [f"kind {number}" for number in range(100)]
    if python:
        (folder / "meta").write_bytes(pickle.dumps({b"fine_label_names": [n.encode() for n in names]}, protocol=2))
    else:
        (folder / "fine_label_names.txt").write_text("\n".join(names))
    return made


def check(dataset, pieces):
    assert dataset.labels.tolist() == [label for labels, _ in pieces for label in labels.tolist()]
    pixels = np.concatenate([pixels for _, pixels in pieces])
    for index, channel, row, column in [(0, 0, 0, 0), (3, 1, 2, 5), (len(dataset) - 1, 2, 31, 30)]:
        assert int(dataset.images[index, channel, row, column]) == pixels[index, channel * 1024 + row * 32 + column]
    np.testing.assert_array_equal(dataset.images.flatten(1).numpy(), pixels)


@pytest.mark.parametrize("python", [False, True])
def test_cifar10(tmp_path, python):
    made = write_ten(tmp_path / "ten", python)
    data = load(tmp_path / "ten")
    check(data.train, [made[name] for name in TRAIN])
    check(data.test, [made["test_batch"]])
    assert data.train.classes == tuple(f"kind {number}" for number in range(10))
    assert (data.train.name, data.test.name) == ("cifar10/train", "cifar10/test")
    assert load(tmp_path / "ten", size=16).train.shape == (3, 16, 16)


@pytest.mark.parametrize("python", [False, True])
def test_cifar100_has_fine_labels(tmp_path, python):
    made = write_hundred(tmp_path / "hundred", python)
    data = load(tmp_path / "hundred")
    check(data.train, [made["train"]])
    check(data.test, [made["test"]])
    assert len(data.train.classes) == 100


@pytest.mark.parametrize("python", [False, True])
def test_a_missing_half_is_named_and_the_other_loads(tmp_path, python):
    made = write_hundred(tmp_path / "hundred", python)
    gone = tmp_path / "hundred" / ("train" if python else "train.bin")
    gone.unlink()
    with pytest.raises(DataError, match=rf"missing {gone.name} \(found: test.*get\('cifar100'\).*part='test'"):
        load(tmp_path / "hundred")
    data = load(tmp_path / "hundred", part="test")
    check(data.train, [made["test"]])
    assert data.train.name == "cifar100/test"
    assert data.test is None


def test_one_missing_batch(tmp_path):
    write_ten(tmp_path / "ten")
    (tmp_path / "ten" / "data_batch_3.bin").unlink()
    (tmp_path / "ten" / "test_batch.bin").unlink()
    with pytest.raises(DataError, match=r"train part of cifar10 is missing data_batch_3\.bin \(found") as caught:
        load(tmp_path / "ten")
    assert "part='test'" not in str(caught.value)


@pytest.mark.parametrize("change", [-3073, -1, 1, 3073])
def test_a_file_of_the_wrong_length(tmp_path, change):
    write_ten(tmp_path / "ten")
    file = tmp_path / "ten" / "data_batch_2.bin"
    blob = file.read_bytes()
    file.write_bytes(blob[:change] if change < 0 else blob + bytes(change))
    with pytest.raises(DataError, match=rf"data_batch_2\.bin: expected {7 * 3073} bytes.*found {7 * 3073 + change};"):
        load(tmp_path / "ten")


@pytest.mark.parametrize("python", [False, True])
def test_a_label_beyond_the_classes(tmp_path, python):
    made = write_ten(tmp_path / "ten", python)
    labels, pixels = made["data_batch_4"]
    labels[5] = 10
    if python:
        blob = pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=2)
        (tmp_path / "ten" / "data_batch_4").write_bytes(blob)
    else:
        np.concatenate([labels[:, None], pixels], axis=1).tofile(tmp_path / "ten" / "data_batch_4.bin")
    with pytest.raises(DataError, match=r"data_batch_4\S*: expected labels 0 to 9, found 10 in record 5"):
        load(tmp_path / "ten")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({b"labels": [1] * RECORDS}, "expected 'data' of shape .7, 3072., found a NoneType"),
        ({b"data": np.zeros((3, 3072), np.uint8), b"labels": [1] * RECORDS}, r"found \(3, 3072\)"),
        ({b"data": np.zeros((7, 3072), np.uint8), b"labels": [1] * 6}, "7 integers from 0 to 255; found 6 entries"),
        ({b"data": np.zeros((7, 3072), np.uint8), b"labels": [1] * 6 + [-1]}, "7 integers"),
        ({b"data": np.zeros((7, 3072), np.uint8), b"fine_labels": [1] * 7}, "found keys data, fine_labels"),
    ],
)
def test_a_pickle_of_something_else(tmp_path, content, message):
    write_ten(tmp_path / "ten", python=True)
    (tmp_path / "ten" / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match=rf"data_batch_1: .*{message}"):
        load(tmp_path / "ten")


def test_class_names_missing_or_of_another_data_set(tmp_path):
    write_ten(tmp_path / "ten")
    names = tmp_path / "ten" / "batches.meta.txt"
    names.write_text("a\nb\na\n")
    with pytest.raises(DataError, match=r"meta\.txt: expected 10 different class names, found 3 \(2 different\)"):
        load(tmp_path / "ten")
    names.unlink()
    with pytest.raises(DataError, match=r"meta\.txt: the class names are missing"):
        load(tmp_path / "ten")


def test_both_layouts_in_one_folder(tmp_path):
    write_ten(tmp_path / "ten")
    write_ten(tmp_path / "ten", python=True)
    with pytest.raises(DataError, match=r"found 2 \(cifar_binary: .*cifar_python"):
        load(tmp_path / "ten")


def test_both_data_sets_in_one_folder(tmp_path):
    write_ten(tmp_path / "mixed")
    write_hundred(tmp_path / "mixed")
    with pytest.raises(DataError, match="either CIFAR-10 or CIFAR-100, found both"):
        load(tmp_path / "mixed")


def test_the_real_test_half_of_cifar100(shared, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    with np.load(shared / "images" / "labels.npz", allow_pickle=False) as archive:
        labels, names = archive["cifar100_test"].astype(np.uint8), archive["cifar100_classes"].tolist()
    with pillow.open(shared / "images" / "cifar100_test.webp") as sheet:
        tiles = np.asarray(sheet.convert("RGB")).reshape(100, 32, 100, 32, 3)
    pixels = tiles.transpose(0, 2, 4, 1, 3).reshape(10_000, 3072)
    zeros = np.zeros((10_000, 1), np.uint8)
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    np.concatenate([zeros, labels[:, None], pixels], axis=1).tofile(folder / "test.bin")
    (folder / "fine_label_names.txt").write_text("\n".join(names))
    with pytest.raises(DataError, match=r"missing train\.bin \(found: test\.bin\)"):
        load("cifar100", root=tmp_path)
    test = load("cifar100", root=tmp_path, part="test").train
    assert torch.bincount(test.labels).tolist() == [100] * 100
    # The published statistics of CIFAR-100, which are those of the training half, to the second digit.
    mean, std = test.mean_std()
    np.testing.assert_allclose(mean, (0.507, 0.487, 0.441), atol=0.005)
    np.testing.assert_allclose(std, (0.267, 0.256, 0.276), atol=0.005)
    x, y = test.batch(200, 0, balanced=True)
    assert x.shape == (200, 3, 32, 32)
    assert torch.bincount(y).tolist() == [2] * 100
