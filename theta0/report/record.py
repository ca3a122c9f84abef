"""The record: trials and events as tables, and all that the run was made with."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

from theta0.report.html import Child, Html, el
from theta0.report.material import Material
from theta0.report.numbers import moment, plural, short
from theta0.runs import Evaluation

_TRIALS, _EVENTS = 300, 100
"""Rows that are shown."""
_LONG = 400
"""Characters of a fact."""


def trials(material: Material) -> list[Html]:
    """Every trial; of very many the best ones and those in flight."""
    if not material.evaluations:
        return [el("p", "No trial has begun.", cls="empty")]
    kept = material.evaluations
    if len(kept) > _TRIALS:
        order = sorted(material.done, key=lambda one: (-one.epochs, -one.value, one.number))
        best = {one.number for one in (material.unfinished + order)[:_TRIALS]}
        kept = [one for one in kept if one.number in best]
    reasons = list(dict.fromkeys(name for one in kept for name in one.why))[:4]
    titles = ["trial", "accuracy, %", "epochs", "seconds", "ended at, s", *reasons, "architecture", "note"]
    texts = {"architecture", "note"}
    head = [el("th", title, scope="col", cls=None if title in texts else "n") for title in titles]
    rows = [_trial(material, one, reasons) for one in kept]
    table = el("table", el("thead", el("tr", head)), el("tbody", rows), data_sort=True)
    said = f"{plural(len(material.evaluations), 'trial')}, {len(material.failed)} failed"
    said += f", {len(material.unfinished)} in flight." if material.unfinished else "."
    if len(kept) < len(material.evaluations):
        said += f" The table has the {len(kept):,} best; `theta0 show {material.name}` prints all."
    return [
        el("p", said, cls="lead"),
        el("div", table, cls="box tall", tabindex=0, role="region", aria_label="Trials"),
    ]


def _trial(material: Material, one: Evaluation, reasons: list[str]) -> Html:
    chosen = one.architecture == material.chosen
    if one.finished is None:
        alive = one.process in material.working
        value = el("td", "in flight" if alive else "cut off", data_v="-1", cls="n")
    elif math.isnan(one.value):
        value = el("td", "failed", data_v="-2", cls="n bad")
    else:
        value = el("td", f"{one.value:.2f}", cls="n")
    mark = el("span", "chosen" if material.result else "best", cls="tag") if chosen else None
    cells: list[Child] = [
        el("td", str(one.number), cls="n"),
        value,
        el("td", str(one.epochs), cls="n"),
        *(el("td", f"{x:,.1f}" if math.isfinite(x) else "", cls="n") for x in (one.seconds, one.spent)),
        *(_reason(one.why.get(name)) for name in reasons),
        el("td", el("code", one.architecture), mark),
        el("td", one.note),
    ]
    return el("tr", cells, cls="chosen" if chosen else None)


def _reason(value: float | None) -> Html:
    return el("td", "" if value is None else short(value), data_v=None if value is None else repr(value), cls="n")


def events(material: Material) -> list[Html]:
    """What happened, the last first."""
    if not material.events:
        return [el("p", "Nothing has been noted yet.", cls="empty")]
    kept = material.events[-_EVENTS:]
    rows = [
        el("tr", el("td", moment(event.time), cls="when"), el("td", el("b", event.kind)), el("td", _facts(event.facts)))
        for event in reversed(kept)
    ]
    left = len(material.events) - len(kept)
    head = el("tr", [el("th", title, scope="col") for title in ("when", "what", "facts")])
    table = el("table", el("thead", head), el("tbody", rows), cls="events")
    return [
        el("p", f"The last {_EVENTS} of {len(material.events):,} events.", cls="lead") if left else Html(),
        el("div", table, cls="box tall", tabindex=0, role="region", aria_label="Events"),
    ]


def _facts(facts: Mapping[str, Any]) -> list[Html]:
    return [
        el("span", el("span", name, cls="key"), " ", _short(value), cls="fact")
        for name, value in facts.items()
        if name != "confusion"
    ]


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        value = {name: part for name, part in value.items() if name != "confusion"}
    said = _said(value)
    return said if len(said) <= _LONG else f"{said[:_LONG]} …"


def _said(value: Any) -> str:
    """A fact in plain words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said(part)}" for name, part in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def made_with(material: Material) -> list[Html]:
    """Command, settings, versions and machine."""
    told = dict(material.environment)
    command, place = told.pop("command", None), told.pop("folder", "unknown")
    parts = [el("h3", "Command")]
    said = shlex.join(map(str, command)) if isinstance(command, list) else "The run does not tell its command."
    parts.append(el("figure", el("pre", el("code", said), tabindex=0), cls="text"))
    entries = {"run": material.name, "folder": str(material.path), "begun": moment(material.created), "begun in": place}
    parts.append(
        el("div", _list("Settings", material.settings), _list("Environment", {**entries, **_flat(told)}), cls="pair")
    )
    return parts


def _flat(told: Mapping[str, Any]) -> dict[str, Any]:
    """Machine and versions, each in its own line."""
    found: dict[str, Any] = {}
    for name, value in told.items():
        found.update(value if isinstance(value, Mapping) else {name: value})
    if "gpu" in found:
        found["gpu"] = found["gpu"] or "none"
    if "revision" in found:
        found["revision"] = found["revision"] or "not from a git checkout"
    return found


def _list(title: str, entries: Mapping[str, Any]) -> Html:
    rows = [el("div", el("dt", name), el("dd", _short(value))) for name, value in entries.items()]
    return el("div", el("h3", title), el("dl", rows, cls="list"))
