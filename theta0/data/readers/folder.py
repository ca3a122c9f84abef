"""A folder of images: ``root/<class>/*.png``, or ``root/train/<class>/*`` and ``root/test/<class>/*``.

The test part is also found under the names val, valid and validation. Classes are the names of the folders, sorted;
images come by class and then by file name. Hidden files and folders are left out. Images lie directly in the folder
of their class. What becomes of grey, colour and transparency is said in ``theta0.data.pictures``.
"""

from __future__ import annotations

from pathlib import Path

import torch

from theta0.data import pictures
from theta0.data.dataset import ImageDataset
from theta0.data.readers import Part, Reader, readers
from theta0.errors import DataError

TEST_NAMES = ("test", "val", "valid", "validation")


@readers.register("folder")
class Folder(Reader):
    """One folder per class."""

    wants = f"one folder of images per class, or train/<class> and test/<class> ({', '.join(pictures.SUFFIXES)})"

    def matches(self, path: Path) -> bool:
        """A folder of folders, one of which holds images."""
        if not path.is_dir():
            return False
        roots = _roots(path)
        # The training part decides: other formats also have a folder val/ with a folder of images in it.
        return any(_holds_images(folder) for folder in _folders(roots.get("train") or roots["test"]))

    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """The part as (N, 1 or 3, H, W); None where there is no folder for tests."""
        roots = _roots(path)
        if part not in roots:
            if part == "train":
                raise DataError(
                    f"{path}: expected a folder train/ beside {roots['test'].name}/; part='test' loads that"
                )
            return None
        # The classes of the training part number the labels of both.
        classes = [folder.name for folder in _folders(roots.get("train", roots[part]))]
        if len(classes) < 2:
            raise DataError(
                f"{roots.get('train', roots[part])}: expected a folder for each of two or more classes, found "
                f"{', '.join(classes) or 'none'}; a classifier needs something to tell apart"
            )
        files: list[Path] = []
        labels: list[int] = []
        for folder in _folders(roots[part]):
            if folder.name not in classes:
                raise DataError(
                    f"{folder}: expected one of the {len(classes)} classes of the training part, found a new one; "
                    f"add it there or remove it here"
                )
            images = pictures.listed(folder)
            if not images:
                raise DataError(
                    f"{folder}: expected images ({', '.join(pictures.SUFFIXES)}), found none; {_inside(folder)}"
                )
            files += images
            labels += [classes.index(folder.name)] * len(images)
        # Both parts decide about colour, so that both get the same number of channels.
        others = [f for name, root in roots.items() if name != part for c in _folders(root) for f in pictures.listed(c)]
        found = pictures.survey(files)
        if size is None:
            pictures.check_sizes(found, roots[part])
        colour = found.colour or pictures.survey(others).colour
        return ImageDataset(
            pictures.decode(files, colour=colour, size=size),
            torch.tensor(labels),
            tuple(classes),
            f"{path.resolve().name}/{part}",
        )


def _roots(path: Path) -> dict[Part, Path]:
    """Where each part lies; a folder without parts is all training data."""
    tests = [path / name for name in TEST_NAMES if (path / name).is_dir()]
    if not (path / "train").is_dir():
        # val/ without train/ is the test part only if it holds folders of images, not images: then it is a class.
        tests = [test for test in tests if any(_holds_images(folder) for folder in _folders(test))]
        if not tests:
            return {"train": path}
    if len(tests) > 1:
        raise DataError(
            f"{path}: expected one test part, found {' and '.join(test.name for test in tests)}; keep the one to "
            f"measure the final accuracy on, and move the other away"
        )
    roots: dict[Part, Path] = {"train": path / "train"} if (path / "train").is_dir() else {}
    if tests:
        roots["test"] = tests[0]
    return roots


def _folders(root: Path) -> list[Path]:
    return sorted(
        (f for f in root.iterdir() if f.is_dir() and not f.name.startswith(".")), key=lambda folder: folder.name
    )


def _holds_images(folder: Path) -> bool:
    return any(file.suffix.lower() in pictures.SUFFIXES and not file.name.startswith(".") for file in folder.iterdir())


def _inside(folder: Path) -> str:
    deeper = [inner.name for inner in _folders(folder) if _holds_images(inner)]
    if deeper:
        return f"they lie deeper, in {deeper[0]}/: move them up, directly into the folder of the class"
    return "add images or remove the folder"
