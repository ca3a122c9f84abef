from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from theta0 import figure


@pytest.mark.parametrize(("low", "high", "labels"), [(80, 900, {"100", "200", "500"}), (1, 1e4, set())])
def test_logarithmic_axes_have_labels_that_tell(low: float, high: float, labels: set[str], tmp_path: Path) -> None:
    drawing, (axis,) = figure.make()
    axis.plot(np.geomspace(low, high, 5), np.arange(5))
    axis.set_xscale("log")
    figure.plain(axis)
    figure.save(drawing, tmp_path / "one")
    shown = {label.get_text() for label in axis.get_xticklabels()}
    assert labels <= shown
    assert len(shown) >= 3


def test_bands_leave_out_what_is_not_known() -> None:
    _, (axis,) = figure.make()
    mean = np.array([np.nan, 1.0, 2.0])
    figure.band(axis, np.arange(3.0), mean, np.full(3, 0.5), "one")
    (band,) = axis.collections
    points = np.concatenate([path.vertices for path in band.get_paths()])
    assert points[:, 0].min() == 1
    assert (points[:, 1].min(), points[:, 1].max()) == (0.5, 2.5)


def test_more_lines_than_colours_differ_by_style() -> None:
    _, (axis,) = figure.make()
    for place in range(len(figure.COLOURS) + 1):
        figure.band(axis, np.arange(2.0), np.arange(2.0), np.zeros(2), str(place))
    first, *_, last = axis.get_lines()
    assert first.get_linestyle() != last.get_linestyle()
