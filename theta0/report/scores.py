"""What each score said before any training: against the accuracy of the trials, and over the whole pool."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.report.chart import Axis, Chart, figure
from theta0.report.html import Html, el
from theta0.report.material import Material
from theta0.report.numbers import percent, plural, short, spearman
from theta0.runs import Evaluation

_BINS = 40
_POINTS = 2500
"""Points of all scatter plots together: a page of many scores must stay small."""
_PLAIN = ("parameters", "flops")


def scores(material: Material) -> list[Html]:
    """A panel for each score, of which one is shown at a time."""
    if material.pool_problem:
        return [el("p", f"The scores of the pool cannot be read: {material.pool_problem}", cls="empty")]
    candidates = material.candidates
    if candidates is None:
        return [el("p", "The run has no scored pool.", cls="empty")]
    names = list(candidates.scores)
    first = _first(material, names)
    epochs, trials = _trials(material)
    found = {name: _correlation(material, candidates, name, trials) for name in names}
    options = [el("option", _title(name, found[name][0]), value=name, selected=name == first) for name in names]
    panels = [
        el(
            "div",
            el("h3", name),
            el(
                "div",
                _scatter(material, candidates, name, trials, epochs, found[name]),
                _pool(material, candidates, name),
                cls="pair",
            ),
            cls="panel on" if name == first else "panel",
            data_panel=name,
        )
        for name in names
    ]
    seed = material.pool.facts.get("seed") if material.pool else None
    made = "" if seed is None else f" All are of networks with the same seed ({seed})."
    return [
        el("p", f"{plural(len(names), 'score')} of {plural(len(candidates), 'architecture')}.{made}", cls="lead"),
        el("p", el("label", "Score ", el("select", options, data_choose="panel")), cls="choose"),
        *panels,
    ]


def _title(name: str, correlation: float) -> str:
    return name if math.isnan(correlation) else f"{name}  (ρ = {correlation:.2f})".replace("-", "−")


def _first(material: Material, names: list[str]) -> str:
    """The score that the settings name, else one that the searcher reads, else the first that is more than a size."""
    for said in (*_texts(dict(material.settings)), *_read_by_default(material)):
        for name in names:
            if said in (name, name.partition(":")[0]):
                return name
    return next((name for name in names if name not in _PLAIN), names[0])


def _read_by_default(material: Material) -> list[str]:
    """Scores that the searcher reads if its settings name no others; none for a searcher that is not here."""
    from theta0.searchers import searchers
    from theta0.searching import options

    name = str(material.settings["searcher"])
    if name not in searchers.names():
        return []
    return [said for said in _texts(options(searchers.get(name))) if said not in _PLAIN]


def _texts(value: Any) -> Iterator[str]:
    """All texts in settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _trials(material: Material) -> tuple[int, list[Evaluation]]:
    """The trials of the epochs that most have, and that are in the pool: only equal trainings can be compared."""
    inside = [one for one in material.done if one.architecture in material.rows]
    if not inside:
        return 0, []
    count = Counter(one.epochs for one in inside)
    epochs = max(count, key=lambda number: (count[number], number))
    return epochs, [one for one in inside if one.epochs == epochs]


def _correlation(
    material: Material, candidates: Candidates, name: str, trials: list[Evaluation]
) -> tuple[float, list[tuple[float, Evaluation]]]:
    """Spearman's, and the pairs that it is over."""
    values, valid = candidates.scores[name], candidates.valid[name]
    pairs = [(float(values[material.rows[one.architecture]]), one) for one in trials]
    kept = [(value, one) for value, one in pairs if valid[material.rows[one.architecture]] and math.isfinite(value)]
    return spearman([value for value, _ in kept], [one.value for _, one in kept]), kept


