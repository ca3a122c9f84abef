"""The errors that theta0 raises on purpose.

Each one is a ``ValueError`` whose message names the constraint, the value that came, and what to do. The command line
prints the message alone and exits with 2; anything else that is raised is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Theta0Error(ValueError):
    """A value that theta0 cannot use."""


class ParseError(Theta0Error):
    """A text that does not follow its notation; ``position`` is the offset of the first wrong character."""

    def __init__(self, text: str, position: int, expected: str) -> None:
        self.text, self.position, self.expected = text, position, expected
        found = repr(text[position]) if position < len(text) else "the end of the text"
        start = max(0, position - 60)
        line = text[start : position + 60].replace("\n", " ")
        pointer = " " * (position - start) + "^"
        super().__init__(f"expected {expected} at position {position}, found {found}\n  {line}\n  {pointer}")


class DataError(Theta0Error):
    """A data file that is missing, damaged, or not what its name says."""


class DivergedError(Theta0Error):
    """A training whose numbers are no longer finite."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that helps with a name that is not known: the nearest ones, or all of them."""
    names = sorted(known)
    written = {known_name.lower(): known_name for known_name in names}
    close = [written[match] for match in difflib.get_close_matches(name.lower(), written, n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names) or 'none'}"
