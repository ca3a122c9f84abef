"""Tells how far a long reading is."""

from __future__ import annotations

import time
from typing import TextIO


class Meter:
    """Prints to ``out`` each second on a terminal, each 30 seconds elsewhere; without ``out`` it is silent."""

    def __init__(self, out: TextIO | None = None, what: str = "") -> None:
        self._out, self._what = out, what
        self._start = time.monotonic()
        self._step = 1 if out is not None and out.isatty() else 30
        self._next = self._start + 1  # what is over at once needs no line
        self._printed = False

    def show(self, done: int, total: int) -> None:
        """``done`` of ``total``, in any unit."""
        now = time.monotonic()
        if self._out is None or now < self._next:
            return
        self._next = now + self._step
        self._printed = True
        share = min(done / max(total, 1), 1)
        left = (now - self._start) * (1 - share) / max(share, 1e-9)
        terminal = self._step == 1
        line = f"{self._what}: {share:.0%}, {left:.0f} s left "
        print(("\r" if terminal else "") + line, end="" if terminal else "\n", file=self._out, flush=True)

    def end(self) -> None:
        """Ends the line, where there is one."""
        if self._out is not None and self._printed and self._step == 1:
            print(file=self._out)
