from __future__ import annotations

import io

import pytest

from theta0.tables import meter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("out", "lines"), [(Terminal(), 4), (io.StringIO(), 1)])
def test_lines_come_now_and_then(out: io.StringIO, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(meter.time, "monotonic", lambda: now[0])
    shown = meter.Meter(out, "file")
    for step in range(10):
        shown.show(step, 10)
        now[0] += 0.5
    shown.end()
    assert out.getvalue().count("file: ") == lines
    assert "file: 20%, 4 s left" in out.getvalue()
    assert out.getvalue().endswith("\n")


def test_what_is_short_or_unwanted_shows_nothing() -> None:
    out = io.StringIO()
    short = meter.Meter(out, "file")
    short.show(1, 2)
    short.end()
    assert out.getvalue() == ""
    meter.Meter().show(1, 2)
