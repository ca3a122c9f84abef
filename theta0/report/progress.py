"""How the accuracy grew: every trial, and the best so far."""

from __future__ import annotations

import math

from theta0.report.chart import Axis, Chart, figure
from theta0.report.html import Html, el
from theta0.report.material import Material
from theta0.report.numbers import duration, percent, plural

_MOST = 1500
"""Trials that are drawn."""
_MINUTES = 180.0


def progress(material: Material) -> list[Html]:
    """Incumbent over time."""
    done = sorted((one for one in material.done if math.isfinite(one.spent)), key=lambda one: (one.spent, one.number))
    if not done:
        said = "No trial has ended with an accuracy."
        return [
            el("p", said, f" {plural(len(material.failed), 'trial')} failed." if material.failed else None, cls="empty")
        ]
    longest = max(one.epochs for one in done)
    ends = [one.spent for one in [*done, *material.failed] if math.isfinite(one.spent)]
    unit, scale = ("minutes", 60.0) if max(ends) > _MINUTES else ("seconds", 1.0)
    chart = Chart(
        Axis.over([0.0, *(end / scale for end in ends)], f"time for trials, {unit}", log=False, zero=True),
        Axis.over([one.value for one in done], "validation accuracy, %", log=False),
    )
    steps: list[tuple[float, float]] = []
    for one in done:
        if one.epochs == longest and (not steps or one.value > steps[-1][1]):
            steps.append((one.spent / scale, one.value))
    last = steps[-1][1]
    chart.steps([*steps, (max(ends) / scale, last)], "chosen thick")
    shown = done if len(done) <= _MOST else [done[round(i * (len(done) - 1) / (_MOST - 1))] for i in range(_MOST)]
    for kind, chosen in (("short", False), ("other", True)):
        chart.dots([(one.spent / scale, one.value) for one in shown if (one.epochs == longest) == chosen], kind)
    chart.crosses(
        [(one.spent / scale, chart.y.low) for one in material.failed[:_MOST] if math.isfinite(one.spent)], "bad"
    )
    for one in shown:
        epochs = "" if one.epochs == longest else f" after {plural(one.epochs, 'epoch')}"
        chart.tip(
            one.spent / scale, one.value, f"trial {one.number}: {percent(one.value)}{epochs}, at {duration(one.spent)}"
        )
    best = material.incumbent
    assert best is not None
    if math.isfinite(best.spent):
        chart.ring((best.spent / scale, best.value))
    legend = [("line chosen thick", "best so far"), ("dots other", f"a trial of {plural(longest, 'epoch')}")]
    if any(one.epochs != longest for one in done):
        legend.append(("dots short", "a shorter one"))
    if material.failed:
        legend.append(("crosses bad", "failed"))
    caption = f"{plural(len(done), 'trial')}; the best so far is trial {best.number} with {percent(best.value)}."
    if len(shown) < len(done):
        caption += f" Drawn are {len(shown):,} of them, evenly chosen."
    return [figure("Best validation accuracy over time", chart.svg(f"Incumbent over time. {caption}"), caption, legend)]
