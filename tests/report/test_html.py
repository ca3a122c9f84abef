from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.report.reading import read
from theta0.report.html import Html, el, join


def test_an_element() -> None:
    made = el("p", "a < b ", el("strong", 5), cls="note", data_tips="x", hidden=True, title=None, lang=False)
    assert made == '<p class="note" data-tips="x" hidden>a &lt; b <strong>5</strong></p>'
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert el("svg", viewbox="0 0 1 1") == '<svg viewBox="0 0 1 1"></svg>'


def test_children() -> None:
    assert join(["a", None, [Html("<b>"), 3]]) == "a<b>3"
    assert join(None) == ""


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_texts_come_back_as_they_were(text: str) -> None:
    """Whatever is put in is one text and one attribute: nothing gets out of either."""
    found = read(el("p", text, title=text)).whole
    assert found.tags == [("p", {"title": text})]
    assert "".join(found.words) == text
