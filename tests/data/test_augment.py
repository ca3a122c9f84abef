"""Crop, flip and cutout against loops over images and pixels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theta0.data.augment import Augmentation, erase
from theta0.errors import DataError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def distinct(count: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Every pixel another value, none of them zero, so a wrong source pixel cannot pass."""
    return torch.arange(1, count * channels * height * width + 1).double().reshape(count, channels, height, width)


def shifted(image: torch.Tensor, down: int, right: int, flip: bool) -> torch.Tensor:
    """(C, H, W) moved pixel by pixel, zeros from outside."""
    channels, height, width = image.shape
    out = torch.zeros_like(image)
    for channel in range(channels):
        for row in range(height):
            for column in range(width):
                source_row = row + down
                source_column = (width - 1 - column if flip else column) + right
                if 0 <= source_row < height and 0 <= source_column < width:
                    out[channel, row, column] = image[channel, source_row, source_column]
    return out


@settings(deadline=None, max_examples=25)
@given(
    crop=st.integers(0, 3),
    flip=st.booleans(),
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_each_output_pixel_is_the_right_source_pixel(crop, flip, height, width, seed):
    images = distinct(3, 2, height, width)
    out = Augmentation(crop, flip)(images, generator(seed))
    for before, after in zip(images, out, strict=True):
        options = [
            (down, right, mirrored)
            for down in range(-crop, crop + 1)
            for right in range(-crop, crop + 1)
            for mirrored in ({False, flip})
        ]
        assert any(torch.equal(after, shifted(before, *option)) for option in options)


def test_crop_reaches_every_offset_and_images_differ():
    image = distinct(1, 1, 6, 6).expand(400, 1, 6, 6)
    out = Augmentation(crop=1, flip=False)(image, generator())
    seen = {tuple(each.flatten().tolist()) for each in out}
    wanted = {tuple(shifted(image[0], d, r, False).flatten().tolist()) for d in (-1, 0, 1) for r in (-1, 0, 1)}
    assert seen == wanted


def test_flip_happens_about_half_the_time():
    images = distinct(1, 1, 2, 3).expand(4000, 1, 2, 3)
    out = Augmentation(crop=0, flip=True)(images, generator())
    flipped = (out == images.flip(3)).all(dim=(1, 2, 3))
    kept = (out == images).all(dim=(1, 2, 3))
    assert bool((flipped ^ kept).all())
    # Five standard deviations of a fair coin.
    assert abs(int(flipped.sum()) - 2000) < 5 * 31.7


@settings(deadline=None, max_examples=40)
@given(side=st.integers(1, 9), row=st.integers(0, 5), column=st.integers(0, 6))
def test_erase_zeroes_exactly_the_clipped_square(side, row, column):
    images = torch.ones(1, 2, 6, 7)
    out = erase(images, torch.tensor([[row], [column]]), side)
    for i in range(6):
        for j in range(7):
            inside = 0 <= i - (row - side // 2) < side and 0 <= j - (column - side // 2) < side
            assert out[0, :, i, j].tolist() == [0.0 if inside else 1.0] * 2
    assert bool((images == 1).all())


def test_cutout_centres_cover_all_pixels():
    out = Augmentation(crop=0, flip=False, cutout=1)(torch.ones(2000, 3, 4, 5), generator())
    assert bool(((out == 0).sum(dim=(1, 2, 3)) == 3).all())
    hits = (out[:, 0] == 0).sum(0)
    # 100 expected in each of 20 pixels; 9.7 is the standard deviation.
    assert int(hits.min()) > 50
    assert int(hits.max()) < 150


def test_the_same_generator_seed_gives_the_same_and_another_another():
    images = torch.randn(8, 3, 32, 32, generator=generator(5))
    augmentation = Augmentation(4, True, 8)
    assert torch.equal(augmentation(images, generator(1)), augmentation(images, generator(1)))
    assert not torch.equal(augmentation(images, generator(1)), augmentation(images, generator(2)))


def test_the_input_and_the_global_seed_stay():
    images = torch.randn(4, 3, 8, 8, generator=generator())
    copy, state = images.clone(), torch.get_rng_state()
    Augmentation(2, True, 4)(images, generator())
    assert torch.equal(images, copy)
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_switched_on_changes_nothing():
    images = torch.randn(2, 1, 4, 4, generator=generator())
    assert torch.equal(Augmentation(0, False, 0)(images, generator()), images)


def test_standard_choice():
    assert Augmentation.standard((3, 32, 32)) == Augmentation(4, True, 0)
    assert Augmentation.standard((1, 28, 28)) == Augmentation(3, False, 0)


@pytest.mark.parametrize("wrong", [{"crop": -1}, {"cutout": 1.5}, {"crop": True}])
def test_wrong_options_are_named(wrong):
    with pytest.raises(DataError, match=rf"{next(iter(wrong))}.*0 or more"):
        Augmentation(**wrong)


def test_bytes_are_refused_as_zero_would_be_black():
    with pytest.raises(DataError, match=r"normalised float.*uint8"):
        Augmentation()(torch.zeros(1, 3, 8, 8, dtype=torch.uint8), generator())
