"""A page as its reader gets it: the text, tables and pictures of each section."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = ("meta", "link", "img")
Attributes = dict[str, str | None]


@dataclass
class Section:
    """A section of the page."""

    words: list[str] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    """Rows of cells, the head too."""
    tags: list[tuple[str, Attributes]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def having(self, tag: str, **attributes: str) -> list[Attributes]:
        """The elements of this name; ``cls`` is a word of the class."""
        wanted = {"class" if name == "cls" else name: value for name, value in attributes.items()}
        return [
            found
            for name, found in self.tags
            if name == tag and all(value in (found.get(key) or "").split() for key, value in wanted.items())
        ]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.whole, self.sections, self.current = Section(), {}, ""

    @property
    def _at(self) -> list[Section]:
        return [self.whole, *([self.sections[self.current]] if self.current else [])]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "section":
            self.current = found["id"]
            self.sections[self.current] = Section()
        for section in self._at:
            section.tags.append((tag, found))
            if tag == "table":
                section.tables.append([])
            elif tag == "tr":
                section.tables[-1].append([])
            elif tag in ("td", "th"):
                section.tables[-1][-1].append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is not what is open: {self.open}"
        if tag == "section":
            self.current = ""

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        for section in self._at:
            section.words.append(data)
            if "td" in self.open or "th" in self.open:
                section.tables[-1][-1][-1] += data


@dataclass
class Read:
    """All of a page; ``whole`` is as if it were one section."""

    whole: Section
    sections: dict[str, Section]


def read(page: str) -> Read:
    """Reads a page, or the main part of one; every element must be closed in its order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open, reader.open
    return Read(reader.whole, reader.sections)
