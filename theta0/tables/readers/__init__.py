"""One file per source of tables; each registers a ``Reader``, so a new source is a new file here and nothing else.

    @readers.register("mybenchmark")
    class MyBenchmark(Reader):
        wants = "a .mine file"

        def matches(self, path: Path) -> bool: ...
        def read(self, path: Path, meter: Meter) -> Table: ...

``theta0.tables.load`` asks every reader whether a path is its own; exactly one must say yes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from theta0.registry import Registry
from theta0.tables.meter import Meter
from theta0.tables.table import Table


class Reader(ABC):
    """What every source of tables answers."""

    wants: ClassVar[str]
    """What a path must be, as the end of "looked for ...": shown where nothing matches."""
    slow: ClassVar[bool] = False
    """Reading takes minutes: such files are converted once, and not read whenever their name is asked for."""

    @abstractmethod
    def matches(self, path: Path) -> bool:
        """Whether ``path`` (which exists) is of this source; looks at names, not into large files."""

    @abstractmethod
    def read(self, path: Path, meter: Meter) -> Table:
        """The table. A file that is missing, damaged or of another layout is a ``DataError`` that names it."""


readers: Registry[type[Reader]] = Registry("table source", "theta0.tables.readers")
