"""Which classes are taken for which: all numbers of a small matrix, the worst mistakes and a picture of a large one."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from theta0.report.html import Html, el
from theta0.report.material import Material
from theta0.report.numbers import percent, plural

_SMALL, _LARGE = 25, 1000
"""Up to how many classes the numbers are shown, and a picture."""
_LETTERS = 4
"""Names of more letters stand upright above their columns."""
_PAIRS = 10
Counts = NDArray[np.int64]


def confusion(material: Material) -> list[Html]:
    """The confusion matrix of the test images."""
    given = material.test.get("confusion")
    counts = np.asarray(given if given else [], dtype=np.int64)
    if counts.ndim != 2 or len(counts) != counts.shape[-1] or not counts.sum():
        return [el("p", "No confusion matrix was measured.", cls="empty")]
    known = material.classes
    names = known if len(known) == len(counts) else [str(number) for number in range(len(counts))]
    said = "" if names is known else " The run does not tell the names of the classes: they are numbered."
    wrong = int(counts.sum() - np.trace(counts))
    lead = f"{plural(wrong, 'mistake')} in {plural(int(counts.sum()), 'test image')}.{said}"
    shown = _numbers(counts, names) if len(counts) <= _SMALL else _picture(counts)
    return [el("p", lead, cls="lead"), el("div", shown, _worst(counts, names), cls="uneven")]


def _numbers(counts: Counts, names: list[str]) -> Html:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = [el("td"), *(el("th", el("span", name), scope="col", title=name) for name in names)]
    rows = [
        el(
            "tr",
            el("th", name, scope="row", title=name),
            [_cell(int(count), float(share), i == j) for j, (count, share) in enumerate(zip(row, part, strict=True))],
        )
        for i, (name, row, part) in enumerate(zip(names, counts, shares, strict=True))
    ]
    table = el(
        "table",
        el("caption", "Rows: the true class. Columns: what the network said. Darker: a larger share of the row."),
        el("thead", el("tr", head)),
        el("tbody", rows),
        cls="confusion long" if max(map(len, names)) > _LETTERS else "confusion",
    )
    return el("div", table, cls="box", tabindex=0, role="region", aria_label="Confusion matrix")


def _cell(count: int, share: float, right: bool) -> Html:
    kind = " ".join(word for word, holds in (("right", right), ("strong", share > 0.5), ("zero", not count)) if holds)
    style = f"--share:{share:.2f}" if count else None
    return el("td", f"{count:,}" if count else "·", cls=kind or None, style=style)


def _picture(counts: Counts) -> Html:
    """A pixel for each pair of classes."""
    if len(counts) > _LARGE:
        return el("p", f"With {len(counts):,} classes the matrix is not drawn.", cls="empty")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    pixels = np.zeros((*counts.shape, 4), dtype=np.uint8)  # transparent where nothing is: on dark and on light
    pixels[...] = (0, 114, 178, 0)
    pixels[..., 3] = np.where(counts > 0, np.round(64 + 191 * np.sqrt(shares)), 0)  # a single mistake is seen too
    wrong = ~np.eye(len(counts), dtype=bool)
    pixels[wrong, :3] = (213, 94, 0)
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    name = f"Confusion matrix of {len(counts)} classes: rows are true classes, columns what the network said."
    caption = f"{name} The diagonal is right (blue); what lies beside it is wrong (orange)."
    image = el(
        "img", src=f"data:image/png;base64,{data}", alt=name, cls="matrix", width=len(counts), height=len(counts)
    )
    return el("figure", el("figcaption", el("span", caption)), image)


def _worst(counts: Counts, names: list[str]) -> Html:
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True) if wrong[i, j]]
    if not pairs:
        return el("p", "No image was taken for another class.", cls="empty")
    rows = [
        el(
            "tr",
            el("td", names[i]),
            el("td", names[j]),
            el("td", f"{wrong[i, j]:,}", cls="n"),
            el("td", percent(100 * wrong[i, j] / counts[i].sum(), 1), cls="n"),
        )
        for i, j in pairs
    ]
    head = el(
        "tr",
        [
            el("th", title, scope="col", cls=kind)
            for title, kind in (("true", None), ("taken for", None), ("images", "n"), ("of its class", "n"))
        ],
    )
    table = el("table", el("caption", "Most frequent mistakes"), el("thead", head), el("tbody", rows))
    return el("div", table, cls="box")
