"""Folders of images: layouts, sizes, colours, and files that are no images."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from PIL import Image

from theta0.data import load
from theta0.errors import DataError


def picture(path, shape=(6, 5, 3), seed=0, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(path)
    return array


def two_classes(root, **options):
    return {
        name: picture(root / name, seed=seed, **options)
        for seed, name in enumerate(["cat/b.png", "cat/a.png", "ant/z.bmp", "dog/10.tif", "dog/9.tif"])
    }


def test_classes_are_sorted_and_images_come_by_name(tmp_path):
    made = two_classes(tmp_path / "photos")
    (tmp_path / "photos" / ".git").mkdir()
    (tmp_path / "photos" / ".git" / "x.png").write_bytes(b"")
    (tmp_path / "photos" / "cat" / ".DS_Store.png").write_bytes(b"")
    (tmp_path / "photos" / "cat" / "notes.txt").write_text("no image")
    data = load(tmp_path / "photos")
    assert data.test is None
    assert data.train.classes == ("ant", "cat", "dog")
    assert data.train.labels.tolist() == [0, 1, 1, 2, 2]
    assert data.train.name == "photos/train"
    order = ["ant/z.bmp", "cat/a.png", "cat/b.png", "dog/10.tif", "dog/9.tif"]
    wanted = np.stack([made[name] for name in order]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(data.train.images.numpy(), wanted)


@pytest.mark.parametrize("suffix", ["png", "webp", "jpg", "jpeg", "bmp", "gif", "tif", "PNG"])
def test_every_suffix_is_read(tmp_path, suffix):
    for name in ("a", "b"):
        picture(tmp_path / name / f"1.{suffix}", shape=(4, 4))
    assert load(tmp_path).train.images.shape[0] == 2


@pytest.mark.parametrize("test_name", ["test", "val", "valid", "validation"])
def test_train_and_test_folders(tmp_path, test_name):
    two_classes(tmp_path / "train")
    picture(tmp_path / test_name / "dog" / "1.png")
    data = load(tmp_path)
    assert data.test.classes == ("ant", "cat", "dog")
    assert data.test.labels.tolist() == [2]
    alone = load(tmp_path, part="test")
    assert alone.train.fingerprint() == data.test.fingerprint()
    assert alone.test is None


def test_classes_called_test_and_val_are_classes(tmp_path):
    for name in ("test", "val"):
        picture(tmp_path / name / "1.png")
    assert load(tmp_path).train.classes == ("test", "val")


def test_parts_that_do_not_fit(tmp_path):
    two_classes(tmp_path / "train")
    picture(tmp_path / "test" / "cow" / "1.png")
    with pytest.raises(DataError, match=r"cow: expected one of the 3 classes of the training part"):
        load(tmp_path)
    picture(tmp_path / "val" / "cat" / "1.png")
    with pytest.raises(DataError, match="expected one test part, found test and val"):
        load(tmp_path)


def test_a_test_part_alone(tmp_path):
    for name in ("a", "b"):
        picture(tmp_path / "test" / name / "1.png")
    with pytest.raises(DataError, match="expected a folder train/ beside test/"):
        load(tmp_path)
    assert load(tmp_path, part="test").train.classes == ("a", "b")
    with pytest.raises(DataError, match=r"there is no test part.*theta0\.data\.split"):
        load(tmp_path / "test", part="test")


def test_mixed_sizes_list_what_is_there_and_size_solves_it(tmp_path):
    two_classes(tmp_path)
    wide = picture(tmp_path / "dog" / "wide.png", shape=(6, 9, 3))
    with pytest.raises(DataError, match=r"found 2 sizes \(5 of 5 x 6, 1 of 9 x 6\); load\(\.\.\., size=5\)"):
        load(tmp_path)
    data = load(tmp_path, size=6)
    assert data.train.shape == (3, 6, 6)
    np.testing.assert_array_equal(data.train.images[-1].numpy(), wide[:, 1:7].transpose(2, 0, 1))


def test_grey_stays_grey_and_any_colour_makes_all_rgb(tmp_path):
    grey = picture(tmp_path / "train" / "a" / "1.png", shape=(4, 4))
    picture(tmp_path / "train" / "b" / "1.png", shape=(4, 4), mode="LA")
    picture(tmp_path / "test" / "b" / "1.png", shape=(4, 4))
    data = load(tmp_path)
    assert data.train.shape == data.test.shape == (1, 4, 4)
    np.testing.assert_array_equal(data.train.images[0, 0].numpy(), grey)
    picture(tmp_path / "test" / "a" / "1.png", shape=(4, 4, 3))
    data = load(tmp_path)
    assert data.train.shape == data.test.shape == (3, 4, 4)
    for channel in range(3):
        np.testing.assert_array_equal(data.train.images[0, channel].numpy(), grey)


def test_palettes_and_transparency(tmp_path):
    picture(tmp_path / "a" / "1.png", shape=(4, 4, 4))
    Image.new("P", (4, 4), 3).save(tmp_path / "a" / "2.png", transparency=bytes(range(10)))
    picture(tmp_path / "b" / "1.png", shape=(4, 4, 3))
    assert load(tmp_path).train.images.shape == (3, 3, 4, 4)


def test_a_photograph_is_turned_as_its_camera_says(tmp_path):
    for name in ("a", "b"):
        array = np.zeros((4, 8, 3), np.uint8)
        array[:, :4] = 255
        exif = Image.Exif()
        exif[0x0112] = 6
        (tmp_path / name).mkdir()
        Image.fromarray(array).save(tmp_path / name / "1.png", exif=exif)
    picture(tmp_path / "b" / "2.png", shape=(8, 4, 3))
    images = load(tmp_path).train.images
    assert images.shape == (3, 3, 8, 4)
    assert bool((images[0, :, :4] == 255).all())
    assert bool((images[0, :, 4:] == 0).all())


@pytest.mark.parametrize("size", [None, 4])
def test_sixteen_bits_are_refused(tmp_path, size):
    two_classes(tmp_path)
    Image.fromarray(np.full((6, 5), 60_000, np.uint16)).save(tmp_path / "dog" / "deep.png")
    with pytest.raises(DataError, match=r"deep\.png: expected 8 bits per channel, found Pillow mode 'I;16'"):
        load(tmp_path, size=size)


@pytest.mark.parametrize("blob", [b"", b"this is text", None])
def test_an_unreadable_image_is_named(tmp_path, blob):
    two_classes(tmp_path)
    file = tmp_path / "cat" / "broken.png"
    # None: a real file, cut inside its pixels.
    picture(file, shape=(6, 5, 3))
    file.write_bytes(file.read_bytes()[:80] if blob is None else blob)
    with pytest.raises(DataError, match=r"broken\.png: expected a readable image, found: .*replace or remove"):
        load(tmp_path)


@pytest.mark.parametrize("limit", [10, 20])
def test_a_decompression_bomb(tmp_path, monkeypatch, limit):
    # 30 pixels: an error at a limit of 10, only a warning of Pillow at 20. Neither is decoded.
    two_classes(tmp_path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError, match=rf"z\.bmp: expected an image of at most {limit} pixels"):
        load(tmp_path)


def test_too_little(tmp_path):
    with pytest.raises(DataError, match=r"no data format matches \(it holds nothing\)"):
        load(tmp_path)
    picture(tmp_path / "only" / "1.png")
    with pytest.raises(DataError, match="two or more classes, found only"):
        load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: expected images .*found none; add images or remove"):
        load(tmp_path)
    picture(tmp_path / "empty" / "more" / "1.png")
    with pytest.raises(DataError, match="they lie deeper, in more/"):
        load(tmp_path)


def test_without_pillow_the_way_out_is_named(tmp_path, monkeypatch):
    two_classes(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match="pip install pillow"):
        load(tmp_path)


def test_the_order_does_not_depend_on_the_file_system(tmp_path, monkeypatch):
    two_classes(tmp_path)
    before = load(tmp_path).train
    listing = type(tmp_path).iterdir
    monkeypatch.setattr(type(tmp_path), "iterdir", lambda self: reversed(list(listing(self))))
    after = load(tmp_path).train
    assert torch.equal(before.images, after.images)
    assert before.fingerprint() == after.fingerprint()
