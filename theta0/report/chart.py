"""Small charts as SVG: axes, marks, and texts for the pointer. Colours and type come from the page's style sheet.

A chart is whole without a script. ``data-tips`` holds a line "x,y,text" for each mark; the page's script shows the one
next to the pointer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from theta0.report.html import Html, el
from theta0.report.numbers import power, short

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 16, 46
_WIDE = 30
"""From this ratio on, positive numbers stand on a logarithmic axis."""
Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From a number to a place between 0 and 1."""

    label: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    """Whether it counts something, so that no tick lies between two integers."""

    @classmethod
    def over(
        cls, values: Iterable[float], label: str, *, log: bool | None = None, zero: bool = False, whole: bool = False
    ) -> Axis:
        """One that holds all ``values``; logarithmic, unless said, where they are positive and wide apart."""
        given = [value for value in values if math.isfinite(value)]
        low, high = min(given, default=0.0), max(given, default=1.0)
        if log is None:
            log = not zero and low > 0 and high / low > _WIDE
        if zero:
            low = min(0.0, low)
        if low == high:
            margin = abs(low) * 0.05 or 0.5
            return cls(label, low - margin, high + margin, False, whole)
        if log:
            margin = 0.04 * (math.log(high) - math.log(low))  # their quotient may be too large for a number
            ends = low * math.exp(-margin), high * math.exp(margin)
            return cls(label, max(ends[0], sys.float_info.min), min(ends[1], sys.float_info.max), True)
        margin = 0.06 * (high - low)
        return cls(label, low if zero and low == 0 else low - margin, high + margin, False, whole)

    def place(self, value: float) -> float:
        """Where ``value`` stands."""
        if self.log:
            low = math.log(self.low)
            return (math.log(value) - low) / (math.log(self.high) - low)
        return (value - self.low) / (self.high - self.low)

    def at(self, place: float) -> float:
        """The number that stands at ``place``."""
        if self.log:
            return math.exp((1 - place) * math.log(self.low) + place * math.log(self.high))
        return self.low + place * (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers with their labels: powers of ten where there are enough of them."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if last - first >= 2:
                every = 1 + (last - first) // 6
                return [(10.0**exponent, power(exponent)) for exponent in range(first, last + 1, every)]
            factors = [factor * 10.0**exponent for exponent in range(first - 1, last + 1) for factor in (1, 2, 5)]
            return [(value, short(value)) for value in factors if self.low <= value <= self.high]
        step = _step((self.high - self.low) / 6)
        if self.whole:
            step = max(1.0, step)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        numbers = [index * step for index in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        if max(map(abs, numbers), default=0) >= 1e6 or digits > 4:
            labels = [short(value) for value in numbers]
            if len(set(labels)) == len(labels):
                return list(zip(numbers, labels, strict=True))
        return [(value, f"{value + 0.0:,.{digits}f}".replace("-", "−")) for value in numbers]


def _step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(factor * size for factor in (1, 2, 5, 10) if rough <= factor * size * (1 + 1e-9))


@dataclass
class Chart:
    """Marks over two axes; what is drawn later lies above."""

    x: Axis
    y: Axis
    parts: list[Html] = field(default_factory=list)
    tips: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> Point:
        """Where a point stands in the picture."""
        across, up = self.x.place(x), self.y.place(y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def line(self, points: Sequence[Point], kind: str) -> None:
        """A line through ``points``; a point that is not finite leaves a gap."""
        path, pen = [], "M"
        for x, y in points:
            if math.isfinite(x) and math.isfinite(y):
                path.append(f"{pen}{_pair(*self.at(x, y))}")
                pen = "L"
            else:
                pen = "M"
        self._path("".join(path), f"line {kind}")

    def steps(self, points: Sequence[Point], kind: str) -> None:
        """A line that goes right first, then up."""
        corners = [corner for (_, y), (x, top) in pairwise(points) for corner in ((x, y), (x, top))]
        self.line([*points[:1], *corners], kind)

    def dots(self, points: Iterable[Point], kind: str) -> None:
        """A dot for each point, all in one path."""
        self._path("".join(f"M{_pair(*self.at(*point))}h0" for point in points), f"dots {kind}")

    def crosses(self, points: Iterable[Point], kind: str) -> None:
        """A small x for each point."""
        spots = (self.at(*point) for point in points)
        self._path("".join(f"M{_pair(x - 3, y - 3)}l6 6m0-6l-6 6" for x, y in spots), f"crosses {kind}")

    def ring(self, point: Point, kind: str = "chosen") -> None:
        """A mark that is seen among all others."""
        x, y = self.at(*point)
        self.parts.append(el("circle", cls=f"ring {kind}", cx=f"{x:.1f}", cy=f"{y:.1f}", r=6.5))

    def bars(self, edges: Sequence[float], heights: Sequence[float], kind: str) -> None:
        """A histogram."""
        path = []
        for (low, high), height in zip(pairwise(edges), heights, strict=True):
            if height:
                (left, top), (right, floor) = self.at(low, height), self.at(high, self.y.low)
                path.append(f"M{_pair(left, floor)}V{top:.1f}H{right - 1:.1f}V{floor:.1f}z")
        self._path("".join(path), f"bars {kind}")

    def upright(self, x: float, label: str, kind: str = "chosen") -> None:
        """A line across the whole height, with a label on the side that has room."""
        place, top = self.at(x, self.y.low)[0], TOP - 4
        left = place > (WIDTH + LEFT) / 2
        self.parts.append(el("path", cls=f"line {kind}", d=f"M{place:.1f} {HEIGHT - BOTTOM}V{top}"))
        self.parts.append(el("path", cls=f"flag {kind}", d=f"M{place - 5:.1f} {top}h10l-5 8z"))
        anchor, shift = ("end", -9) if left else ("start", 9)
        self.parts.append(el("text", label, cls="label", x=f"{place + shift:.1f}", y=top + 9, text_anchor=anchor))

    def tip(self, x: float, y: float, text: str) -> None:
        """What is said of a point that the pointer is next to."""
        self.tips.append(f"{_pair(*self.at(x, y)).replace(' ', ',')},{' '.join(text.split())}")

    def svg(self, name: str) -> Html:
        """The picture; ``name`` is what a screen reader says of it."""
        return el(
            "svg",
            self._axes(),
            self.parts,
            cls="chart",
            viewbox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=name,
            data_tips="\n".join(self.tips) or None,
        )

    def _axes(self) -> list[Html]:
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        rules, texts = [], []
        for value, label in self.y.ticks():
            y = self.at(self.x.low, value)[1]
            rules.append(f"M{LEFT} {y:.1f}H{right}")
            texts.append(el("text", label, x=LEFT - 8, y=f"{y + 4:.1f}", text_anchor="end"))
        for value, label in self.x.ticks():
            x = self.at(value, self.y.low)[0]
            texts.append(el("text", label, x=f"{x:.1f}", y=floor + 18, text_anchor="middle"))
            rules.append(f"M{x:.1f} {floor}v4")
        middle = (TOP + floor) / 2
        names = [
            el("text", self.x.label, cls="name", x=(LEFT + right) / 2, y=HEIGHT - 6, text_anchor="middle"),
            el(
                "text",
                self.y.label,
                cls="name",
                transform=f"translate(13 {middle:.0f}) rotate(-90)",
                text_anchor="middle",
            ),
        ]
        base = el("path", cls="base", d=f"M{LEFT} {floor}H{right}")
        return [el("path", cls="rules", d="".join(rules)), base, *texts, *names]

    def _path(self, d: str, kind: str) -> None:
        if d:
            self.parts.append(el("path", cls=kind, d=d))


def figure(title: str, chart: Html, caption: object = "", legend: Sequence[tuple[str, str]] = ()) -> Html:
    """A chart with what it shows; ``legend`` has kinds of marks with their names."""
    keys = [el("li", _key(kind), name) for kind, name in legend]
    return el(
        "figure",
        el("figcaption", el("strong", title, cls="title"), el("span", caption) if caption else None),  # type: ignore[arg-type]
        el("ul", keys, cls="legend") if keys else None,
        chart,
    )


def _key(kind: str) -> Html:
    """A picture of a mark."""
    shape = kind.partition(" ")[0]
    if shape == "ring":
        mark = el("circle", cls=kind, cx=12, cy=6, r=4.5)
    else:
        drawn = {"dots": "M12 6h0", "line": "M1 6H23", "bars": "M5 1h14v10H5z", "crosses": "M9 3l6 6m0-6l-6 6"}[shape]
        mark = el("path", cls=kind, d=drawn)
    return el("svg", mark, cls="key", viewbox="0 0 24 12", width=24, height=12, aria_hidden="true")


def _pair(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"
