"""The command data: image data sets and tabular benchmarks."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from theta0.errors import Theta0Error

if TYPE_CHECKING:
    from theta0.tables import Table


def data(
    action: Annotated[
        Literal["list", "get", "convert", "check"],
        "list what is known, download it, convert a table to a file that loads at once, or look into something",
    ],
    source: Annotated[str | None, "the name of a data set or table, or for convert and check also a path"] = None,
    target: Annotated[
        Path | None, "for convert: the .npz file to write (default: the table's place, by its name)"
    ] = None,
    *,
    root: Annotated[Path | None, "the folder of known data (default: THETA0_DATA or ~/.cache/theta0)"] = None,
    space: Annotated[str | None, "ask a NAS-Bench-101 table in this space, such as nasbench1shot1_1"] = None,
    hardware: Annotated[Path | None, "attach the latencies of this HW-NAS-Bench file to a table"] = None,
) -> None:
    """List, download, convert and check image data sets and tabular benchmarks."""
    from theta0 import tables
    from theta0.places import data_root

    if source is None and action != "list":
        raise Theta0Error(f"`theta0 data {action}` needs the name of a data set or table; `theta0 data list` has them")
    if target is not None and action != "convert":
        raise Theta0Error(f"`theta0 data {action}` writes no file; leave {str(target)!r} out")
    if action == "convert" or (source is not None and _is_table(source)):
        assert source is not None
        if action == "get":
            path = tables.get(source, root)
            print(path)
            print(f"convert it, once: theta0 data convert {source}")
        elif action == "convert":
            if target is None and source in tables.names():
                target = data_root(root) / f"{source}.npz"
                target.parent.mkdir(parents=True, exist_ok=True)
            if target is None:
                raise Theta0Error("`theta0 data convert` needs the .npz file to write after the source")
            made = tables.convert(source, target, root=root, space=space, hardware=hardware, progress=sys.stderr)
            print(f"{target}: {len(made):,} rows of {made.name}")
        else:
            _facts(tables.load(source, root=root, space=space, hardware=hardware, progress=sys.stderr))
        return
    if space is not None or hardware is not None:
        raise Theta0Error("--space and --hardware are for tables; leave them out for image data")
    _images(action, source, root)


def _is_table(source: str) -> bool:
    """Whether a name or path is that of a tabular benchmark; a .npz file may also hold images."""
    from theta0 import tables
    from theta0.tables import file
    from theta0.tables.readers import readers

    path = Path(source)
    if source in tables.names():
        return True
    if not path.exists():  # a name that is nearer to a table's than to a data set's, or a table's file
        return bool(difflib.get_close_matches(source, tables.names(), n=1)) or path.suffix in (".parquet", ".tfrecord")
    if path.suffix == ".npz":
        return file.is_table(path)
    return path.suffix == ".parquet" or any(readers.get(name)().matches(path) for name in readers.names())


def _facts(table: Table) -> None:
    """What ``theta0 data check`` says of a table."""
    from theta0.tables import checksum

    print(f"{table.name}: {len(table):,} rows, space {table.space}")
    print(f"    source: {table.source}")
    for dataset in table.datasets:
        for epochs in table.epochs(dataset):
            runs = table.runs(dataset, epochs)
            few, many = int(runs.min()), int(runs.max())
            said = "mean of runs" if not many else f"runs {many}" if few == many else f"runs {few} to {many}"
            best = f"best validation {table.validation(dataset, epochs).max():.3f}"
            best += (
                f", test {table.test(dataset, epochs).max():.3f}" if table.has_test(dataset, epochs) else ", no test"
            )
            seconds = table.seconds(dataset, epochs).mean()
            print(f"    {dataset}, {epochs} epochs: {said}, {best}, {seconds:,.0f} s on average")
    costs = list(dict.fromkeys(name for _, name in table.costs))
    print(f"    costs: {', '.join(costs) or 'none'}")
    if table.suspect is not None and table.suspect.any():
        print(f"    suspect rows: {int(table.suspect.sum()):,}")
    for note in table.notes:
        print(f"    note: {note}")
    print(f"    sha256: {checksum(table)}")


def _images(action: str, source: str | None, root: Path | None) -> None:
    """The part of ``data`` that is about images; ``list`` shows the tables after them."""
    from theta0.data import get, load, names
    from theta0.data.sources import SOURCES, candidates
    from theta0.places import data_root

    if action == "list":
        place = data_root(root)
        for name in names():
            known = SOURCES.get(name)
            if known is None:
                print(f"{name:<14} comes with scikit-learn")
                continue
            found = next((str(path) for path in candidates(name, place) if path.is_dir()), None)
            megabytes = sum(file.size for file in known.files) / 1e6
            print(f"{name:<14} {found or f'not there; `theta0 data get {name}` downloads {megabytes:.0f} MB'}")
        _list_tables(root)
        return
    assert source is not None
    if action == "get":
        print(get(source, root=root))
        return
    loaded = load(source, root=root)
    for part in (loaded.train, loaded.test):
        if part is None:
            print("no test part; one will be split off")
            continue
        counts = part.labels.bincount(minlength=len(part.classes))
        print(f"{part.name}: {len(part):,} images of {' x '.join(map(str, part.shape))}, {len(part.classes)} classes")
        print(f"    images in a class: {int(counts.min()):,} to {int(counts.max()):,}")
        for title, values in zip(("mean", "deviation"), part.mean_std(), strict=True):
            print(f"    {title} of the channels: {', '.join(f'{value:.4f}' for value in values)}")
        print(f"    fingerprint: {part.fingerprint()}")


def _list_tables(root: Path | None) -> None:
    from theta0.tables import sources

    print("\ntables")
    for name, known in sources.TABLES.items():
        print(f"{name:<17} {known.title}")
        through = known.through or name
        if (path := sources.ready(through, root)) is not None:
            place = str(path) if known.through is None else f"through {through}: {path}"
        elif (path := sources.official(through, root)) is not None:
            place = f"{path}; `theta0 data convert {through}` makes a file that loads at once"
        else:
            place = f"not there; {known.obtain}"
        print(f"    {place}")
