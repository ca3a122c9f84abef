from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import isomorphic, operation_graph, shuffled
from tests.test_graph import OPS, cells
from theta0.graph import Cell, Edge, live
from theta0.isomorphism import canonical


@given(cells(), st.integers(0, 2**31))
def test_invariant_under_renumbering(cell: Cell, seed: int) -> None:
    part = live(cell)  # only live nodes have to keep their order
    assert canonical(shuffled(part, np.random.default_rng(seed))) == canonical(cell)


@given(cells(on_nodes=True), cells(on_nodes=True))
def test_equal_exactly_for_isomorphic_cells(first: Cell, second: Cell) -> None:
    first, second = live(first), live(second)
    assert (canonical(first) == canonical(second)) == isomorphic(first, second)


@given(cells(on_nodes=False, most=3))
def test_folds_like_the_reference(cell: Cell) -> None:
    folded = canonical(cell, zero={"none"}, identity=lambda edge: edge.op == "skip", weightless={"pool"})
    assert isomorphic(folded, operation_graph(cell, zero="none", identity="skip", weightless="pool"))
    assert folded == canonical(folded)


def test_near_isomorphic_pairs_are_told_apart() -> None:
    # Same operations and degrees; the first shares one convolution, the second has a copy of it.
    shared = Cell.parse("1 in; 1 = conv(0); 2 = skip(1); out = a(1) + b(2)")
    copied = Cell.parse("1 in; 1 = conv(0); 2 = conv(0); out = a(1) + b(2)")
    fold = {"identity": lambda edge: edge.op == "skip", "weightless": {"pool"}}
    assert canonical(shared, **fold) != canonical(copied, **fold)
    pooled = Cell.parse("1 in; 1 = pool(0); 2 = pool(0); out = a(1) + b(2)")
    once = Cell.parse("1 in; 1 = pool(0); 2 = skip(1); out = a(1) + b(2)")
    assert canonical(pooled, **fold) == canonical(once, **fold)


def test_inputs_keep_their_order() -> None:
    first, second = Cell.parse("2 in; 2 = a(0); out = 2"), Cell.parse("2 in; 2 = a(1); out = 2")
    assert canonical(first) != canonical(second)


def test_dead_cells_are_one() -> None:
    dead = canonical(Cell.parse("1 in; 1 = conv(0); out = none(1)"), zero={"none"})
    assert dead == canonical(Cell.parse("1 in; 1 = none(0); 2 = conv(1); out = conv(2)"), zero={"none"})
    assert dead.edges == ()


def test_symmetric_cells_do_not_explode() -> None:
    twins = Cell(1, 14, tuple(Edge(0, n) for n in range(1, 13)) + tuple(Edge(n, 13) for n in range(1, 13)), ("a",) * 12)
    chains = [Edge(0, 1 + 2 * i) for i in range(5)] + [Edge(1 + 2 * i, 2 + 2 * i) for i in range(5)]
    chains += [Edge(2 + 2 * i, 11) for i in range(5)]
    start = time.perf_counter()
    assert canonical(twins) == twins
    canonical(Cell(1, 12, tuple(chains), ("a",) * 10))
    assert time.perf_counter() - start < 5  # naive individualization would need 12! steps


def test_some_operation_labels_are_kept() -> None:
    assert set(canonical(Cell.parse("1 in; 1 = conv(0); out = pool(1)")).ops) <= set(OPS)
