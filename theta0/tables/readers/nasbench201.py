"""The official NAS-Bench-201 file (Dong and Yang, ICLR 2020), ``NAS-Bench-201-v1_1-096897.pth``, without torch.

``torch.save`` wrote it: a zip archive with the pickle as its ``data.pkl``, or, before torch 1.6, a row of pickles (a
magic number, a version, facts of the machine, then the content). Both are read as a stream of records.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import BinaryIO, cast

from theta0.errors import DataError
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.readers.nats_bench import collect
from theta0.tables.results201 import Collector
from theta0.tables.table import Table
from theta0.unpickle import Restricted, guarded

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_WHAT = {"what": "NAS-Bench-201 file", "advice": "take the official file, see docs/tables.md"}
_DAMAGED = "the file is damaged, cut short or another one; download it again"


@readers.register("nasbench201")
class NASBench201File(Reader):
    """One .pth file."""

    wants = "a file NAS-Bench-201-....pth"
    slow = True

    def matches(self, path: Path) -> bool:
        """By its suffix."""
        return path.suffix == ".pth" and path.is_file()

    def read(self, path: Path, meter: Meter) -> Table:
        """The table of all cells in the file."""
        collector = Collector(path)
        with path.open("rb") as file:

            def tick() -> None:
                meter.show(file.tell(), path.stat().st_size)

            if zipfile.is_zipfile(file):
                file.seek(0)
                try:
                    with zipfile.ZipFile(file) as archive:
                        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
                        if len(names) != 1:
                            raise DataError(f"{path}: expected one data.pkl in it, found {len(names)}; {_DAMAGED}")
                        with archive.open(names[0]) as stream:
                            collect(cast(BinaryIO, stream), path, collector, tick, _WHAT)
                except zipfile.BadZipFile as error:
                    raise DataError(f"{path}: expected a whole zip archive, found {error}; {_DAMAGED}") from error
            else:
                file.seek(0)
                with guarded(path, "a file of torch.save", _DAMAGED):
                    head = [Restricted(file, path, {}, **_WHAT).load() for _ in range(2)]
                    if head != [_MAGIC, _VERSION]:
                        raise ValueError("another magic number or version")
                    Restricted(file, path, {}, **_WHAT).load()
                collect(file, path, collector, tick, _WHAT)
        return collector.table("NAS-Bench-201", f"NAS-Bench-201, {path.name}")
