from __future__ import annotations

import numpy as np
import pytest

from theta0.errors import Theta0Error
from theta0.graph import Cell, depth, width
from theta0.spaces.catalogue import CATALOGUE
from theta0.spaces.darts import OPERATIONS
from theta0.variants import random_connections, random_operations, widest

DARTS = CATALOGUE["DARTS_V2"].normal


def operations(cell: Cell) -> list[list[str]]:
    return [sorted(edge.op for edge in cell.into(node)) for node in cell.intermediate]


@pytest.mark.parametrize("distinct", [True, False])
def test_random_connections_keep_order_and_operations(distinct: bool) -> None:
    generator = np.random.default_rng(0)
    variants = [random_connections(DARTS, generator, distinct=distinct) for _ in range(300)]
    assert len(set(variants)) > 100
    for variant in variants:
        assert operations(variant) == operations(DARTS)
        assert [edge.source for edge in variant.into(variant.output)] == [2, 3, 4, 5]
        for node in variant.intermediate:
            sources = [edge.source for edge in variant.into(node)]
            assert not distinct or len(set(sources)) == len(sources)
    sources = [edge.source for v in variants for edge in v.into(5)]
    counts = np.bincount(sources, minlength=5)
    assert counts.min() > 0.8 * counts.mean()  # uniform over the five nodes before node 5


def test_sources_are_sometimes_equal_unless_distinct() -> None:
    generator = np.random.default_rng(1)
    doubled = [random_connections(DARTS, generator) for _ in range(50)]
    assert any(len({e.source for e in v.into(2)}) == 1 for v in doubled)


def test_loose_nodes_are_collected() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        variant = random_connections(CATALOGUE["AmoebaNet"].normal, generator)
        assert {edge.source for edge in variant.edges} >= set(variant.intermediate)


def test_published_variants_are_within_reach() -> None:
    """Table 4.2: the DARTS variants have widths 2c to 3.5c and depths 3 and 4."""
    generator = np.random.default_rng(0)
    seen = {(width(v), depth(v)) for v in (random_connections(DARTS, generator) for _ in range(500))}
    assert seen >= {(2, 4), (2.5, 4), (2.5, 3), (3, 3), (3.5, 3)}


def test_random_operations_keep_connections() -> None:
    generator = np.random.default_rng(0)
    variants = [random_operations(DARTS, OPERATIONS, generator) for _ in range(200)]
    for variant in variants:
        assert [(e.source, e.target) for e in variant.edges] == [(e.source, e.target) for e in DARTS.edges]
        assert all(edge.op == "" for edge in variant.into(variant.output))
    assert {edge.op for v in variants for edge in v.edges} == {"", *OPERATIONS}


def test_random_operations_on_nodes() -> None:
    cell = Cell.parse("1 in; 1:a = 0; 2:a = 1; out = 2")
    drawn = {random_operations(cell, ("a", "b"), np.random.default_rng(seed)).ops for seed in range(30)}
    assert drawn == {("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")}


@pytest.mark.parametrize(
    ("name", "published", "nodes"),
    [("NASNet", 5, 5), ("AmoebaNet", 3, 5), ("ENAS", 5, 5), ("DARTS_V2", 4, 4), ("SNAS", 4, 4)],
)
def test_adaptation_is_widest_and_shallowest(name: str, published: int, nodes: int) -> None:
    """Figure 4.26."""
    cell = CATALOGUE[name].normal
    assert (width(widest(cell)), depth(widest(cell))) == (published, 2)
    adapted = widest(cell, collect=True)
    assert (width(adapted), depth(adapted)) == (nodes, 2)
    assert operations(adapted) == operations(cell)


def test_what_cannot_be_widened_is_named() -> None:
    with pytest.raises(Theta0Error, match="cannot widen"):
        widest(Cell.parse("1 in; 1:a = 0; out = 1"))
    with pytest.raises(Theta0Error, match="cannot widen"):
        widest(Cell.parse("1 in; 1 = a(0); out = b(1)"))


def test_too_few_sources_for_distinct_ones() -> None:
    with pytest.raises(Theta0Error, match="node 1 has 2 connections but only 1 nodes before it"):
        random_connections(Cell.parse("1 in; 1 = a(0) + b(0); out = 1"), np.random.default_rng(0), distinct=True)
