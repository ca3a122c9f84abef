"""What ``theta0 runs`` and ``theta0 show`` print."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from theta0.runs.listing import Summary
from theta0.runs.records import Evaluation
from theta0.runs.run import Run


def table(summaries: Sequence[Summary]) -> str:
    """A line for each run."""
    head: tuple[str, ...] = ("run", "state", "data", "space", "searcher", "trials", "best", "cost s", "started")
    lines = [head, *map(_cells, summaries)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rows = [
        "  ".join(
            text.rjust(width) if title in ("trials", "best", "cost s") else text.ljust(width)
            for title, text, width in zip(head, line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*rows, *(one.problem for one in summaries if one.problem)])


def _cells(one: Summary) -> tuple[str, ...]:
    if one.problem:
        return one.name, one.state, *[""] * 7
    best = "-" if math.isnan(one.best) else f"{one.best:.2f}"
    counted = f"{one.trials:,}", best, f"{one.seconds:,.0f}"
    return one.name, one.state, one.data, one.space, one.searcher, *counted, _moment(one.started)


def show(run: Run, last: int) -> str:
    """All about a run; of trials and events the ``last`` ones."""
    return "\n".join(_facts(run) + _trials(run, last) + _events(run, last))


def _facts(run: Run) -> list[str]:
    told, best = run.environment, run.incumbent
    machine, versions = told["machine"], told["versions"]
    lines = [
        ("run", run.name),
        ("folder", str(run.path.absolute())),
        ("state", run.state),
        ("started", _moment(run.created)),
        ("command", shlex.join(told["command"])),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("revision", told["revision"] or "not from a git checkout"),
        ("machine", f"{machine['processor']}, {machine['cores']} cores, {machine['gpu'] or 'no GPU'}"),
        *((name, value if isinstance(value, str) else json.dumps(value)) for name, value in run.settings.items()),
        *(("at work", f"process {one.pid} of {one.host}") for one in run.processes().values() if one.alive),
        ("incumbent", "none yet" if best is None else f"trial {best.number}: {best.value:.2f} %, {best.architecture}"),
    ]
    width = max(len(title) for title, _ in lines)
    return [f"{title:<{width}}  {value}" for title, value in lines]


def _trials(run: Run, last: int) -> list[str]:
    evaluations = run.evaluations()
    if not evaluations:
        return ["", "no trials yet"]
    alive = {number for number, process in run.processes().items() if process.alive}
    return [
        "",
        *_left_out("trials", len(evaluations), last),
        f"{'trial':>5} {'epochs':>6} {'value':>7} {'seconds':>9} {'spent':>9}  architecture",
        *(_line(evaluation, alive) for evaluation in evaluations[-last:]),
    ]


def _line(one: Evaluation, alive: set[int]) -> str:
    start = f"{one.number:>5} {one.epochs:>6} "
    if one.finished is None:
        state = "in flight" if one.process in alive else "cut off"
        return f"{start}{state:>27}  {one.architecture}"
    value = "failed" if math.isnan(one.value) else f"{one.value:.2f}"
    note = f"  ({one.note})" if one.note else ""
    return f"{start}{value:>7} {one.seconds:>9,.1f} {one.spent:>9,.1f}  {one.architecture}{note}"


def _events(run: Run, last: int) -> list[str]:
    events = run.events()
    if not events:
        return []
    return [
        "",
        *_left_out("events", len(events), last),
        *(f"{_moment(event.time)}  {event.kind:<10} {_said(event.facts)}".rstrip() for event in events[-last:]),
    ]


def _left_out(what: str, count: int, last: int) -> list[str]:
    return [f"the last {last:,} of {count:,} {what}"] if count > last else []


def _said(facts: Any) -> str:
    said = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in facts.items())
    return " ".join(" ".join(said).split())


def _moment(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"
