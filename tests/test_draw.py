from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given

from tests.test_graph import OPS, cells
from theta0 import draw
from theta0.graph import Cell
from theta0.spaces.catalogue import CATALOGUE

NAME = "{http://www.w3.org/2000/svg}"


def test_lines() -> None:
    cell = Cell.parse("2 in; 2 = sep(0) + skip(1); 3 = (); out = 2 + 3")
    assert draw.text(cell).splitlines() == [
        "  in 0",
        "  in 1",
        "  2     <-- sep  -- in 0",
        "        <-- skip -- in 1",
        "  3     (nothing)",
        "  out   <-- 2, 3",
    ]


def test_operations_on_nodes() -> None:
    lines = draw.text(Cell.parse("1 in; 1:conv = 0; out = 1 + 0")).splitlines()
    assert lines == ["  in", "  1 conv  <-- in", "  out     <-- in, 1 conv"]


@given(cells())
def test_every_edge_and_node_is_drawn_inside_the_picture(cell: Cell) -> None:
    root = ET.fromstring(draw.svg({"a < b": cell, "second": cell}))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    edges = [path for path in root.iter(f"{NAME}path") if path.get("class") == "edge"]
    assert len(edges) == 2 * len(cell.edges)
    assert len([box for box in root.iter(f"{NAME}rect") if box.get("class") == "box"]) == 2 * cell.nodes
    texts = [element.text for element in root.iter(f"{NAME}text")]
    assert "a < b" in texts
    labels = [edge.op for edge in cell.edges if edge.op]
    assert sorted(text for text in texts if text in OPS) == sorted(2 * labels)
    for box in root.iter(f"{NAME}rect"):
        if box.get("class") == "box":
            assert 0 <= float(box.get("x", -1)) <= width - float(box.get("width", 0))
            assert 0 <= float(box.get("y", -1)) <= height - float(box.get("height", 0))
    for path in edges:
        start, floor, track = map(float, re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", path.get("d", ""))[0])
        assert 0 < start < width
        assert 0 < track < floor < height


def test_tracks_never_share_a_piece() -> None:
    """Two edges on one height do not overlap, or labels would."""
    for genotype in CATALOGUE.values():
        for cell in genotype:
            tracks = list(draw._tracks(cell.edges))
            for i, first in enumerate(cell.edges):
                for j, second in enumerate(cell.edges[:i]):
                    if tracks[i] == tracks[j]:
                        assert first.source >= second.target or second.source >= first.target
