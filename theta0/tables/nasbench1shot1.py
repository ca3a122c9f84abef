"""NAS-Bench-1Shot1 (Zela et al., ICLR 2020) has no table of its own: NAS-Bench-101 answers for its cells.

An architecture of the three spaces without its loose ends is a cell of NAS-Bench-101. A table over such a space has a
row for each cell of NAS-Bench-101 that some architecture stands for, and finds it for each of these architectures.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from theta0.errors import Theta0Error
from theta0.graph import Cell, live
from theta0.space import get_space
from theta0.spaces.nasbench1shot1 import NASBench1Shot1
from theta0.spaces.nasbench101 import OPERATIONS
from theta0.tables.table import Table


def through_nasbench101(table: Table, space: str) -> Table:
    """The part of a NAS-Bench-101 ``table`` that answers for ``space``, such as ``nasbench1shot1_1``."""
    over = get_space(space)
    if not isinstance(over, NASBench1Shot1):
        raise Theta0Error(f"{space} is not a space of NAS-Bench-1Shot1; take nasbench1shot1_1, _2 or _3")
    if table.space != "nasbench101" or table.keys is None:
        raise Theta0Error(f"{space} is answered by a table of nasbench101, not by {table.name} of {table.space}")
    places = {key: row for row, key in enumerate(table.keys)}
    texts: dict[int, str] = {}
    for cell in _distinct(over):
        row = places.get(over.key(cell))
        if row is not None:
            texts.setdefault(row, over.format(cell))
    if not texts:
        raise Theta0Error(f"no cell of {table.name} is one of {space}; take a larger table of nasbench101")
    rows = np.sort(np.fromiter(texts, dtype=np.int64))
    return replace(
        table.select(rows),
        name=f"NAS-Bench-1Shot1 ({space[-1]}) through {table.name}",
        space=space,
        cells=tuple(texts[int(row)] for row in rows),
    )


def _distinct(space: NASBench1Shot1) -> list[Cell]:
    """An architecture for each live cell: operations of loose ends, which make no difference, are the first one."""
    inner = len(space.parents) - 1
    found: dict[Cell, Cell] = {}
    shapes = set()
    parents = [range(len(choice.candidates)) for choice in space.choices[: inner + 1]]
    for codes in itertools.product(*parents):
        shape = space.decode([*codes, *[0] * inner])
        if live(shape) in shapes:  # its labellings are there already
            continue
        shapes.add(live(shape))
        used = _used(shape)
        for labels in itertools.product(range(len(OPERATIONS)), repeat=len(used)):
            ops = [0] * inner
            for vertex, label in zip(used, labels, strict=True):
                ops[vertex - 1] = label
            cell = space.decode([*codes, *ops])
            found.setdefault(live(cell), cell)
    return list(found.values())


def _used(cell: Cell) -> list[int]:
    """The inner vertices from which the output is reached."""
    reached = {cell.output}
    for source, target, _ in sorted(cell.edges, reverse=True, key=lambda edge: edge.target):
        if target in reached:
            reached.add(source)
    return sorted(reached - {0, cell.output})
