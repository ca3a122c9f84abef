"""Architectures by the codes of their choices, for searchers that draw each choice by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theta0.errors import Theta0Error
from theta0.searchers import Task


def allowed_of(task: Task, codes: Sequence[int]) -> Any | None:
    """The architecture of ``codes``; None where they break the rules of the space, or it may not be evaluated."""
    try:
        architecture = task.space.decode(codes)
    except Theta0Error:  # a NAS-Bench-101 cell without a path, say
        return None
    return architecture if task.allowed(architecture) else None
