"""Annotations that several commands share: the type of an option and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

SpaceName = Annotated[str, "a space: see `theta0 spaces`, or your own as module:Class"]
SkeletonName = Annotated[str | None, "a skeleton of the space by name (default: its first)"]
DataName = Annotated[str | None, "take shape and classes from a data set: a name or a path"]
Shape = Annotated[str | None, "images as channels x height x width, such as 3x32x32"]
Classes = Annotated[int | None, "number of classes"]
RunsRoot = Annotated[Path | None, "the folder of runs (default: THETA0_RUNS or ./runs)"]
RunName = Annotated[str, "a run: its name, the path of its folder, or latest"]
