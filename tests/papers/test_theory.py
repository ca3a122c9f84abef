from __future__ import annotations

from pathlib import Path

import pytest

from theta0.errors import Theta0Error
from theta0.papers import Given, Report, reproduce


def made(what: str, folder: Path) -> tuple[Report, dict[str, float]]:
    report = reproduce("theory", what, Given(folder=folder))
    assert all(path.stat().st_size > 0 for path in report.figures)
    return report, {row.label: row.ours for row in report.rows}


def test_y2_the_chain_holds_and_goes_with_the_gap(tmp_path: Path) -> None:
    _, rows = made("figure Y2", tmp_path)
    assert rows["each step at most the next, share of networks"] == 1


def test_y4_no_difference_is_beyond_its_bound(tmp_path: Path) -> None:
    _, rows = made("figure Y4", tmp_path)
    for name in ("relu", "leaky_relu", "sigmoid", "tanh", "swish"):
        assert 0 < rows[f"{name}: difference at Z = 2"] <= rows[f"{name}: bound at Z = 2"]


def test_y5_two_ways_to_the_same_loss(tmp_path: Path) -> None:
    _, rows = made("figure Y5", tmp_path)
    assert rows["largest relative difference"] < 1e-6
    assert rows["loss after 1000 steps"] < 0.01 * rows["loss after 0 steps"]


def test_y8_blocks_beyond_the_printed_bounds(tmp_path: Path) -> None:
    _, rows = made("figure Y8", tmp_path)
    beyond = [value for label, value in rows.items() if "beyond Theorem 4.3" in label]
    assert min(beyond) >= 1
    assert max(beyond) == 4


def test_a_place_for_figures() -> None:
    with pytest.raises(Theta0Error, match="--out FOLDER"):
        reproduce("theory", "figure Y4", Given())
