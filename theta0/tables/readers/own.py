"""Tables in the form of theta0 itself."""

from __future__ import annotations

from pathlib import Path

from theta0.tables import file
from theta0.tables.meter import Meter
from theta0.tables.readers import Reader, readers
from theta0.tables.table import Table


@readers.register("theta0")
class Own(Reader):
    """What ``theta0 data convert`` writes."""

    wants = "a .npz file that `theta0 data convert` wrote"

    def matches(self, path: Path) -> bool:
        """Whether it is a .npz file."""
        return path.suffix == ".npz"

    def read(self, path: Path, meter: Meter) -> Table:
        """The table."""
        return file.load(path)
