"""The page: its sections in their order, its style sheet and its script, all in one file."""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections.abc import Callable
from pathlib import Path

from theta0 import __version__
from theta0.report.cells import cell
from theta0.report.confusion import confusion
from theta0.report.html import Html, el, join
from theta0.report.limits import limits
from theta0.report.material import Material
from theta0.report.numbers import moment, number, plural
from theta0.report.progress import progress
from theta0.report.record import events, made_with, trials
from theta0.report.scores import scores
from theta0.report.summary import STATES, hero
from theta0.report.training import training
from theta0.report.use import use

Part = Callable[[Material], list[Html]]
_SECTIONS: tuple[tuple[str, str, Part], ...] = (
    ("cell", "Architecture", cell),
    ("progress", "Progress", progress),
    ("scores", "Scores", scores),
    ("training", "Training", training),
    ("mistakes", "Mistakes", confusion),
    ("limits", "Limits", limits),
    ("use", "Use it", use),
    ("trials", "Trials", trials),
    ("events", "Events", events),
    ("environment", "Environment", made_with),
)
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' "
    "rx='7' fill='%230072b2'/%3E%3Ctext x='16' y='23' font-size='21' font-family='serif' font-style='italic' "
    "text-anchor='middle' fill='white'%3Eθ%3C/text%3E%3C/svg%3E"
)


def document(material: Material, *, live: bool = False) -> str:
    """All of it. With ``live`` the script asks the server that sent it for changes."""
    here = Path(__file__).parent
    style, script = ((here / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(script, live=live)),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", f"{material.name} · theta0"),
        el("link", rel="icon", href=_ICON),
        el("style", Html(style)),
        el("script", Html(script)),
    )
    bar = el(
        "header",
        el(
            "a",
            el("span", "θ", el("sub", "0"), cls="mark", aria_hidden="true"),
            "theta0 report",
            href="#result",
            cls="brand",
        ),
        el("span", "live", cls="live", id="live", role="status") if live else None,
        el("button", "Dark", id="theme", type="button", aria_pressed="false"),
        cls="bar",
    )
    foot = el(
        "footer", f"Written by theta0 {__version__}, {moment(time.time())}. This page loads nothing from elsewhere."
    )
    main = el("main", body(material), id="main", data_live=live)
    return f"<!doctype html>\n{el('html', head, el('body', bar, main, foot), lang='en')}\n"


def body(material: Material) -> Html:
    """What changes while a run goes on."""
    nav = el(
        "nav",
        el("ul", [el("li", el("a", title, href=f"#{name}")) for name, title, _ in _SECTIONS]),
        aria_label="Sections",
    )
    parts = [el("section", el("h2", title), _shown(part, material), id=name) for name, title, part in _SECTIONS]
    return join([_title(material), _shown(lambda given: [hero(given)], material), nav, *parts])


def policy(script: str, *, live: bool) -> str:
    """What the page may do: run its own script, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return f"{rules}; base-uri 'none'; form-action 'none'" + ("; connect-src 'self'" if live else "")


def _shown(part: Part, material: Material) -> list[Html]:
    """A section, or that it cannot be shown: what else the run holds must not be lost with it."""
    try:
        return part(material)
    except Exception as error:  # a run of another version, or damaged
        return [el("p", f"This part cannot be shown: {type(error).__name__}: {error}", cls="empty problem")]


def _title(material: Material) -> Html:
    settings = material.settings
    words = [str(settings.get(name, "")) for name in ("data", "space", "searcher", "seed")]
    data, space, searcher, seed = words
    title = f"A network for {Path(data).name or data}" if material.result else f"A search on {Path(data).name or data}"
    said = f"{searcher} in {space}, seed {seed}"
    return el(
        "div",
        el(
            "p",
            el("span", STATES[material.state], cls=f"state {material.state}"),
            " ",
            el("span", material.name, cls="run"),
        ),
        el("h1", title),
        el("p", said, ". ", _ending(material), cls="sub"),
        cls="title",
    )


def _ending(material: Material) -> str:
    """How the run stands, in a sentence."""
    trials = len(material.done) + len(material.failed)
    if material.state == "failed":
        return f"It failed: {material.last('failed').get('error', 'the reason was not noted')}"
    if material.state == "finished":
        return f"Begun {moment(material.created)}."
    planned = number(material.plan.get("evaluations"))
    of = "" if math.isnan(planned) else f" of {planned:,.0f}"
    way = "" if material.state == "running" else f" Go on with `theta0 resume {material.name}`."
    done = plural(trials, "trial") if not of else f"{trials:,}{of} trials"
    return f"{done} ended so far.{way}"
