"""Training curves: the final network, the random ones beside it, and the short trainings of the trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from theta0.report.chart import Axis, Chart, figure
from theta0.report.html import Html, el
from theta0.report.material import Material
from theta0.report.numbers import number, percent, plural, short

_TRIALS = 60
"""Trials of which curves are drawn."""
_LEGEND = {
    "chosen thick": "final network",
    "random dashed": "random architectures",
    "other thin": "trials",
    "extra": "others",
}
Curve = Sequence[Mapping[str, float]]


def training(material: Material) -> list[Html]:
    """Accuracy and loss over epochs."""
    if not material.curves:
        return [el("p", "No training history has been stored.", cls="empty")]
    curves = {name: points for name, points in material.curves.items() if points}
    trials = sorted((name for name in curves if name.isdigit()), key=int)
    best = str(material.incumbent.number) if material.incumbent else ""
    kept = trials if len(trials) <= _TRIALS else [*trials[: _TRIALS - 1], *({best} & set(trials[_TRIALS - 1 :]))]
    drawn = {name: points for name, points in curves.items() if not name.isdigit() or name in kept}
    # The thick line last, above all others.
    drawn = dict(sorted(drawn.items(), key=lambda item: list(_LEGEND).index(_kind(item[0])), reverse=True))
    note = f" Of {plural(len(trials), 'trial')} {len(kept)} are drawn." if len(kept) < len(trials) else ""
    figures = [
        _figure(drawn, "accuracy", "Validation accuracy while training", "validation accuracy, %", note),
        _figure(drawn, "loss", "Training loss", "loss", note),
    ]
    return [el("div", figures, cls="pair")]


def _kind(name: str) -> str:
    if name == "final":
        return "chosen thick"
    if name.startswith("random"):
        return "random dashed"
    return "other thin" if name.isdigit() else "extra"


def _figure(curves: Mapping[str, Curve], fact: str, title: str, label: str, note: str) -> Html:
    lines = {
        name: [(number(point["epoch"]), number(point.get(fact))) for point in curve] for name, curve in curves.items()
    }
    known = {name: points for name, points in lines.items() if any(math.isfinite(y) for _, y in points)}
    if not known:
        return figure(title, el("p", "It was not recorded.", cls="empty"))
    every = [point for points in known.values() for point in points if math.isfinite(point[1])]
    x = Axis.over([0.0, *(x for x, _ in every)], "epochs", log=False, zero=True, whole=True)
    chart = Chart(x, Axis.over([y for _, y in every], label, log=None if fact == "loss" else False))
    for name, points in known.items():
        kind = _kind(name)
        chart.line(points, kind)
        if sum(math.isfinite(y) for _, y in points) == 1:  # a line through one point is not seen
            chart.dots([point for point in points if math.isfinite(point[1])], kind.split()[0])
    for name, points in known.items():
        if _kind(name) != "other thin":
            for epoch, y in points:
                if math.isfinite(y):
                    said = percent(y) if fact == "accuracy" else short(y)
                    chart.tip(epoch, y, f"{name}, epoch {epoch:g}: {said}")
    kinds = [kind for kind in _LEGEND if any(_kind(name) == kind for name in known)]
    ends = [
        f"{name} {percent(points[-1][1]) if fact == 'accuracy' else short(points[-1][1])}"
        for name, points in known.items()
        if name == "final"
    ]
    if ends:
        said = f"At the end: {ends[0]}."
    elif "final" in curves:  # it has a loss
        said = "The final network is trained with the validation images too, so that none are left to validate it."
    else:
        said = "The final training has not begun."
    caption = f"{said}{note}"
    legend = [(f"line {kind}", _LEGEND[kind]) for kind in kinds]
    return figure(title, chart.svg(f"{title}. {caption}"), caption, legend)
