"""Seeds from seeds: one for each part of a piece of work, so that no part depends on how much another one drew."""

from __future__ import annotations

import hashlib

from theta0.errors import Theta0Error


def derived(seed: int, *parts: int | str) -> int:
    """A seed below 2**63 for the part called ``parts``; the same on every machine."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise Theta0Error(f"a seed is an integer from 0 to 2**63 - 1; found {seed!r}")
    return int.from_bytes(hashlib.sha256(repr((seed, *parts)).encode()).digest()[:8], "big") >> 1
