"""Tiny ImageNet's layout, with three classes."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from theta0.data import load
from theta0.errors import DataError

WORDS = "n02\tcrane, a bird\nn01\tgoldfish, Carassius auratus\nn03\tcrane\nn99\tnot here\n"


def write(root):
    (root / "val" / "images").mkdir(parents=True)
    (root / "wnids.txt").write_text("n03\nn01\nn02\n")
    (root / "words.txt").write_text(WORDS)
    lines = []
    for number, wnid in enumerate(["n01", "n02", "n03"]):
        folder = root / "train" / wnid / "images"
        folder.mkdir(parents=True)
        for image in range(2):
            Image.new("L" if number else "RGB", (8, 8), 10 * number + image).save(folder / f"{wnid}_{image}.JPEG")
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text("")
        Image.new("RGB", (8, 8), (200 + number,) * 3).save(root / "val" / "images" / f"val_{number}.JPEG")
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t0\t7\t7")
    (root / "val" / "val_annotations.txt").write_text("\n".join(reversed(lines)) + "\n")
    return root


@pytest.fixture
def tiny(tmp_path):
    return write(tmp_path / "tiny-imagenet-200")


def test_both_parts(tiny):
    data = load(tiny)
    assert data.train.shape == (3, 8, 8)
    assert data.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.train.classes == ("goldfish", "crane (n02)", "crane (n03)")
    # JPEG may be off by one or two.
    np.testing.assert_allclose(data.train.images[2:, 1, 4, 4].int().numpy(), [10, 11, 20, 21], atol=2)
    assert data.test.labels.tolist() == [2, 1, 0]
    np.testing.assert_allclose(data.test.images[:, 0, 0, 0].int().numpy(), [202, 201, 200], atol=2)
    assert load("tiny_imagenet", root=tiny.parent, size=4).train.shape == (3, 4, 4)


def test_the_validation_images_load_alone(tiny):
    (tiny / "train" / "n02" / "images").rename(tiny / "moved")
    with pytest.raises(DataError, match=r"n02/images: expected the training images of class n02.*part='test'"):
        load(tiny)
    assert load(tiny, part="test").train.labels.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("wnids.txt", "n01\nn01\n", r"wnids\.txt: expected two or more different WordNet ids.*found 2 \(1 different\)"),
        ("val/val_annotations.txt", "val_0.JPEG\tn77\n", r"val_annotations\.txt, line 1: .*found 'val_0\.JPEG\\tn77'"),
        ("val/val_annotations.txt", "\nval_0.JPEG n01\n", r"line 2: expected a file name, a tab"),
        ("val/val_annotations.txt", "val_9.JPEG\tn01\n", r"line 1: expected an image in .*found no 'val_9\.JPEG'"),
        ("val/val_annotations.txt", "../images/val_0.JPEG\tn01\n", "line 1: expected an image in"),
        (
            "val/val_annotations.txt",
            "val_0.JPEG\tn01\n",
            "expected one line for each image.*found 1 lines for 3 images",
        ),
        ("val/val_annotations.txt", "", "found 0 lines for 3 images"),
    ],
)
def test_damage_is_named(tiny, file, text, message):
    (tiny / file).write_text(text)
    with pytest.raises(DataError, match=message):
        load(tiny)


@pytest.mark.parametrize("file", ["words.txt", "val/val_annotations.txt"])
def test_a_missing_or_binary_table(tiny, file):
    (tiny / file).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=rf"{file}: expected text, found other bytes"):
        load(tiny)
    (tiny / file).unlink()
    with pytest.raises(DataError, match=rf"{file}: expected this file of Tiny ImageNet, found none"):
        load(tiny)


def test_mixed_sizes(tiny):
    Image.new("RGB", (9, 8)).save(tiny / "train" / "n01" / "images" / "n01_5.JPEG")
    with pytest.raises(DataError, match="found 2 sizes"):
        load(tiny)
