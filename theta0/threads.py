"""How many threads torch computes with here: for small networks fewer are faster, and searches run side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """``count`` of them inside, as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
