"""HTML and SVG from Python, escaped by construction: what is not made here is text, and text is escaped.

el("p", "a < b ", el("strong", "5"), cls="note")        # <p class="note">a &lt; b <strong>5</strong></p>
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_VOID = frozenset({"meta", "link", "img"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def el(name: str, /, *children: Child, **attributes: Any) -> Html:
    """An element; ``cls`` is its class, underscores in names are hyphens, and None or False leaves an attribute out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(children)}</{name}>")


def join(children: Child) -> Html:
    """What stands inside an element."""
    if children is None:
        return Html()
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return Html(escape(str(children), quote=False))
    return Html("".join(map(join, children)))


def _attribute(key: str, value: Any) -> str:
    if value is False:
        return ""
    name = {"cls": "class", "viewbox": "viewBox"}.get(key, key.replace("_", "-"))
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
