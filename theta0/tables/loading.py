"""``load``: a table from a name or a path, and ``convert``: from there to theta0's own form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from theta0.errors import DataError, Theta0Error, nearest
from theta0.places import data_root
from theta0.tables import file, sources
from theta0.tables.meter import Meter
from theta0.tables.nasbench1shot1 import through_nasbench101
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table


def names() -> list[str]:
    """The tables that ``load`` knows by name."""
    return sorted(sources.TABLES)


def load(
    source: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    space: str | None = None,
    hardware: str | os.PathLike[str] | None = None,
    progress: TextIO | None = None,
) -> Table:
    """The table at a path, of any known source, or the one called ``source`` (``theta0.tables.names()``).

    A name means theta0's own form under ``root`` (or THETA0_DATA, or ~/.cache/theta0), else an installed package. A
    file called like a known name is written with a slash: ``"./nasbench201"``. ``space`` asks a NAS-Bench-101 table in
    a space of NAS-Bench-1Shot1; ``hardware`` is a file of HW-NAS-Bench to attach. Official files take minutes: convert
    them once.
    """
    place = None if root is None else Path(root)
    if isinstance(source, str) and source in sources.TABLES:
        table = _named(source, place)
    else:
        table = _read(Path(source).expanduser(), Meter(progress, Path(source).name))
    if space is not None and space != table.space:
        table = through_nasbench101(table, space)
    if hardware is not None:
        from theta0.tables.hardware import attach

        table = attach(table, hardware)
    return table


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    space: str | None = None,
    hardware: str | os.PathLike[str] | None = None,
    progress: TextIO | None = None,
) -> Table:
    """Reads a table as :func:`load` does and saves it at ``target``, a .npz file; returns it."""
    path = file.check_target(Path(target).expanduser())
    place = None if root is None else Path(root)
    if isinstance(source, str) and source in sources.TABLES:
        source = sources.official(source, place) or source
    table = load(source, root=root, space=space, hardware=hardware, progress=progress)
    file.save(table, path)
    return table


def reader(path: Path) -> Reader:
    """The one reader whose source ``path`` is."""
    if not path.exists():
        hint = f"; of the tables known by name, {nearest(path.name, sources.TABLES)}" if path.parent == Path() else ""
        raise DataError(f"{path}: expected a table, found nothing there (from {Path.cwd()}){hint}")
    made = [readers.get(name)() for name in readers.names()]
    found = [one for one in made if one.matches(path)]
    if len(found) == 1:
        return found[0]
    if found:
        looks = "; ".join(one.wants for one in found)
        raise DataError(f"{path}: expected one kind of table, found {len(found)} ({looks}); move one of them away")
    known = "\n  ".join(one.wants for one in made)
    raise DataError(f"{path}: no kind of table matches; looked for\n  {known}")


def _read(path: Path, meter: Meter) -> Table:
    one = reader(path)
    try:
        return one.read(path, meter)
    except DataError:
        raise
    except Theta0Error as error:  # numbers that no table can have
        raise DataError(f"{path}: {error}; the file is damaged or another one") from error
    finally:
        meter.end()


def _named(name: str, root: Path | None) -> Table:
    path = sources.ready(name, root)
    if path is not None:
        return _read(path, Meter())
    known = sources.known(name)
    if known.through is not None and sources.ready(known.through, root) is not None:
        return through_nasbench101(_named(known.through, root), name)
    wanted = data_root(root) / f"{known.through or name}.npz"
    found = sources.official(known.through or name, root)
    if found is not None:
        raise DataError(
            f"{found} is there, but must be converted, once, which takes minutes: "
            f"`theta0 data convert {found} {wanted}`"
        )
    obtain = sources.known(known.through or name).obtain
    raise DataError(
        f"the table {name!r} is not there: {wanted} does not exist. {obtain}. "
        f"`theta0 data convert FILE {wanted}` makes that file from any other"
    )
