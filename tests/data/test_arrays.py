"""Arrays in memory: layouts, types, labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theta0.data import load
from theta0.errors import DataError

X = np.random.default_rng(0).integers(256, size=(6, 5, 4, 3), dtype=np.uint8)
Y = np.array([0, 1, 2, 0, 1, 2])
WANTED = torch.from_numpy(X).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    "x",
    [
        X,
        X.transpose(0, 3, 1, 2),
        torch.from_numpy(X),
        X.tolist(),
        (X / 255),
        (X / 255).astype(np.float32),
        torch.from_numpy(X) / 255,
    ],
    ids=["NHWC", "NCHW", "tensor", "list", "float64", "float32", "float tensor"],
)
def test_every_form_gives_the_same_bytes(x):
    if isinstance(x, list):
        x = np.array(x, dtype=np.uint8)
    assert torch.equal(load((x, Y)).train.images, WANTED)


def test_grey_images_get_a_channel():
    assert torch.equal(load((X[..., 0], Y)).train.images, WANTED[:, :1])
    assert torch.equal(load((X[..., :1], Y)).train.images, WANTED[:, :1])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4))
def test_floats_are_rounded_to_the_nearest_byte(values):
    x = np.array(values, dtype=np.float32).reshape(1, 2, 2)
    found = load((x, [0])).train.images.double().flatten().numpy()
    assert np.abs(found - x.astype(np.float64).flatten() * 255).max() <= 0.5 + 1e-4


def test_the_data_set_does_not_share_memory_with_the_array():
    x = X.transpose(0, 3, 1, 2).copy()
    train = load((x, Y)).train
    x[:] = 0
    assert torch.equal(train.images, WANTED)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X.astype(np.int64), r"uint8, or floats in \[0, 1\]; found int64; .*astype"),
        (X > 100, "found bool"),
        (X.astype(float), "found 0 to 255; divide by 255"),
        (X / 127.5 - 1, r"found -1 to 1; bring the values into \[0, 1\]"),
        (np.where(X[0, 0, 0, 0] == X, np.nan, X / 255), "without NaN; found nan to nan"),
        (np.full((6, 2, 2), np.inf), "found inf to inf"),
        (X[0, 0], r"have the shape .*; found \(4, 3\)"),
        (X.reshape(6, 3, 20, 1), "could be channels first or last; say which with layout='NCHW'"),
        (X[..., :2], "no dimension of 1 or 3 channels"),
        (X[:5], "found 5 images, 6 labels"),
        ([[[1, 2], [3]]], "rows of different lengths|Python objects"),
        (X[:0], "1 or more|at least one|0 images"),
    ],
)
def test_images_that_cannot_be_used(x, message):
    with pytest.raises(DataError, match=message):
        load((x, Y))


def test_layout_settles_it():
    x = X.reshape(6, 3, 20, 1)
    assert load((x, Y), layout="NCHW").train.shape == (3, 20, 1)
    assert load((x, Y), layout="NHWC").train.shape == (1, 3, 20)
    assert load((X[..., :2], Y), layout="NHWC").train.shape == (2, 5, 4)
    with pytest.raises(DataError, match="fits the shape; found 'NHW'"):
        load((X, Y), layout="NHW")


@pytest.mark.parametrize(
    ("labels", "classes", "encoded"),
    [
        ([0, 1, 2, 0, 1, 2], ("0", "1", "2"), [0, 1, 2, 0, 1, 2]),
        ([7, -1, 30, 7, -1, 30], ("-1", "7", "30"), [1, 0, 2, 1, 0, 2]),
        (np.array([[1], [2], [1], [2], [1], [1]], np.uint16), ("1", "2"), [0, 1, 0, 1, 0, 0]),
        (["dog", "cat", "dog", "ant", "cat", "dog"], ("ant", "cat", "dog"), [2, 1, 2, 0, 1, 2]),
        (np.array([b"b", b"a"] * 3), ("a", "b"), [1, 0] * 3),
        (torch.tensor([5, 4, 5, 4, 5, 4]), ("4", "5"), [1, 0] * 3),
    ],
)
def test_labels_become_classes(labels, classes, encoded):
    train = load((X, labels)).train
    assert train.classes == classes
    assert train.labels.tolist() == encoded
    assert train.labels.dtype == torch.int64


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(6), "integers or text; found float64"),
        (np.ones(6, bool), "found bool"),
        (np.eye(6, dtype=int), r"shape \(N,\) or \(N, 1\).*found \(6, 6\)"),
        ([None] * 6, "found Python objects"),
    ],
)
def test_labels_that_cannot_be_used(labels, message):
    with pytest.raises(DataError, match=message):
        load((X, labels))


def test_a_test_part_shares_the_classes_of_the_training_part():
    data = load((X, [3, 5, 9, 3, 5, 9], X[:2], [9, 3]))
    assert data.test.labels.tolist() == [2, 0]
    assert data.test.classes == data.train.classes == ("3", "5", "9")
    with pytest.raises(DataError, match=r"y_test: expected labels among the training labels; found 4"):
        load((X, [3, 5, 9, 3, 5, 9], X[:2], [9, 4]))
    with pytest.raises(DataError, match=r"y and y_test: .*found a mix"):
        load((X, Y, X[:2], ["0", "1"]))
