"""The data set that needs no file."""

from __future__ import annotations

import sys

import pytest
import torch
from sklearn.datasets import load_digits

from theta0.data.digits import digits
from theta0.errors import DataError


def test_every_digit_is_there_once_and_scaled():
    data = digits()
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (1438, 359)
    assert (data.train.name, data.test.name) == ("digits/train", "digits/test")
    images = torch.cat([data.train.images, data.test.images]).flatten(1)
    labels = torch.cat([data.train.labels, data.test.labels])
    bunch = load_digits()
    wanted = torch.from_numpy(bunch.images * 255 / 16 + 0.5).floor().to(torch.uint8).flatten(1)
    rows = lambda x, y: sorted(map(tuple, torch.cat([x, y[:, None]], 1).tolist()))  # noqa: E731
    assert rows(images.long(), labels) == rows(wanted.long(), torch.from_numpy(bunch.target).long())
    assert int(images.max()) == 255


def test_the_split_is_stratified_and_always_the_same():
    first, second = digits(), digits()
    assert first.train.fingerprint() == second.train.fingerprint()
    shares = torch.bincount(first.test.labels) / torch.bincount(torch.cat([first.train.labels, first.test.labels]))
    assert bool(((shares - 0.2).abs() < 1 / 170).all())


def test_without_scikit_learn_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match="pip install scikit-learn"):
        digits()
