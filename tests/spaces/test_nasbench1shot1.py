from __future__ import annotations

import itertools

import numpy as np
import pytest

from theta0.errors import ParseError
from theta0.space import get_space
from theta0.spaces.nasbench1shot1 import NASBench1Shot1
from theta0.spaces.nasbench101 import NASBench101

NAMES = ["nasbench1shot1_1", "nasbench1shot1_2", "nasbench1shot1_3"]


def one(name: str) -> NASBench1Shot1:
    space = get_space(name)
    assert isinstance(space, NASBench1Shot1)
    return space


def connected(parents: tuple[int, ...]) -> int:
    """The published count without loose ends: walk from the output to the parents until every reached node has its own.

    As in the benchmark, one choice of parents may be met on several walks and then counts as often.
    """
    last = len(parents)

    def complete(known: dict[int, tuple[int, ...]]) -> bool:
        reached = {last}
        for node in range(last, 0, -1):
            if node in reached:
                if node not in known:
                    return False
                reached |= set(known[node])
        return True

    def walk(known: dict[int, tuple[int, ...]], node: int) -> int:
        if complete(known):
            return 3 ** (len(known) - 1)
        if node == 0 or node in known:
            return 0
        choices = itertools.combinations(range(node), parents[node - 1])
        return sum(walk({**known, node: chosen}, parent) for chosen in choices for parent in chosen)

    return walk({}, last)


@pytest.mark.parametrize(("name", "published"), list(zip(NAMES, (2_487, 3_609, 24_066), strict=True)))
def test_published_counts_without_loose_ends(name: str, published: int) -> None:
    assert connected(one(name).parents) == published


@pytest.mark.parametrize("name", NAMES)
def test_nine_edges(name: str) -> None:
    assert sum(one(name).parents) == 9


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_is_a_nasbench101_cell(name: str) -> None:
    space, parent, generator = one(name), NASBench101(), np.random.default_rng(0)
    loose = 0
    for _ in range(300):
        architecture = space.sample(generator)
        cell = space.nasbench101(architecture)
        assert parent.pruned(cell) == cell
        assert parent.canonical(cell) == space.canonical(architecture)
        loose += cell.nodes < architecture.nodes
    assert 0 < loose < 300


def test_the_network_is_that_of_the_cell() -> None:
    space, parent = one(NAMES[0]), NASBench101()
    architecture = space.sample(np.random.default_rng(0))
    assert space.measure(architecture) == parent.measure(space.nasbench101(architecture))


def test_cells_of_other_spaces_are_refused() -> None:
    with pytest.raises(ParseError, match=r"parents, not \(1, 1, 2, 2, 3\)"):
        one(NAMES[0]).parse(one(NAMES[1]).notation)
