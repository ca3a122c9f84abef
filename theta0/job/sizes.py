"""The sizes of the skeleton that a search may take: the paper's, then shallower and thinner ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from theta0.job.asked import Asked
from theta0.job.drawing import BeyondLimitsError, drawn, objective
from theta0.job.parts import Parts
from theta0.space import Skeleton

Change = Mapping[str, int]
"""Options of the skeleton that are less than usual."""

_RUNGS = ((0.6, 1.0), (0.2, 1.0), (0.2, 0.5), (0.2, 0.25))
"""Shares of the skeleton's depth and of its channels, one after the other."""
_DEPTHS = {"cells": 1, "layers": 3}
"""What skeletons call their depth, and the least of it."""
_LEAST_CHANNELS = 4


def sizes(asked: Asked, parts: Parts) -> list[Change]:
    """All of which some architectures are within the limits, the largest first."""
    every: list[Change] = [{}, *rungs(asked.made_skeleton(parts), asked.options)]
    _check(asked, parts, every[-1])  # where the smallest cannot do, none can
    for place, change in enumerate(every[:-1]):
        with contextlib.suppress(BeyondLimitsError):
            _check(asked, parts, change)
            return every[place:]
    return every[-1:]


def _check(asked: Asked, parts: Parts, change: Change) -> None:
    if asked.limits:
        drawn(asked, objective(asked, parts, asked.made_skeleton(parts, **change)), 1, "limits")


def rungs(skeleton: Skeleton, fixed: Mapping[str, Any]) -> Iterator[Change]:
    """Changes that make a skeleton smaller and smaller; what the user has ``fixed`` stays."""
    names = {one.name for one in fields(skeleton)} - set(fixed)
    before: Change = {}
    for depth, width in _RUNGS:
        shares = {name: (depth, least) for name, least in _DEPTHS.items()} | {"channels": (width, _LEAST_CHANNELS)}
        found = {
            name: max(least, round(getattr(skeleton, name) * share))
            for name, (share, least) in shares.items()
            if name in names
        }
        changed = {name: value for name, value in found.items() if value < getattr(skeleton, name)}
        if changed and changed != before:
            yield changed
            before = changed
