"""numpy files, from good to hostile, and real Tiny ImageNet thumbnails."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from theta0.data import load
from theta0.errors import DataError

X = np.random.default_rng(0).integers(256, size=(12, 6, 5, 3), dtype=np.uint8)
Y = np.arange(12) % 3


def save(tmp_path, **entries):
    np.savez(tmp_path / "mine.npz", **entries)
    return tmp_path / "mine.npz"


def test_one_part(tmp_path):
    data = load(save(tmp_path, x=X, y=Y))
    assert data.test is None
    assert data.train.name == "mine/train"
    np.testing.assert_array_equal(data.train.images.numpy(), X.transpose(0, 3, 1, 2))
    assert data.train.labels.tolist() == Y.tolist()
    assert load(tmp_path / "mine.npz", size=3).train.shape == (3, 3, 3)


def test_two_parts_with_class_names(tmp_path):
    file = save(tmp_path, x_train=X, y_train=Y, x_test=X[:4], y_test=Y[:4], classes=["ant", "bee", "cat"])
    data = load(file)
    assert (len(data.train), len(data.test)) == (12, 4)
    assert data.test.classes == ("ant", "bee", "cat")
    alone = load(file, part="test")
    assert alone.train.fingerprint() == data.test.fingerprint()


def test_text_labels_follow_the_order_of_the_class_names(tmp_path):
    data = load(save(tmp_path, x=X, y=np.array(["cat", "ant", "dog"])[Y], classes=["dog", "ant", "cat"]))
    assert data.train.classes == ("dog", "ant", "cat")
    assert data.train.labels.tolist() == [[2, 1, 0][label] for label in Y]
    with pytest.raises(DataError, match=r"expected labels among the 2 class names; found 'dog'"):
        load(save(tmp_path, x=X, y=np.array(["cat", "ant", "dog"])[Y], classes=["ant", "cat"]))


def test_a_folder_of_npy_files(tmp_path):
    for name, array in {"x_train": X, "y_train": Y, "x_test": X[:4], "y_test": Y[:4]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    data = load(tmp_path)
    np.testing.assert_array_equal(data.test.images.numpy(), X[:4].transpose(0, 3, 1, 2))
    data.train.images[0] = 0
    np.testing.assert_array_equal(np.load(tmp_path / "x_train.npy"), X)


def test_an_ambiguous_layout_is_resolved_in_the_file(tmp_path):
    strange = X.reshape(12, 3, 10, 3)
    with pytest.raises(DataError, match=r"mine\.npz: x: .*\(12, 3, 10, 3\) could be.*entry called layout"):
        load(save(tmp_path, x=strange, y=Y))
    assert load(save(tmp_path, x=strange, y=Y, layout="NCHW")).train.shape == (3, 10, 3)
    assert load(save(tmp_path, x=strange, y=Y, layout="NHWC")).train.shape == (3, 3, 10)
    with pytest.raises(DataError, match=r"layout is .*found 'HWCN'"):
        load(save(tmp_path, x=strange, y=Y, layout="HWCN"))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"x": X}, "expected both x and y, found x without y"),
        ({"x": X, "y": Y, "x_test": X}, "expected both x_test and y_test, found x_test without y_test"),
        ({"images": X, "labels": Y}, "expected x and y, or x_train and y_train; found images, labels"),
        ({"x": X, "y": Y, "x_train": X, "y_train": Y}, "found x, y, x_train, y_train; remove one"),
        ({"x_test": X, "y_test": Y}, "expected x_train and y_train"),
        ({"x": X, "y": Y, "classes": [1, 2, 3]}, "classes are a list of names; found"),
        ({"x": X, "y": Y, "classes": ["a", "b"]}, r"y: expected labels among 0 to 1 for 2 class names; found 2"),
        ({"x": X, "y": Y[:5]}, "found 12 images, 5 labels"),
    ],
)
def test_wrong_entries_are_named(tmp_path, entries, message):
    with pytest.raises(DataError, match=rf"mine\.npz: .*{message}"):
        load(save(tmp_path, **entries))


def test_python_objects_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"mine\.npz: .*Python objects, which are refused"):
        load(save(tmp_path, x=np.array([{}], dtype=object), y=Y))
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "mine.npz").unlink()
    with pytest.raises(DataError, match=r"x\.npy: .*refused"):
        load(tmp_path)


@pytest.mark.parametrize("change", [lambda blob: b"", lambda blob: b"text", lambda blob: blob[: len(blob) // 2]])
def test_a_damaged_archive(tmp_path, change):
    file = save(tmp_path, x=X, y=Y)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataError, match=r"mine\.npz: expected numpy arrays, found .*damaged or another"):
        load(file)


def test_flipped_bytes_inside_an_archive(tmp_path):
    np.savez_compressed(tmp_path / "mine.npz", x=X, y=Y)
    blob = bytearray((tmp_path / "mine.npz").read_bytes())
    blob[300:310] = bytes(byte ^ 255 for byte in blob[300:310])
    (tmp_path / "mine.npz").write_bytes(blob)
    with pytest.raises(DataError, match=r"mine\.npz: expected numpy arrays, found"):
        load(tmp_path / "mine.npz")


def test_one_kind_of_file_under_the_name_of_the_other(tmp_path):
    with (tmp_path / "mine.npz").open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match="found a single array"):
        load(tmp_path / "mine.npz")
    with (tmp_path / "x.npy").open("wb") as file:
        np.savez(file, x=X)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "mine.npz").unlink()
    with pytest.raises(DataError, match=r"x\.npy: expected a single array"):
        load(tmp_path)


@pytest.mark.parametrize("length", [5, 60, 500])
def test_a_truncated_npy_file(tmp_path, length):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:length])
    with pytest.raises(DataError, match=r"x\.npy: expected numpy arrays, found"):
        load(tmp_path)


def test_the_real_thumbnails(shared):
    data = load(shared / "images" / "tiny16.npz")
    assert data.train.shape == (3, 16, 16)
    assert torch.bincount(data.train.labels).tolist() == [20] * 120
    x, y = data.train.batch(120, 0, balanced=True)
    assert sorted(y.tolist()) == list(range(120))
    assert abs(float(x.mean())) < 0.2
    assert abs(float(x.std()) - 1) < 0.1
