"""The chosen architecture: its cells drawn, and its text."""

from __future__ import annotations

import re

from theta0 import draw
from theta0.errors import Theta0Error
from theta0.report.html import Html, el
from theta0.report.material import Material


def cell(material: Material) -> list[Html]:
    """The drawing, or why there is none."""
    if not material.chosen:
        return [el("p", "No architecture has been chosen yet.", cls="empty")]
    text = el("figure", el("pre", el("code", material.chosen), tabindex=0), cls="text")
    try:
        space = material.run.space
        cells = space.cells(space.parse(material.chosen))
    except (Theta0Error, ImportError, OSError) as error:  # a space of one's own, whose file is elsewhere
        return [el("p", f"The architecture cannot be drawn here: {error}", cls="empty"), text]
    if not cells:
        return [el("p", f"Architectures of {space.name} are no cells; there is nothing to draw."), text]
    # The style of the drawing alone would be that of the whole page: the page has its own, with dark and light.
    drawn = re.sub(r"<style>.*?</style>", "", draw.svg(cells), flags=re.DOTALL).strip()
    names = " and ".join(cells) if len(cells) > 1 else "The cell"
    edges = "; ".join(f"{name}: {' '.join(draw.text(one).split())}" for name, one in cells.items())
    drawn = drawn.replace("<svg ", f"{el('svg', role='img', aria_label=f'{names}. {edges}', cls='cell')[:-7]} ", 1)
    caption = "Images come in on the left. Each line is an operation from one node to the next; grey dashes give zero."
    return [
        el("figure", el("figcaption", el("span", caption)), el("div", Html(drawn), cls="box", tabindex=0), cls="wide"),
        text,
    ]
