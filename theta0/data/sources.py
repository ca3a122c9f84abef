"""The data sets that theta0 knows by name: where they lie on disk, and how to download them.

Nothing is downloaded unless ``get`` is called. Sizes and sha256 are those that TensorFlow Datasets
publishes, each found again in an unrelated project. The data are the property of their authors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from theta0.data import archive, download
from theta0.errors import DataError, nearest
from theta0.places import data_root


@dataclass(frozen=True)
class File:
    """One file to download: its name under the base URL, bytes and sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """A known data set.

    ``folders`` are the places under the data root where it may lie, the one that ``get`` fills first. ``unpacks`` says
    that the one file is an archive that holds that folder. ``classes`` names what the files themselves do not.
    """

    base: str
    files: tuple[File, ...]
    folders: tuple[str, ...]
    unpacks: bool = False
    classes: tuple[str, ...] | None = None


_KRIZ = "https://www.cs.toronto.edu/~kriz"

SOURCES: dict[str, Source] = {
    "cifar10": Source(
        _KRIZ,
        (
            File(
                "cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
            ),
        ),
        ("cifar-10-batches-bin", "cifar-10-batches-py", "cifar10"),
        unpacks=True,
    ),
    "cifar100": Source(
        _KRIZ,
        (
            File(
                "cifar-100-binary.tar.gz", 168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
            ),
        ),
        ("cifar-100-binary", "cifar-100-python", "cifar100"),
        unpacks=True,
    ),
    "mnist": Source(
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        (
            File(
                "train-images-idx3-ubyte.gz",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            File(
                "train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            File(
                "t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            File("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        ("mnist", "MNIST/raw"),
        classes=tuple("0123456789"),
    ),
    "fashion_mnist": Source(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        (
            File(
                "train-images-idx3-ubyte.gz",
                26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            File(
                "train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
            ),
            File(
                "t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
            ),
            File("t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
        ("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
        classes=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
    ),
    "tiny_imagenet": Source(
        "http://cs231n.stanford.edu",
        (File("tiny-imagenet-200.zip", 248100043, "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821"),),
        ("tiny-imagenet-200", "tiny_imagenet"),
        unpacks=True,
    ),
}


def names() -> list[str]:
    """The data sets that ``load`` knows by name, sorted; ``digits`` needs no download."""
    return sorted([*SOURCES, "digits"])


def get(name: str, *, root: str | os.PathLike[str] | None = None, mirror: str | None = None) -> Path:
    """Downloads the data set ``name`` to the data root and returns its folder; what is already there is left alone.

    ``mirror`` (or the environment's THETA0_MIRROR) is another URL under which the files lie by their own names;
    ``{name}`` in it becomes the name of the data set. The sha256 of every file is checked, wherever it comes from.
    """
    if name == "digits":
        raise DataError("'digits' comes with scikit-learn and needs no download; theta0.data.load('digits')")
    if name not in SOURCES:
        raise DataError(f"no data set to download is called {name!r}; {nearest(name, SOURCES)}")
    source = SOURCES[name]
    base = (mirror or os.environ.get("THETA0_MIRROR") or source.base).replace("{name}", name).rstrip("/")
    place = data_root(root)
    folder = place / source.folders[0]
    if source.unpacks:
        if folder.is_dir():
            return folder
        (file,) = source.files
        packed = _fetched(base, place, file)
        archive.extract(packed, source.folders[0])
        packed.unlink()
        return folder
    for file in source.files:
        _fetched(base, folder, file)
    return folder


def _fetched(base: str, folder: Path, file: File) -> Path:
    target = folder / file.name
    if download.matches(target, size=file.size, sha256=file.sha256):
        return target
    return download.fetch(f"{base}/{file.name}", target, size=file.size, sha256=file.sha256)


def candidates(name: str, root: Path) -> list[Path]:
    """Where the data set ``name`` may lie under ``root``, in the order of the search."""
    folders = SOURCES[name].folders
    nested = [f"{name}/{folder}" for folder in folders if folder != name]
    return [root / folder for folder in (*folders, *nested)]
