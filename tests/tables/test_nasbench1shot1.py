"""NAS-Bench-1Shot1 through NAS-Bench-101."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tables.small import small
from theta0.errors import Theta0Error
from theta0.space import get_space
from theta0.tables import Table, load
from theta0.tables.nasbench1shot1 import _distinct, through_nasbench101


@pytest.fixture(scope="module")
def nb101(shared: Path) -> Table:
    return load(shared / "nb101.parquet")


@pytest.mark.parametrize("number", [1, 2])
def test_every_architecture_of_the_space(nb101: Table, number: int) -> None:
    """Each one that has a row finds that of its NAS-Bench-101 cell; rows are exactly those that some one finds."""
    name = f"nasbench1shot1_{number}"
    space, parent = get_space(name), get_space("nasbench101")
    table = through_nasbench101(nb101, name)
    generator, found = np.random.default_rng(0), 0
    for architecture in (space.sample(generator) for _ in range(3000)):
        cell = space.nasbench101(architecture)  # type: ignore[attr-defined]
        assert (architecture in table) == (cell in nb101)
        if cell in nb101:
            found += 1
            row, expected = table.row(architecture), nb101.row(parent.parse(parent.format(cell)))
            assert table.validation("cifar10", 108, row) == nb101.validation("cifar10", 108, expected)
            assert table.seconds("cifar10", 12, row) == nb101.seconds("cifar10", 12, expected)
    assert found
    rows = [table.row(table.architecture(row)) for row in range(len(table))]
    assert rows == list(range(len(table)))
    assert table.keys is not None
    assert nb101.keys is not None
    assert [nb101.keys.index(key) for key in table.keys] == sorted(nb101.keys.index(key) for key in table.keys)


def test_all_live_cells_are_listed() -> None:
    """Against the plain list of all 14,580 architectures."""
    import itertools

    from theta0.graph import live

    space = get_space("nasbench1shot1_1")
    codes = itertools.product(*(range(len(choice.candidates)) for choice in space.choices))
    expected = {live(space.decode(code)) for code in codes}
    assert {live(cell) for cell in _distinct(space)} == expected  # type: ignore[arg-type]


def test_what_does_not_fit(nb101: Table) -> None:
    with pytest.raises(Theta0Error, match="darts is not a space of NAS-Bench-1Shot1"):
        through_nasbench101(nb101, "darts")
    with pytest.raises(Theta0Error, match="is answered by a table of nasbench101, not by small of nasbench201"):
        through_nasbench101(small(), "nasbench1shot1_1")
    space = get_space("nasbench1shot1_1")
    known = {space.key(cell) for cell in _distinct(space)}  # type: ignore[arg-type]
    assert nb101.keys is not None
    others = [row for row, key in enumerate(nb101.keys) if key not in known]
    with pytest.raises(Theta0Error, match=r"no cell of .* is one of nasbench1shot1_1"):
        through_nasbench101(nb101.select(others), "nasbench1shot1_1")
    absent = next(cell for cell in _distinct(space) if space.nasbench101(cell) not in nb101)  # type: ignore
    table = through_nasbench101(nb101, "nasbench1shot1_1")
    with pytest.raises(Theta0Error, match=r"is not in the table NAS-Bench-1Shot1 \(1\)"):
        table.row(absent)
