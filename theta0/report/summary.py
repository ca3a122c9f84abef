"""The first screen: what was found, how sure we are, and what nobody measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from theta0.report.chart import Axis
from theta0.report.html import Child, Html, el
from theta0.report.material import Material, accuracies
from theta0.report.numbers import amount, duration, mean_deviation, number, percent, plural, short, signed, wilson

_AGAINST = "Against random architectures"
STATES = {
    "running": "Running",
    "finished": "Finished",
    "stopped": "Stopped before its end",
    "failed": "Failed",
}


@dataclass(frozen=True)
class Gain:
    """The chosen network beside random ones, on the same measure."""

    gain: float
    """In percentage points; NaN if the run does not tell."""
    random: list[float]
    mean: float
    deviation: float
    measure: str

    @classmethod
    def of(cls, material: Material) -> Gain | None:
        """None without random architectures."""
        found = accuracies(material.random)
        if not found:
            return None
        measure = str(material.random.get("measure") or "accuracy")
        return cls(number(material.result.get("gain")), found, *mean_deviation(found), measure)

    @property
    def chosen(self) -> float:
        """What the chosen network reached."""
        return self.mean + self.gain

    def words(self) -> str:
        """How much the gain says."""
        if math.isnan(self.gain):
            return "The run does not tell the gain."
        if self.gain <= 0:
            return "The search found nothing better than random architectures."
        if math.isnan(self.deviation):
            return "With one random architecture there is no spread to compare the gain with."
        # For one new random architecture: its own spread, and that of the mean of those that were trained.
        spread = self.deviation * math.sqrt(1 + 1 / len(self.random))
        if self.gain < 2 * spread:
            return "That is within twice the spread of a single random architecture: weak evidence."
        return "That is more than twice the spread of a single random architecture."


def hero(material: Material) -> Html:
    """What the page begins with."""
    return el(
        "section",
        el("div", _headline(material), _beside(material), cls="hero"),
        _facts(material),
        el("div", _sure(material), cls="sure"),
        id="result",
        cls="result",
        aria_label="Result",
    )


def _headline(material: Material) -> Html:
    accuracy, images = number(material.test.get("accuracy")), number(material.test.get("images"))
    best = material.incumbent
    if not math.isnan(accuracy):
        low_high = wilson(accuracy, int(images)) if images >= 1 else None
        interval = (
            [
                "95 % interval ",
                el("b", f"{low_high[0]:.1f} to {percent(low_high[1], 1)}"),
                f" from {images:,.0f} images",
            ]
            if low_high
            else ["The run does not tell the number of test images, so there is no interval."]
        )
        return _number("Test accuracy", f"{accuracy:.1f}", "%", interval)
    if best is not None:
        note = f"trial {best.number}, after {plural(best.epochs, 'epoch')}; no test accuracy yet"
        if material.state != "running":
            note = f"trial {best.number}, after {plural(best.epochs, 'epoch')}; the test accuracy was not measured"
        return _number("Best validation accuracy so far", f"{best.value:.1f}", "%", note)
    waiting = material.state == "running" and not material.failed
    said = "No trial has ended yet." if waiting else "No trial ended with an accuracy."
    return _number("Accuracy", "–", "", said)


def _number(title: str, value: str, unit: str, note: Child) -> Html:
    return el(
        "div",
        el("h2", title, cls="small"),
        el("p", value, el("span", f"\u202f{unit}") if unit else None, cls="big"),
        el("p", note, cls="note"),
        cls="headline",
    )


def _beside(material: Material) -> Html:
    gain = Gain.of(material)
    if gain is None:
        told = material.state == "finished"
        said = "Random architectures were not trained, so there is no gain to tell." if told else "Not measured yet."
        return el("div", el("h2", _AGAINST, cls="small"), el("p", said, cls="note"), cls="against")
    spread = "" if math.isnan(gain.deviation) else f" ± {gain.deviation:.2f}"
    count = plural(len(gain.random), "random architecture")
    said = f"{count}, {gain.measure}: mean {gain.mean:.2f}{spread}\u00a0%{' (deviation)' if spread else ''}."
    headline = f"{signed(gain.gain, 1)} points" if not math.isnan(gain.gain) else "Gain not told"
    return el(
        "div",
        el("h2", _AGAINST, cls="small"),
        el("p", headline, cls="medium"),
        _strip(material, gain),
        el("p", said, " ", gain.words(), cls="note"),
        cls="against",
    )


def _strip(material: Material, gain: Gain) -> Html:
    """A number line with the random architectures and the chosen one. All places are shares of the width."""
    chosen = gain.chosen
    ends: tuple[float, float] | None = None
    accuracy, images = number(material.test.get("accuracy")), number(material.test.get("images"))
    if images >= 1 and abs(accuracy - chosen) < 0.05:  # the interval is that of the test accuracy alone
        ends = wilson(accuracy, int(images))
    values = [*gain.random, *([] if math.isnan(chosen) else [chosen]), *(ends or ())]
    axis = Axis.over(values, "")

    def at(value: float) -> str:
        return f"{4 + 92 * axis.place(value):.2f}%"

    def spot(value: float) -> str:
        return f"{axis.place(value):.4f}"

    parts: list[Html] = [el("line", cls="base", x1="0", x2="100%", y1=46, y2=46)]
    for value, label in axis.ticks():
        parts.append(el("line", cls="tick", x1=at(value), x2=at(value), y1=46, y2=51))
        parts.append(el("text", label, x=at(value), y=66, text_anchor="middle"))
    for value in gain.random:
        parts.append(el("circle", el("title", f"random: {percent(value)}"), cls="random", cx=at(value), cy=46, r=5.5))
    parts.append(el("line", cls="mean random", x1=at(gain.mean), x2=at(gain.mean), y1=30, y2=58))
    parts.append(_word("random", gain.mean, axis, at(gain.mean)))
    if not math.isnan(chosen):
        if ends:
            parts.append(el("line", cls="interval", x1=at(ends[0]), x2=at(ends[1]), y1=46, y2=46))
        title = el("title", f"chosen: {percent(chosen)}")
        parts.append(el("circle", title, cls="ring chosen", cx=at(chosen), cy=46, r=7))
        if abs(axis.place(chosen) - axis.place(gain.mean)) > 0.2:
            parts.append(_word("chosen", chosen, axis, at(chosen)))
    low, high = min(gain.random), max(gain.random)
    name = f"Random architectures reach {percent(low)} to {percent(high)}, mean {percent(gain.mean)}"
    name += "" if math.isnan(chosen) else f"; the chosen network {percent(chosen)}"
    return el("svg", parts, cls="strip", width="100%", height=72, role="img", aria_label=f"{name}.")


def _word(word: str, value: float, axis: Axis, x: str) -> Html:
    place = axis.place(value)
    anchor = "start" if place < 0.12 else "end" if place > 0.88 else "middle"
    return el("text", word, cls=f"word {word}", x=x, y=20, text_anchor=anchor)


def _facts(material: Material) -> Html:
    """The few numbers that a reader asks for next."""
    result = material.result
    entries: list[tuple[str, str]] = []
    for name, unit in (("parameters", ""), ("flops", "")):
        if not math.isnan(value := number(result.get(name))):
            entries.append(("Parameters" if name == "parameters" else "Multiply-adds", amount(value) + unit))
    if not math.isnan(latency := number(result.get("latency_ms"))):
        entries.append(("Latency", f"{latency:.3g}\u00a0ms"))
    if not math.isnan(validation := number(result.get("validation"))):
        entries.append(("Validation", percent(validation)))
    for name, title in (("nll", "Log-likelihood loss"), ("ece", "Calibration error")):
        if not math.isnan(value := number(material.test.get(name))):
            entries.append((title, short(value) if name == "nll" else percent(value)))
    entries.append(("Architectures trained", f"{len(material.done):,}"))
    if material.pool is not None:
        entries.append(("Architectures scored", f"{len(material.pool.architectures):,}"))
    seconds = number(result.get("seconds"))
    if math.isnan(seconds):
        spent = [one.spent for one in material.done + material.failed if math.isfinite(one.spent)]
        if spent:
            entries.append(("Time for trials", duration(max(spent))))
    else:
        entries.append(("Time in all", duration(seconds)))
    return el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in entries], cls="facts")


def _sure(material: Material) -> list[Html]:
    known, unknown = list(_measured(material)), list(_unmeasured(material))
    return [
        el("div", el("h3", "What was measured"), _list(known, "yes") if known else el("p", "Nothing yet.")),
        el("div", el("h3", "What was not"), _list(unknown, "no") if unknown else el("p", "Nothing is missing here.")),
    ]


def _list(items: list[str], kind: str) -> Html:
    return el("ul", [el("li", item) for item in items], cls=f"marks {kind}")


def _measured(material: Material) -> Iterator[str]:
    accuracy, images = number(material.test.get("accuracy")), number(material.test.get("images"))
    if not math.isnan(accuracy) and images >= 1:
        low, high = wilson(accuracy, int(images))
        yield (
            f"Test accuracy {percent(accuracy)} of {images:,.0f} images. The Wilson interval {low:.2f} to "
            f"{percent(high)} covers the choice of test images only."
        )
    if (gain := Gain.of(material)) is not None and not math.isnan(gain.gain):
        below = sum(value < gain.chosen for value in gain.random)
        epochs = number(material.random.get("epochs"))
        trained = "" if math.isnan(epochs) else f", each trained for {plural(int(epochs), 'epoch')}"
        yield f"{below} of {plural(len(gain.random), 'random architecture')}{trained}, are below the chosen one."
    if material.done:
        epochs_of = sorted({one.epochs for one in material.done})
        yield (
            f"Validation accuracy of {plural(len(material.done), 'architecture')}, trained for "
            f"{' or '.join(map(str, epochs_of))} epochs each."
        )
    if material.pool is not None:
        batch = number(material.pool.facts.get("batch"))
        on = "" if math.isnan(batch) else f", on one batch of {batch:.0f} images"
        count = len(material.pool.architectures)
        yield f"{plural(len(material.pool.names), 'score')} of {plural(count, 'architecture')} before any training{on}."


def _unmeasured(material: Material) -> Iterator[str]:
    result, test = material.result, material.test
    if math.isnan(number(test.get("accuracy"))):
        yield "Test accuracy: the run has no finished evaluation on test images."
    else:
        yield "The spread over seeds: the final network was trained once. Another seed gives another accuracy."
    gain = Gain.of(material)
    if gain is None:
        yield "The gain over random architectures."
    elif len(gain.random) < 5:
        yield f"The spread of random architectures is known from {len(gain.random)} only."
    for name, title in (("nll", "Log-likelihood"), ("ece", "Calibration")):
        if not math.isnan(number(test.get("accuracy"))) and math.isnan(number(test.get(name))):
            yield f"{title} on the test images."
    if result and math.isnan(number(result.get("latency_ms"))):
        yield "Latency."
    if material.pool is None:
        yield "Scores before training: the run has no scored pool."
    if material.failed:
        yield f"The accuracy of {plural(len(material.failed), 'trial')} that failed."
    if material.unfinished:
        yield f"{plural(len(material.unfinished), 'trial')} in flight."
