from __future__ import annotations

import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.report.reading import read
from theta0.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Chart, figure

NUMBERS = st.floats(-1e12, 1e12).map(lambda value: 0.0 if abs(value) < 1e-9 else value)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.booleans(), st.booleans())
def test_an_axis_holds_all_values(values: list[float], zero: bool, whole: bool) -> None:
    size = max(map(abs, values))
    assume(len(set(values)) == 1 or max(values) - min(values) > 1e-9 * size)
    axis = Axis.over([*values, math.nan, math.inf], "x", zero=zero, whole=whole)
    for value in values:
        place = axis.place(value)
        assert -1e-9 <= place <= 1 + 1e-9
        assert axis.at(place) == pytest.approx(value, rel=1e-6, abs=1e-6 * size + 1e-9)
    ticks = [value for value, _ in axis.ticks()]
    assert ticks == sorted(ticks)
    assert all(axis.low * (1 - 1e-9) - 1e-9 <= value or axis.low < 0 for value in ticks)
    assert len(ticks) <= 13
    labels = [label for _, label in axis.ticks()]
    assert "nan" not in "".join(labels)


@given(st.floats(0.01, 1e6), st.floats(0.1, 1e5))
def test_ticks_are_round_and_enough(low: float, width: float) -> None:
    axis = Axis.over([low, low + width], "x", log=False)
    ticks = [value for value, _ in axis.ticks()]
    assert 2 <= len(ticks) <= 8
    step = ticks[1] - ticks[0]
    assert f"{step:.0e}"[0] in "125"
    labels = [label for _, label in axis.ticks()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 400])
def test_counts_have_no_fractions(most: int) -> None:
    labels = [label for _, label in Axis.over([0.0, float(most)], "n", log=False, zero=True, whole=True).ticks()]
    assert labels[0] == "0"
    assert all("." not in label for label in labels)
    assert len(labels) >= 2


def test_wide_positive_numbers_stand_on_powers_of_ten() -> None:
    axis = Axis.over([0.5, 3e4], "x")
    assert axis.log
    assert [label for _, label in axis.ticks()] == ["1", "10", "100", "1,000", "10⁴"]
    assert axis.place(axis.at(0.5)) == pytest.approx(0.5)
    enormous = Axis.over([1e-300, 1e300], "x")
    assert [enormous.place(value) for value in (1e-300, 1.0, 1e300)] == pytest.approx([0.04, 0.5, 0.96], abs=0.03)
    assert enormous.at(enormous.place(5.0)) == pytest.approx(5)
    assert 3 <= len(enormous.ticks()) <= 8
    assert not Axis.over([-1, 3e4], "x").log
    assert not Axis.over([10, 200], "x").log


def path(chart: Chart) -> str:
    found = re.search(r' d="([^"]*)"', chart.parts[-1])
    assert found is not None
    return found[1]


def chart() -> Chart:
    return Chart(Axis("x", 0, 10), Axis("y", 0, 1))


def test_points_stand_where_they_belong() -> None:
    assert chart().at(0, 0) == (LEFT, HEIGHT - BOTTOM)
    assert chart().at(10, 1) == (WIDTH - RIGHT, TOP)


def test_a_line_leaves_gaps() -> None:
    one = chart()
    one.line([(0, 0), (1, 0.5), (2, math.nan), (3, 0.5), (4, 1)], "chosen")
    assert re.sub(r"[\d. ]", "", path(one)) == "MLML"
    one.line([], "chosen")
    assert len(one.parts) == 1


def test_steps_go_right_first() -> None:
    one = chart()
    one.steps([(0, 0.5), (5, 1.0), (10, 1.0)], "chosen")
    numbers = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path(one))[1:]]
    expected = [one.at(*point) for point in [(0, 0.5), (5, 0.5), (5, 1), (10, 1), (10, 1)]]
    assert numbers == [pytest.approx(point, abs=0.06) for point in expected]


def test_bars_are_as_high_as_they_count() -> None:
    one = Chart(Axis("x", 0, 3), Axis("n", 0, 4))
    one.bars([0, 1, 2, 3], [4, 0, 1], "other")
    bars = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H", path(one))
    heights = [float(floor) - float(top) for _, floor, top in bars]
    assert heights == [
        pytest.approx(HEIGHT - TOP - BOTTOM, abs=0.1),
        pytest.approx((HEIGHT - TOP - BOTTOM) / 4, abs=0.1),
    ]


def test_tips_are_one_line_each() -> None:
    one = chart()
    one.dots([(1, 0.5)], "other")
    one.tip(1, 0.5, "trial 1:\n50 %, a, b")
    (svg,) = read(one.svg('a "name"')).whole.having("svg")
    assert svg["aria-label"] == 'a "name"'
    x, y, text = str(svg["data-tips"]).split(",", 2)
    assert (float(x), float(y)) == pytest.approx(one.at(1, 0.5), abs=0.06)
    assert text == "trial 1: 50 %, a, b"
    assert "data-tips" not in read(chart().svg("x")).whole.having("svg")[0]


def test_a_label_stays_inside() -> None:
    for x, anchor in ((1, "start"), (9, "end")):
        one = chart()
        one.upright(x, "the chosen one")
        (text,) = read(one.svg("x")).whole.having("text", cls="label")
        assert text["text-anchor"] == anchor


def test_a_figure_has_title_caption_and_legend() -> None:
    kinds = [("line chosen thick", "best"), ("dots other", "a trial"), ("crosses bad", "failed"), ("ring chosen", "it")]
    found = read(figure("Title", chart().svg("x"), "caption <1>", kinds)).whole
    assert all(word in found.text for word in ("Title", "caption <1>", "best", "a trial", "failed", "it"))
    assert len(found.having("svg", cls="key")) == 4
