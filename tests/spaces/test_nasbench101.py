from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.reference import renumbered, topological_orders
from theta0 import count
from theta0.errors import ParseError, Theta0Error
from theta0.graph import Cell, Edge
from theta0.network.cells import vertex_channels
from theta0.spaces.nasbench101 import OPERATIONS, PAIRS, NASBench101

space = NASBench101()
INCEPTION = (
    "[[0,1,1,1,0,1,0],[0,0,0,0,0,0,1],[0,0,0,0,0,0,1],[0,0,0,0,1,0,0],[0,0,0,0,0,0,1],[0,0,0,0,0,0,1],[0,0,0,0,0,0,0]] "
    '["input","conv1x1-bn-relu","conv3x3-bn-relu","conv3x3-bn-relu","conv3x3-bn-relu","maxpool3x3","output"]'
)


def of_row(vertices: int, adjacency: str, ops: str) -> Cell:
    edges = (Edge(i // vertices, i % vertices) for i, bit in enumerate(adjacency) if bit == "1")
    return Cell(1, vertices, tuple(edges), tuple(ops.split(",")) if ops else ())


@pytest.fixture(scope="module")
def rows(shared: Path) -> pd.DataFrame:
    return pd.read_parquet(shared / "nb101.parquet")


def test_enumeration_is_the_whole_space(shared: Path) -> None:
    """All 423,624 cells, each once; those of an independent list are among them, whatever numbering they have there."""
    whole = np.load(shared / "nb101_space.npz")
    ours = set(space)
    assert len(ours) == len(whole["hash"]) == 423_624
    for vertices, bits, codes in zip(*(whole[key][::500] for key in ("vertices", "edges_bits", "ops")), strict=True):
        edges = (Edge(*pair) for bit, pair in enumerate(PAIRS) if int(bits) >> bit & 1)
        cell = Cell(1, int(vertices), tuple(edges), tuple(OPERATIONS[code] for code in codes if code < 3))
        assert space.representative(cell) in ours


def test_hashes(shared: Path) -> None:
    whole = np.load(shared / "nb101_space.npz")
    known = {bytes(row).hex() for row in whole["hash"]}
    assert len(known) == 423_624
    hashes = {space.hash(space[i]) for i in range(0, space.size, 50)}
    assert len(hashes) == len(range(0, space.size, 50))
    assert hashes <= known


@pytest.mark.slow
def test_all_hashes(shared: Path) -> None:
    whole = np.load(shared / "nb101_space.npz")
    assert {space.hash(cell) for cell in space} == {bytes(row).hex() for row in whole["hash"]}


def check_rows(rows: pd.DataFrame) -> None:
    for row in rows.itertuples():
        cell = of_row(row.n_vertices, row.adj, row.ops)
        assert space.hash(cell) == row.hash
        with torch.device("meta"):
            assert count.parameters(space.build(cell, seed=0)) == row.params


def test_parameters_of_some_rows(rows: pd.DataFrame) -> None:
    check_rows(rows.iloc[::20])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_parameters_of_all_rows(rows: pd.DataFrame, part: int) -> None:
    check_rows(rows.iloc[part::8])


def test_hash_does_not_see_numbering() -> None:
    generator = np.random.default_rng(0)
    for _ in range(30):
        cell = space.sample(generator)
        for order in topological_orders(cell):
            other = renumbered(cell, order)
            assert space.hash(other) == space.hash(cell)
            assert space.canonical(other) == space.canonical(cell)
            assert space.representative(other) == space.representative(cell) == cell


def test_index_and_iteration_agree() -> None:
    for i, cell in zip(range(2000), space, strict=False):
        assert space[i] == cell
    with pytest.raises(IndexError, match="423623"):
        space[423_624]


def test_published_channels() -> None:
    """The benchmark's rule on its inception-like cell: 128 channels among five vertices."""
    cell = space.parse(INCEPTION)
    assert len(cell.into(cell.output)) == 4
    assert vertex_channels(cell, 128, 128) == [128, 32, 32, 32, 32, 32, 128]
    uneven = space.parse(
        '[[0,1,1,1,0],[0,0,0,0,1],[0,0,0,0,1],[0,0,0,0,1],[0,0,0,0,0]] ["input",' + '"maxpool3x3",' * 3 + '"output"]'
    )
    assert vertex_channels(uneven, 128, 128) == [128, 43, 43, 42, 128]


def test_unused_vertices_are_pruned() -> None:
    cell = space.parse('[[0,1,1,0],[0,0,0,0],[0,0,0,1],[0,0,0,0]] ["input","maxpool3x3","conv3x3-bn-relu","output"]')
    assert cell == Cell(1, 3, (Edge(0, 1), Edge(1, 2)), ("conv3x3-bn-relu",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[0,1],[0,0]]", "operations such as"),
        ('[[0,1],[0]] ["input","output"]', "a square matrix"),
        ('[[0,2],[0,0]] ["input","output"]', "a square matrix"),
        ('[[0,[1]],[0,0]] ["input","output"]', "a square matrix"),
        ('[[0,1],[1,0]] ["input","output"]', "an upper triangular matrix"),
        ('[[0,1],[0,0]] ["input"]', "2 operations that begin"),
        ('[[0,1,0],[0,0,1],[0,0,0]] ["input","conv","output"]', "one of conv3x3"),
        ('[[0,1],[0,0]] ["input","output"] x', "the end"),
        ('{"matrix": 1} []', "an adjacency matrix"),
    ],
)
def test_parse_errors(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        space.parse(text)


def test_cells_outside_the_limits() -> None:
    with pytest.raises(Theta0Error, match="no path from input to output"):
        space.parse('[[0,1,0],[0,0,0],[0,0,0]] ["input","maxpool3x3","output"]')
    full = Cell(1, 6, tuple(Edge(s, t) for t in range(6) for s in range(t)), OPERATIONS[:1] * 4)
    with pytest.raises(Theta0Error, match="at most 7 vertices and 9 edges; this one has 6 and 15"):
        space.pruned(full)
