"""The steps behind image folders, one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from theta0.data import pictures
from theta0.errors import DataError


def save(path, shape, **options):
    array = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    Image.fromarray(array).save(path, **options)
    return path


def test_listed_is_sorted_and_leaves_out_what_is_no_image(tmp_path):
    for name in ("b.png", "a.JPG", ".hidden.png", "notes.txt", "noend"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.png").mkdir()
    assert [file.name for file in pictures.listed(tmp_path)] == ["a.JPG", "b.png"]


def test_survey_counts_upright_sizes(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 8
    files = [save(tmp_path / "1.png", (3, 5)), save(tmp_path / "2.png", (5, 3), exif=exif)]
    found = pictures.survey(files)
    assert dict(found.sizes) == {(5, 3): 2}
    assert not found.colour
    assert pictures.survey([*files, save(tmp_path / "3.png", (3, 5, 3))]).colour


def test_decode_keeps_the_order_and_the_pixels(tmp_path):
    files = [save(tmp_path / f"{name}.png", (4, 6, 3)) for name in "ba"]
    images = pictures.decode(files, colour=True, size=None)
    assert images.shape == (2, 3, 4, 6)
    for file, image in zip(files, images, strict=True):
        with Image.open(file) as opened:
            assert torch.equal(image.permute(1, 2, 0), torch.from_numpy(np.array(opened)))


def test_an_animation_gives_its_first_frame(tmp_path):
    frames = [Image.new("L", (3, 3), value) for value in (10, 200)]
    frames[0].save(tmp_path / "1.gif", save_all=True, append_images=frames[1:])
    assert pictures.decode([tmp_path / "1.gif"], colour=False, size=None).unique().tolist() == [10]


def test_decode_refuses_another_shape_and_nothing(tmp_path):
    files = [save(tmp_path / "1.png", (3, 5)), save(tmp_path / "2.png", (5, 3))]
    with pytest.raises(DataError, match=r"2\.png: expected shape \(1, 3, 5\), found \(1, 5, 3\)"):
        pictures.decode(files, colour=False, size=None)
    assert pictures.decode(files, colour=False, size=3).shape == (2, 1, 3, 3)
    with pytest.raises(DataError, match="no image file"):
        pictures.decode([], colour=True, size=None)


@pytest.mark.parametrize("array", [np.full((4, 4), 60_000, np.uint16), np.full((4, 4), 0.5, np.float32)])
def test_more_than_eight_bits_are_refused_by_both_steps(tmp_path, array):
    Image.fromarray(array).save(tmp_path / "deep.tif")
    with pytest.raises(DataError, match=r"deep\.tif: expected 8 bits"):
        pictures.survey([tmp_path / "deep.tif"])
    with pytest.raises(DataError, match=r"deep\.tif: expected 8 bits"):
        pictures.decode([tmp_path / "deep.tif"], colour=False, size=4)
