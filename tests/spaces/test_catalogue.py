"""Facts that papers print of their cells."""

from __future__ import annotations

import pytest
import torch

from theta0 import count
from theta0.graph import depth, width
from theta0.spaces.catalogue import CATALOGUE, build_robnet_free, robnet_free
from theta0.spaces.darts import DARTS, Genotype, Skeleton
from theta0.variants import widest

space = DARTS()


def with_tower(genotype: Genotype) -> float:
    """Parameters in millions, auxiliary tower included, as the thesis counts in Table 4.1."""
    with torch.device("meta"):
        model = space.build(genotype, auxiliary=True)
    return sum(p.numel() for p in model.parameters()) / 1e6


@pytest.mark.parametrize(
    ("name", "wide", "deep"),
    [
        ("NASNet", 5, 2),
        ("AmoebaNet", 4, 4),
        ("ENAS", 5, 2),
        ("DARTS_V1", 3.5, 3),
        ("DARTS_V2", 3.5, 3),
        ("SNAS", 4, 2),
        ("WIDE", 4, 2),
        ("DEEP", 1.5, 5),
    ],
)
def test_width_and_depth_of_the_thesis(name: str, wide: float, deep: int) -> None:
    """Figure 4.1 and HNAS, Table 3."""
    cell = CATALOGUE[name].normal
    assert (width(cell), depth(cell)) == (wide, deep)


@pytest.mark.parametrize(("name", "millions"), [("DARTS_V2", 3.35), ("AmoebaNet", 3.15)])
def test_parameters_of_table_4_3(name: str, millions: float) -> None:
    assert space.measure(CATALOGUE[name]).parameters / 1e6 == pytest.approx(millions, abs=0.0051)


@pytest.mark.parametrize(
    ("name", "original", "adapted"),
    [("NASNet", 4.29, 4.32), ("AmoebaNet", 3.60, 3.60), ("DARTS_V2", 3.83, 3.90), ("SNAS", 3.14, 3.19)],
)
def test_parameters_of_table_4_1(name: str, original: float, adapted: float) -> None:
    genotype = CATALOGUE[name]
    assert with_tower(genotype) == pytest.approx(original, abs=0.0051)
    assert with_tower(Genotype(*map(widest, genotype))) == pytest.approx(adapted, abs=0.0051)


@pytest.mark.parametrize(
    ("name", "millions"), [("DARTS_V2", 3.3), ("PC_DARTS", 3.6), ("P_DARTS", 3.4), ("GDAS", 3.4), ("SNAS", 2.8)]
)
def test_parameters_of_the_papers(name: str, millions: float) -> None:
    """As their own papers round them; SNAS prints 2.8 M for a cell that builds 2.66 M on this skeleton."""
    assert space.measure(CATALOGUE[name]).parameters / 1e6 == pytest.approx(millions, abs=0.15)


def test_imagenet_parameters_of_darts() -> None:
    """4.7 M with 48 channels (Liu et al., Table 2)."""
    cost = space.measure(CATALOGUE["DARTS_V2"], "imagenet", channels=48)
    assert cost.parameters / 1e6 == pytest.approx(4.7, abs=0.051)


def test_names_parse_and_texts_round_trip() -> None:
    for name, genotype in CATALOGUE.items():
        assert space.parse(name.lower()) == genotype
        assert space.parse(space.format(genotype)) == genotype


def test_members_of_the_space() -> None:
    outside = {name for name, genotype in CATALOGUE.items() if not space.holds(genotype)}
    assert outside == {"NASNet", "AmoebaNet", "ENAS"}  # five nodes


def test_extremes_of_the_space() -> None:
    """No cell is wider or shallower than WIDE, none narrower or deeper than DEEP: over all patterns of connections."""
    import itertools

    from theta0.spaces.darts import make_cell

    patterns = itertools.product(*(itertools.combinations(range(node), 2) for node in range(2, 6)))
    seen = [
        (width(cell), depth(cell))
        for cell in (make_cell([[("skip_connect", s) for s in pair] for pair in p]) for p in patterns)
    ]
    assert len(seen) == 180
    assert (max(w for w, _ in seen), min(d for _, d in seen)) == (4, 2)
    assert (min(w for w, _ in seen), max(d for _, d in seen)) == (1.5, 5)


def test_robnet_free() -> None:
    cells = robnet_free()
    assert len(cells) == len(set(cells)) == 20
    assert sum(edge.op == "sep_conv_3x3" for edge in cells[0].edges) == 10
    model = build_robnet_free(Skeleton(channels=4, affine=False)).eval()
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    with torch.device("meta"):
        assert count.parameters(build_robnet_free()) == 5_439_574
