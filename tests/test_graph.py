from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from theta0.errors import ParseError, Theta0Error
from theta0.graph import Cell, Edge, depth, live, neighbours, width

OPS = ("conv", "pool", "skip")


@st.composite
def cells(draw: st.DrawFn, on_nodes: bool | None = None, most: int = 4) -> Cell:
    """Any cell of at most ``most`` intermediate nodes."""
    inputs = draw(st.integers(1, 2))
    nodes = inputs + draw(st.integers(0, most)) + 1
    on_nodes = draw(st.booleans()) if on_nodes is None else on_nodes
    pairs = [(s, t) for t in range(inputs, nodes) for s in range(t)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8))
    if on_nodes:
        ops = tuple(draw(st.sampled_from(OPS)) for _ in range(nodes - inputs - 1))
        return Cell(inputs, nodes, tuple(Edge(*pair) for pair in chosen), ops)
    return Cell(inputs, nodes, tuple(Edge(*pair, draw(st.sampled_from(OPS))) for pair in chosen))


@given(cells())
def test_text_round_trip(cell: Cell) -> None:
    assert Cell.parse(str(cell)) == cell


def test_text_is_free_of_layout() -> None:
    assert Cell.parse(" 1   in;1 =conv ( 0 );  out=1+1 ") == Cell(1, 3, (Edge(0, 1, "conv"), Edge(1, 2), Edge(1, 2)))


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "the number of inputs"),
        ("1 out", 2, "'in'"),
        ("1 in", 4, "';' and the next node"),
        ("1 in; 2 = 0; out = 2", 6, "node 1 or 'out'"),
        ("1 in; 1 = conv(1); out = 1", 15, "a node before 1"),
        ("1 in; 1 = conv 0; out = 1", 15, "'('"),
        ("1 in; 1 = conv(0; out = 1", 16, "')'"),
        ("1 in; 1 = ; out = 1", 10, "an operation or a node number"),
        ("1 in; 1:a = 0; 2 = 1; out = 2", 15, "an operation for each of the nodes 1 to 2"),
        ("1 in; 1 = 0; 2:a = 1; out = 2", 13, "an operation for each of the nodes 1 to 2"),
        ("1 in; out = 0; 2 = 0", 13, "the end"),
        ("0 in; out = ()", 0, "a cell (a cell needs an input"),
    ],
)
def test_parse_error_names_the_position(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        Cell.parse(text)
    assert caught.value.position == position
    assert expected in caught.value.expected
    line, pointer = str(caught.value).splitlines()[-2:]
    assert pointer.index("^") - 2 == position
    assert line[2:] == text


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cell(0, 2, ()), "0 inputs among 2 nodes"),
        (lambda: Cell(2, 2, ()), "2 inputs among 2 nodes"),
        (lambda: Cell(1, 3, (Edge(1, 1, "conv"),)), "1 -> 1"),
        (lambda: Cell(1, 3, (Edge(0, 3, "conv"),)), "0 -> 3"),
        (lambda: Cell(2, 3, (Edge(0, 1, "conv"),)), "0 -> 1"),
        (lambda: Cell(1, 4, (), ("conv",)), "1 node operations for 2 intermediate nodes"),
    ],
)
def test_impossible_cells_are_refused(make: object, words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        make()  # type: ignore[operator]


def test_equal_whatever_the_order_of_edges() -> None:
    edges = (Edge(1, 2, "b"), Edge(0, 2, "a"), Edge(0, 1, "c"))
    assert Cell(1, 3, edges) == Cell(1, 3, edges[::-1])
    assert hash(Cell(1, 3, edges)) == hash(Cell(1, 3, edges[::-1]))


@given(cells())
def test_live_part_lies_on_paths(cell: Cell) -> None:
    part = live(cell, zero={"skip"})
    assert part == live(part)
    assert all(edge.op != "skip" for edge in part.edges)
    for node in part.intermediate:
        assert part.into(node)
        assert any(edge.source == node for edge in part.edges)
    # Every path of the whole cell is in the live part, and no other.
    assert _paths(cell, {"skip"}) == _paths(part, set())


def _paths(cell: Cell, zero: set[str]) -> list[tuple[str, ...]]:
    """The operations along each path from an input to the output, sorted."""
    found: list[tuple[str, ...]] = []

    def walk(node: int, words: tuple[str, ...]) -> None:
        if node == cell.output:
            found.append(words)
        for edge in cell.edges:
            if edge.source == node and edge.op not in zero:
                inner = edge.target != cell.output and cell.ops
                walk(edge.target, (*words, edge.op, cell.ops[edge.target - cell.inputs] if inner else ""))

    for node in range(cell.inputs):
        walk(node, (f"input {node}",))
    return sorted(found)


@given(cells())
def test_depth_is_the_longest_path(cell: Cell) -> None:
    lengths = [(len(path) - 1) // 2 for path in _paths(cell, {"skip"})]
    assert depth(cell, {"skip"}) == max(lengths, default=0)


def test_width_counts_the_share_of_input_connections() -> None:
    cell = Cell.parse("2 in; 2 = a(0) + a(1); 3 = a(0) + a(2); 4 = a(2) + a(3); out = 2 + 3 + 4")
    assert (width(cell), depth(cell)) == (1.5, 4)
    assert (width(Cell.parse("1 in; out = a(0)")), depth(Cell.parse("1 in; out = a(0)"))) == (0, 1)
    dead = Cell.parse("1 in; 1 = a(0); out = none(1)")
    assert (width(dead, {"none"}), depth(dead, {"none"})) == (0, 0)


def test_neighbours_change_one_thing() -> None:
    cell = Cell.parse("2 in; 2 = a(0) + b(1); 3 = a(0) + a(2); out = 2 + 3")
    near = list(neighbours(cell, ("a", "b")))
    assert len(near) == len(set(near)) == 4 + 2  # four operations; a(0) and a(2) of node 3 may read input 1
    assert all(len(set(other.edges) ^ set(cell.edges)) == 2 for other in near)
    assert cell not in near
    on_nodes = Cell.parse("1 in; 1:a = 0; 2:a = 0; out = 1")
    assert set(neighbours(on_nodes, ("a", "b"))) == {
        Cell.parse("1 in; 1:b = 0; 2:a = 0; out = 1"),
        Cell.parse("1 in; 1:a = 0; 2:b = 0; out = 1"),
        Cell.parse("1 in; 1:a = 0; 2:a = 1; out = 1"),
        Cell.parse("1 in; 1:a = 0; 2:a = 0; out = 0"),
        Cell.parse("1 in; 1:a = 0; 2:a = 0; out = 2"),
    }
