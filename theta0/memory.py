"""How this process keeps memory.

glibc hands blocks of some megabytes back to the system as soon as they are free, and every page of the next one is
faulted in anew: a quarter of the time of scoring on a CPU. A process of our own can keep them instead.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h


def keep_blocks() -> bool:
    """Keeps freed blocks for the next tensor, for the rest of this process; False where the C library is another."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))
