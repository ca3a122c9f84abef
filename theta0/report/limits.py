"""What the search was allowed, against what it took."""

from __future__ import annotations

import math
from collections.abc import Iterator

from theta0.report.html import Html, el
from theta0.report.material import Material, mapping
from theta0.report.numbers import amount, duration, number

_COSTS = {
    "parameters": ("Parameters", "parameters", amount),
    "flops": ("Multiply-adds", "flops", amount),
    "latency": ("Latency", "latency_ms", lambda value: f"{value:.3g}\u00a0ms"),
}
_ALIASES = {"max_parameters": "parameters", "max_params": "parameters", "params": "parameters", "max_flops": "flops"}
_ALIASES |= {"max_latency": "latency", "latency_ms": "latency"}


def limits(material: Material) -> list[Html]:
    """A bar for each limit, and for each part of the budget."""
    rows = [*_network(material), *_budget(material)]
    parts = [el("div", rows, cls="meters")] if rows else []
    if not any(_limits(material).values()):
        parts.insert(0, el("p", "No limit was set on parameters, multiply-adds or latency.", cls="lead"))
    return parts


def _limits(material: Material) -> dict[str, float]:
    found = {}
    for holder in (material.settings, mapping(material.settings.get("limits"))):
        for name, value in holder.items():
            limit = number(value)
            if (known := _ALIASES.get(name, name)) in _COSTS and limit > 0:
                found[known] = limit
    return found


def _network(material: Material) -> Iterator[Html]:
    chosen = _limits(material)
    for name, (title, fact, say) in _COSTS.items():
        value = number(material.result.get(fact))
        if name in chosen:
            yield _meter(title, value, chosen[name], say, "the chosen network was not measured")
        elif not math.isnan(value):
            yield el("div", el("dt", title), el("dd", f"{say(value)}, no limit"), cls="meter")


def _budget(material: Material) -> Iterator[Html]:
    budget = mapping(material.settings.get("budget"))
    evaluations = number(budget.get("evaluations"))
    if evaluations > 0:
        count = len(material.done) + len(material.failed)
        yield _meter("Trials", float(count), evaluations, lambda value: f"{value:,.0f}", "")
    seconds = number(budget.get("seconds"))
    if seconds > 0:
        spent = number(material.result.get("seconds"))
        if math.isnan(spent):
            ends = [one.spent for one in material.done + material.failed if math.isfinite(one.spent)]
            spent = max(ends, default=math.nan)
        yield _meter("Time", spent, seconds, duration, "no trial has ended")


def _meter(title: str, value: float, limit: float, say: object, missing: str) -> Html:
    assert callable(say)
    if math.isnan(value):
        return el("div", el("dt", title), el("dd", f"at most {say(limit)}; {missing}"), cls="meter")
    share = value / limit
    kept = share <= 1
    word = f"{100 * share:.0f}\u00a0% of {say(limit)}" if kept else f"above the limit of {say(limit)}"
    bar = el("span", el("span", style=f"width:{100 * min(1.0, share):.1f}%"), cls="bar", aria_hidden="true")
    return el(
        "div", el("dt", title), el("dd", el("b", say(value)), f" · {word}"), bar, cls="meter" if kept else "meter over"
    )
