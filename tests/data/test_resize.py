"""Scaling to one size: what is cut, what is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from theta0.data.resize import fit
from theta0.errors import DataError


def random_images(*shape: int) -> torch.Tensor:
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_the_right_size_is_left_alone():
    images = random_images(2, 3, 6, 6)
    assert fit(images, 6) is images


def test_a_long_side_loses_its_ends_and_nothing_else():
    images = random_images(2, 3, 6, 11)
    assert torch.equal(fit(images, 6), images[:, :, :, 2:8])
    assert torch.equal(fit(images.mT, 6), images.mT[:, :, 2:8])


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 8), (17, 17, 5), (6, 6, 11), (40, 20, 10)])
def test_scaling_agrees_with_pillow(height, width, size):
    images = random_images(1, 1, height, width)
    scaled = round(width * size / min(height, width)), round(height * size / min(height, width))
    wanted = np.asarray(Image.fromarray(images[0, 0].numpy()).resize(scaled, Image.Resampling.BILINEAR)).astype(int)
    top, left = (scaled[1] - size) // 2, (scaled[0] - size) // 2
    wanted = wanted[top : top + size, left : left + size]
    # Pillow works in fixed point: one level of difference is rounding.
    assert np.abs(fit(images, size)[0, 0].numpy().astype(int) - wanted).max() <= 1


@pytest.mark.parametrize(("height", "width", "size"), [(1, 9, 4), (7, 5, 3), (3, 4, 8), (100, 33, 32)])
def test_every_shape_becomes_square_and_chunks_do_not_matter(height, width, size, monkeypatch):
    images = random_images(5, 2, height, width)
    whole = fit(images, size)
    assert whole.shape == (5, 2, size, size)
    monkeypatch.setattr("theta0.data.resize._CHUNK", 1)
    assert torch.equal(fit(images, size), whole)


def test_enlarging_a_gradient_keeps_it_monotone():
    ramp = torch.arange(0, 250, 50, dtype=torch.uint8).expand(1, 1, 5, 5)
    steps = fit(ramp, 15)[0, 0, 7].int().diff()
    assert int(steps.min()) >= 0
    assert int(steps.sum()) > 150


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True])
def test_a_size_that_is_none(wrong):
    with pytest.raises(DataError, match="1 or more; found"):
        fit(random_images(1, 1, 2, 2), wrong)
