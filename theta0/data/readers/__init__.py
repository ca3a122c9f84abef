"""One file per data format; each registers a ``Reader``, so a new format is a new file here and nothing else.

    @readers.register("myformat")
    class MyFormat(Reader):
        wants = "a folder with an index.my file"

        def matches(self, path: Path) -> bool: ...
        def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None: ...

``loading.load`` asks every reader whether a path is its own; exactly one must say yes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

from theta0.data.dataset import ImageDataset
from theta0.registry import Registry

Part = Literal["train", "test"]


class Reader(ABC):
    """What every data format answers."""

    wants: ClassVar[str]
    """What a path must hold to be of this format, as the end of "looked for ...": shown where nothing matches."""

    @abstractmethod
    def matches(self, path: Path) -> bool:
        """Whether ``path`` (which exists) has the files of this format; looks at names, not into the files.

        A path with only some of the files matches: ``read`` then says which are missing.
        """

    @abstractmethod
    def read(self, path: Path, part: Part, size: int | None) -> ImageDataset | None:
        """One part, named ``<data set>/<part>``; None where the format allows that there is no test part, and none is.

        ``size`` asks for square images of that side. A file that is missing, damaged or not what its name says is a
        ``DataError`` with the file, what was expected, what was found, and the way out.
        """


readers: Registry[type[Reader]] = Registry("data format", "theta0.data.readers")
