from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.reference import isomorphic, operation_graph
from theta0.errors import ParseError
from theta0.graph import Cell, depth, width
from theta0.space import Space, get_space
from theta0.spaces.nasbench201 import NASBench201, published_topology

space = NASBench201()
FULL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"
DEAD = "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|nor_conv_1x1~2|"


@pytest.fixture(scope="module")
def everything() -> list[Cell]:
    codes = np.indices((5,) * 6).reshape(6, -1).T
    return [space.decode(row) for row in codes.tolist()]


@pytest.fixture(scope="module")
def table(shared: Path) -> pd.DataFrame:
    return pd.read_parquet(shared / "nb201.parquet")


def test_all_cells_are_different(everything: list[Cell]) -> None:
    assert len(set(everything)) == len({space.format(cell) for cell in everything}) == space.size


def test_published_count_of_topologies(everything: list[Cell]) -> None:
    assert len({published_topology(cell) for cell in everything}) == 6466


def test_exact_count_of_networks(everything: list[Cell]) -> None:
    """Fewer than published, and not a coarser grouping: some published groups hold different networks."""
    exact = {cell: space.canonical(cell) for cell in everything}
    assert len(set(exact.values())) == 5260
    split = {published_topology(cell): set[object]() for cell in everything}
    merged = {key: set[str]() for key in exact.values()}
    for cell, key in exact.items():
        split[published_topology(cell)].add(key)
        merged[key].add(published_topology(cell))
    assert sum(len(keys) > 1 for keys in split.values()) == 430
    assert sum(len(texts) > 1 for texts in merged.values()) == 688


def test_canonical_form_against_the_reference() -> None:
    generator = np.random.default_rng(0)
    for _ in range(200):
        cell = space.sample(generator)
        plain = operation_graph(cell, zero="none", identity="skip_connect", weightless="avg_pool_3x3")
        canonical = space.canonical(cell)
        assert isinstance(canonical, Cell)
        assert isomorphic(canonical, plain)


def test_notation_is_the_table_s(table: pd.DataFrame) -> None:
    cells = [space.parse(text) for text in table.arch_str]
    assert [space.format(cell) for cell in cells] == table.arch_str.to_list()
    assert [published_topology(cell) for cell in cells] == table.canon_str.to_list()


@pytest.mark.parametrize(
    ("data", "classes", "side"), [("cifar10", 10, 32), ("cifar100", 100, 32), ("imagenet16", 120, 16)]
)
def test_parameters_of_all_cells(table: pd.DataFrame, data: str, classes: int, side: int) -> None:
    """Equal to the table; its FLOPs count normalisation (3 a value) and pooling (9 a value) on top of ours."""
    options = space.options(shape=(3, side, side), classes=classes)
    costs = [space.measure(space.parse(text), options) for text in table.arch_str]
    assert [cost.parameters for cost in costs] == table[f"params_{data}"].to_list()
    values = 5 * (16 + 32 // 4 + 64 // 16) * side**2  # of one edge over all 15 cells
    extra = table[f"flops_{data}"] - np.array([cost.flops for cost in costs])
    convolutions, pools = table.arch_str.str.count("nor_conv"), table.arch_str.str.count("avg_pool")
    assert (extra - 3 * values * convolutions - 9 * values * pools).nunique() == 1


def test_published_flops() -> None:
    cost = space.measure(space.parse(FULL))
    assert cost == (1_531_546, 220_119_680)


def test_measure_is_that_of_any_space() -> None:
    """The short cut (one network for all cells with the same operations) against the built network."""
    generator = np.random.default_rng(0)
    for _ in range(5):
        cell = space.sample(generator)
        for live in (False, True):
            assert space.measure(cell, live=live) == Space.measure(space, cell, live=live)


def test_known_width_and_depth() -> None:
    cell = space.parse(FULL)
    assert (width(cell, space.zero), depth(cell, space.zero)) == (1.5, 3)
    assert depth(space.parse(DEAD), space.zero) == 0


def test_live_network_computes_the_same() -> None:
    """Leaving out what cannot reach the output changes nothing at theta_0."""
    cell = space.parse("|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|")
    x = torch.randn(4, 3, 32, 32, dtype=torch.float64)
    whole = space.build(cell, seed=0, cells=1).double()
    part = space.build(cell, seed=0, cells=1, live=True).double()
    assert sum(p.numel() for p in part.parameters()) < sum(p.numel() for p in whole.parameters())
    # Both networks draw other numbers, so give the part the weights of the whole.
    names = {id(module): name for name, module in whole.named_modules()}
    weights = whole.state_dict()
    for old, new in zip(_edge_cells(whole), _edge_cells(part), strict=True):
        kept = [i for i, edge in enumerate(old.cell.edges) if edge.target != 2 and edge.source != 2]
        for i, operation in zip(kept, new.operations, strict=True):
            operation.load_state_dict(old.operations[i].state_dict())
    shared = {k: v for k, v in weights.items() if k in part.state_dict() and ".operations." not in k}
    part.load_state_dict(shared, strict=False)
    assert names
    torch.testing.assert_close(part(x), whole(x), rtol=1e-12, atol=1e-12)


def _edge_cells(model: torch.nn.Module) -> list[torch.nn.Module]:
    return [module for module in model.modules() if type(module).__name__ == "EdgeCell"]


def test_dead_cell_gives_zeros() -> None:
    for live in (False, True):
        model = space.build(space.parse(DEAD), seed=0, cells=1, live=live)
        (first, *_) = _edge_cells(model)
        assert not first(torch.randn(2, 16, 8, 8)).any()


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("nor_conv_3x3~0|", 0),
        ("|conv~0|+|none~0|none~1|+|none~0|none~1|none~2|", 1),
        ("|none~1|+|none~0|none~1|+|none~0|none~1|none~2|", 5),
        ("|none~0|+|none~0|none~1|", 24),
        (FULL + "+", len(FULL)),
    ],
)
def test_parse_errors(text: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        space.parse(text)
    assert caught.value.position == position


def test_discovered_by_name() -> None:
    assert isinstance(get_space("nasbench201"), NASBench201)
