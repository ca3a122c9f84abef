"""Tiny ImageNet as published (tiny-imagenet-200): 200 classes, 64 x 64, 500 training and 50 validation images each.

Layout: wnids.txt (one WordNet id per line), words.txt (id, tab, words), train/<id>/images/*.JPEG, val/images/*.JPEG
with val/val_annotations.txt (file, tab, id, tab, box). The labels of the official test images are not public, so the
validation images are the test part. Every image becomes RGB; a few are grey.
"""

from __future__ import annotations

from pathlib import Path

import torch

from theta0.data import pictures
from theta0.data.dataset import ImageDataset
from theta0.data.readers import Part, Reader, readers
from theta0.errors import DataError


@readers.register("tiny_imagenet")
class TinyImageNet(Reader):
    """``tiny-imagenet-200``."""

    wants = "wnids.txt with train/<id>/images and val/val_annotations.txt (Tiny ImageNet)"

    def matches(self, path: Path) -> bool:
        """A folder with wnids.txt."""
        return (path / "wnids.txt").is_file()

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, 3, 64, 64); "test" gives the validation images."""
        ids = [line.strip() for line in _lines(path / "wnids.txt") if line.strip()]
        if len(ids) < 2 or len(set(ids)) != len(ids):
            raise DataError(
                f"{path / 'wnids.txt'}: expected two or more different WordNet ids, one per line, found {len(ids)} "
                f"({len(set(ids))} different)"
            )
        ids.sort()
        files, labels = _training(path, ids) if part == "train" else _validation(path, ids)
        if size is None:
            pictures.check_sizes(pictures.survey(files), path)
        images = pictures.decode(files, colour=True, size=size)
        return ImageDataset(images, torch.tensor(labels), _class_names(path, ids), f"{path.resolve().name}/{part}")


def _training(path: Path, ids: list[str]) -> tuple[list[Path], list[int]]:
    files: list[Path] = []
    labels: list[int] = []
    for label, wnid in enumerate(ids):
        folder = path / "train" / wnid / "images"
        images = pictures.listed(folder) if folder.is_dir() else []
        if not images:
            raise DataError(
                f"{folder}: expected the training images of class {wnid} (of wnids.txt), found none; unpack the "
                f"archive again, or load the validation images alone with part='test'"
            )
        files += images
        labels += [label] * len(images)
    return files, labels


def _validation(path: Path, ids: list[str]) -> tuple[list[Path], list[int]]:
    table, folder = path / "val" / "val_annotations.txt", path / "val" / "images"
    number = {wnid: label for label, wnid in enumerate(ids)}
    files: list[Path] = []
    labels: list[int] = []
    for line, text in enumerate(_lines(table), start=1):
        if not text.strip():
            continue
        fields = text.split("\t")
        if len(fields) < 2 or fields[1] not in number:
            raise DataError(
                f"{table}, line {line}: expected a file name, a tab and a WordNet id of wnids.txt, found {text[:80]!r}"
            )
        # A name with a path in it would read a file from elsewhere.
        file = folder / fields[0]
        if Path(fields[0]).name != fields[0] or not file.is_file():
            raise DataError(f"{table}, line {line}: expected an image in {folder}, found no {fields[0]!r} there")
        files.append(file)
        labels.append(number[fields[1]])
    unnamed = set(pictures.listed(folder) if folder.is_dir() else []) - set(files)
    if unnamed or not files or len(set(files)) != len(files):
        raise DataError(
            f"{table}: expected one line for each image of {folder}, found {len(files)} lines for "
            f"{len(set(files)) + len(unnamed)} images; unpack the archive again"
        )
    return files, labels


def _class_names(path: Path, ids: list[str]) -> tuple[str, ...]:
    """The first word of each class; two classes of one word (there are two cranes) get their id as well."""
    words: dict[str, str] = {}
    for line in _lines(path / "words.txt"):
        wnid, _, text = line.partition("\t")
        words[wnid.strip()] = text.split(",")[0].strip()
    names = [words.get(wnid) or wnid for wnid in ids]
    return tuple(f"{name} ({wnid})" if names.count(name) > 1 else name for name, wnid in zip(names, ids, strict=True))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").splitlines()
    except FileNotFoundError as error:
        raise DataError(f"{file}: expected this file of Tiny ImageNet, found none; unpack the archive again") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: expected text, found other bytes ({error}); unpack the archive again") from error
