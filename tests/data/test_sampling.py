"""The draws behind a batch: fair to images and to classes."""

from __future__ import annotations

import pytest
import torch

from theta0.data import sampling
from theta0.errors import DataError

LABELS = torch.tensor([0, 1, 2] * 10)
NAMES = ("a", "b", "c")


@pytest.mark.parametrize("balanced", [False, True])
def test_every_image_is_drawn_equally_often(balanced):
    draws = torch.stack([sampling.choose(LABELS, 10, seed, NAMES, balanced=balanced) for seed in range(900)])
    hits = torch.bincount(draws.flatten(), minlength=30)
    # 300 expected of each; 14 is the standard deviation.
    assert int(hits.min()) > 230
    assert int(hits.max()) < 370


def test_the_image_too_many_comes_from_a_class_drawn_by_the_seed():
    draws = [sampling.choose(LABELS, 10, seed, NAMES, balanced=True) for seed in range(60)]
    largest = {int(torch.bincount(LABELS[draw]).argmax()) for draw in draws}
    assert largest == {0, 1, 2}


def test_a_balanced_batch_is_not_sorted_by_class():
    labels = LABELS[sampling.choose(LABELS, 30, 0, NAMES, balanced=True)]
    assert labels.tolist() != sorted(labels.tolist())


def test_normalize_leaves_the_bytes_alone():
    images = torch.full((2, 1, 2, 2), 255, dtype=torch.uint8)
    out = sampling.normalize(images, ((0.5,), (0.25,)))
    assert out.unique().tolist() == [2.0]
    assert images.dtype == torch.uint8
    assert images.unique().tolist() == [255]


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, None, "0"])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(DataError, match="a seed is an integer"):
        sampling.seeded(seed)