def _scatter(
    material: Material,
    candidates: Candidates,
    name: str,
    trials: list[Evaluation],
    epochs: int,
    found: tuple[float, list[tuple[float, Evaluation]]],
) -> Html:
    title = f"{name} against accuracy"
    correlation, pairs = found
    if not pairs:
        said = "No trial of the pool has ended with an accuracy" if not trials else "No trial has a valid value of it"
        return figure(title, el("p", f"{said}.", cls="empty"))
    most = max(60, _POINTS // len(candidates.scores))
    shown = pairs if len(pairs) <= most else [pairs[round(i * (len(pairs) - 1) / (most - 1))] for i in range(most)]
    chart = Chart(
        Axis.over([value for value, _ in pairs], name),
        Axis.over([one.value for _, one in pairs], "validation accuracy, %", log=False),
    )
    chart.dots([(value, one.value) for value, one in shown], "other")
    for value, one in shown:
        chart.tip(value, one.value, f"trial {one.number}: {short(value)}, {percent(one.value)}")
    chosen = next(((value, one) for value, one in pairs if one.architecture == material.chosen), None)
    if chosen:
        chart.ring((chosen[0], chosen[1].value))
    number = f"n = {plural(len(pairs), 'trial')} of {plural(epochs, 'epoch')}"
    told = f"Spearman’s ρ = {correlation:.2f}, {number}".replace("-", "−")
    told = f"{number}: no rank correlation is defined" if math.isnan(correlation) else told
    left = len(trials) - len(pairs)
    other = len(material.done) - len(trials)
    notes = [
        f"{plural(left, 'trial')} without a valid value left out" if left else "",
        f"{plural(other, 'trial')} of other epochs or outside the pool left out" if other else "",
        f"{len(shown)} evenly chosen ones drawn" if len(shown) < len(pairs) else "",
    ]
    caption = f"{'; '.join([told, *filter(None, notes)])}."
    legend = [("dots other", "a trial"), *([("ring chosen", _chosen(material))] if chosen else [])]
    return figure(title, chart.svg(f"{title}. {caption}"), caption, legend)


def _chosen(material: Material) -> str:
    return "the chosen one" if material.result else "the best so far"


def _pool(material: Material, candidates: Candidates, name: str) -> Html:
    title = f"{name} over the pool"
    values, valid = candidates.scores[name], candidates.valid[name]
    kept = values[valid & np.isfinite(values)]
    if not len(kept):
        return figure(title, el("p", "No architecture of the pool has a valid value of it.", cls="empty"))
    across = Axis.over((float(kept.min()), float(kept.max())), name, log=_wide(kept))
    places = np.linspace(0, 1, _BINS + 1)
    edges = [across.at(float(place)) for place in places]
    counts = np.histogram([across.place(float(value)) for value in kept], places)[0].tolist()
    chart = Chart(across, Axis.over([0.0, *map(float, counts)], "architectures", log=False, zero=True, whole=True))
    chart.bars(edges, counts, "other")
    for i, count in enumerate(counts):
        middle = across.at((i + 0.5) / _BINS)
        chart.tip(middle, count, f"{short(edges[i])} to {short(edges[i + 1])}: {plural(count, 'architecture')}")
    caption = f"{plural(len(kept), 'architecture')} in {_BINS} bins."
    row = material.rows.get(material.chosen)
    if row is None:
        caption += " The chosen architecture is not in the pool." if material.chosen else ""
    elif not (valid[row] and math.isfinite(values[row])):
        said = material.pool.valid(name)[row] if material.pool else ""
        caption += f" The value of {_chosen(material)} is not valid: {said}."
    else:
        chart.upright(float(values[row]), _chosen(material))
        caption += (
            f" {_chosen(material).capitalize()} has {short(float(values[row]))}{_standing(candidates, name, row)}."
        )
    if left := len(values) - len(kept):
        assert material.pool is not None
        counts = Counter(word for word, ok in zip(material.pool.valid(name), valid, strict=True) if not ok)
        reasons = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
        caption += f" Left out: {reasons or f'{left:,} not finite'}."
    return figure(title, chart.svg(f"{title}. {caption}"), caption)


def _standing(candidates: Candidates, name: str, row: int) -> str:
    """Where the chosen one stands in what the score takes for better."""
    try:
        share = float(candidates.ranks(name)[row])
    except Theta0Error:  # a score of one's own: nobody says which direction is better
        return ""
    from theta0.metrics import metrics

    better = metrics.get(name.partition(":")[0]).direction
    return f", better than {100 * share:.0f}\u00a0% of the pool ({better} is taken for better)"


def _wide(values: NDArray[np.float64]) -> bool:
    """Whether a logarithmic axis shows more: judged without the extremes, since one of them can be anything."""
    low, middle, high = np.percentile(values, [1, 50, 99])
    return bool(values.min() > 0 and (high > 30 * low or values.max() > 30 * middle))
