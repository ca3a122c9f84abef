"""What a user sees while a search works: a line for each thing that happened, with the time since its start."""

from __future__ import annotations

import time
from typing import TextIO


class Told:
    """Prints lines to ``out``, if there is one."""

    def __init__(self, out: TextIO | None) -> None:
        self._out, self._start = out, time.perf_counter()

    def __call__(self, text: str) -> None:
        """A line."""
        if self._out is not None:
            minutes, seconds = divmod(int(time.perf_counter() - self._start), 60)
            print(f"{minutes:3d}:{seconds:02d}  {text}", file=self._out, flush=True)
