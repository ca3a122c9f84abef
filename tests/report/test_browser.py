"""The page in a real browser: what a reader sees and does, and that nothing is asked of the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report import making
from tests.report.browser import Browser, Page
from tests.report.test_watch import served
from theta0 import report
from theta0.searching import Trial

KINDS = ("finished", "darts", "failed", "flying", "crowded")
WIDE = "[document.documentElement.scrollWidth, innerWidth]"
_CUT = """[...document.querySelectorAll("main *, header *, footer *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !one.closest(".box, nav, svg, [hidden]");
}).map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}`)"""
"""What lies beyond the right edge, but for what scrolls by itself."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of reports."""
    root = tmp_path_factory.mktemp("runs")
    flying = making.in_flight(root)
    classes = [f"a class of a very long name, number {number}" for number in range(24)]
    crowded, _ = making.begin(root, trials=20, pooled=30, data=f"/data/{'long' * 20}", classes=classes)
    making.finish(crowded, images=2400, wrong=900, classes=24)
    runs = {"flying": flying, "crowded": crowded}
    runs |= {kind: getattr(making, kind)(root) for kind in KINDS if kind not in runs}
    found = {kind: report.write(run, root / f"{kind}.html").as_uri() for kind, run in runs.items()}
    for run in runs.values():
        run.close()
    return found


def opened(browser: Browser, address: str, width: int = 1280, **settings: Any) -> Page:
    page = browser.page(width, **settings)
    page.open(address)
    return page


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_in_the_console_and_none_to_the_network(browser: Browser, pages: dict[str, str], kind: str) -> None:
    page = opened(browser, pages[kind])
    assert page.problems == []
    assert page.requests == [pages[kind]]
    assert page.ask("document.readyState") == "complete"
    assert page.ask("document.documentElement.classList.contains('js')")


def test_problems_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    """The test above is one that can fail."""
    bad = tmp_path / "bad.html"
    policy = "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'; img-src 'none'\">"
    bad.write_text(f"<!doctype html>{policy}<img src=http://127.0.0.1:9/x.png><script>nothing.there()</script>")
    page = opened(browser, bad.as_uri())
    page.until("document.readyState === 'complete'")
    problems = " ".join(page.problems)
    assert "nothing is not defined" in problems
    assert "Content Security Policy" in problems


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [390, 320, 820, 1280])
def test_charts_are_drawn_and_fit(browser: Browser, pages: dict[str, str], kind: str, width: int) -> None:
    page = opened(browser, pages[kind], width)
    across, inside = page.ask(WIDE)
    assert inside == width
    assert across <= inside
    assert page.ask(_CUT) == []
    charts = page.ask(
        """[...document.querySelectorAll("svg.chart, svg.strip, svg.cell, img.matrix")].filter((one) =>
        !one.closest(".panel:not(.on)")).map((one) => {
          const box = one.getBoundingClientRect();
          const marks = [...one.querySelectorAll("path, circle")].map((mark) => mark.getBBox());
          const drawn = marks.filter((mark) => mark.width + mark.height > 0).length;
          return [one.getAttribute("class"), box.width, box.height, one.tagName === "IMG" ? one.naturalWidth : drawn];
        })"""
    )
    names = [name for name, *_ in charts]
    expected = {"finished": 7, "darts": 7, "failed": 0, "flying": 6, "crowded": 7}[kind]
    assert len(names) == expected, names
    for name, wide, high, drawn in charts:
        assert wide > 200, name
        assert high > 60, name
        assert drawn >= 3, name


def test_texts_of_a_chart_lie_within_it(browser: Browser, pages: dict[str, str]) -> None:
    """Labels of axes are not cut off and do not lie over each other."""
    for width in (390, 1280):
        page = opened(browser, pages["finished"], width)
        outside = page.ask(
            """[...document.querySelectorAll("svg.chart")].filter((one) => one.clientWidth).flatMap((chart) => {
              const card = chart.closest("figure").getBoundingClientRect(), above = chart.getBoundingClientRect().top;
              return [...chart.querySelectorAll("text")].filter((text) => {
                const box = text.getBoundingClientRect();
                const across = box.left < card.left || box.right > card.right;
                return across || box.top < above - 4 || box.bottom > card.bottom;
              }).map((text) => text.textContent);
            })"""
        )
        assert outside == []
        over = page.ask(
            """[...document.querySelectorAll("svg.chart")].filter((one) => one.clientWidth).flatMap((chart) => {
              const boxes = [...chart.querySelectorAll("text:not(.name):not(.label)")].map((text) =>
                [text.textContent, text.getBoundingClientRect()]);
              const meet = (one, other) => one.left < other.right && other.left < one.right &&
                one.top < other.bottom - 3 && other.top < one.bottom - 3;
              return boxes.flatMap(([a, one], i) =>
                boxes.slice(i + 1).filter(([, other]) => meet(one, other)).map(([b]) => [a, b]));
            })"""
        )
        assert over == []


def colour(page: Page, what: str = "document.body", name: str = "backgroundColor") -> tuple[float, ...]:
    found = page.ask(f"getComputedStyle({what}).{name}")
    return tuple(float(part) for part in re.findall(r"[\d.]+", found)[:3])


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """That of the Web Content Accessibility Guidelines."""

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_dark_and_light(browser: Browser, pages: dict[str, str]) -> None:
    page = opened(browser, pages["finished"])
    assert min(colour(page)) > 240
    assert page.ask("document.getElementById('theme').textContent") == "Dark"
    page.ask("document.getElementById('theme').click()")
    assert max(colour(page)) < 40
    assert page.ask("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    assert page.ask("getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.open(pages["finished"])  # it is kept
    assert max(colour(page)) < 40
    page.ask("document.getElementById('theme').click()")
    assert min(colour(page)) > 240
    page.ask("localStorage.clear()")
    assert page.problems == []


@pytest.mark.parametrize("dark", [False, True])
def test_texts_can_be_read_in_both(browser: Browser, pages: dict[str, str], dark: bool) -> None:
    """The system's choice is followed, and every colour of a text stands out from its ground."""
    page = opened(browser, pages["finished"], dark=dark)
    assert (max(colour(page)) < 40) == dark
    card = colour(page, "document.querySelector('.result')")
    for selector in ("h1", ".big", ".note", ".lead", "td.bad", ".state", "nav a", "td", ".facts dt", ".key"):
        text = colour(page, f"document.querySelector('{selector}')", "color")
        assert contrast(text, card) >= 4.5, selector
    for selector in (".chart text", ".chart .label", ".strip .word"):
        assert contrast(colour(page, f"document.querySelector('{selector}')", "fill"), card) >= 4.5, selector
    strong = "document.querySelector('.confusion td.strong')"
    assert page.ask(f"getComputedStyle({strong}).color") is not None
    assert contrast(colour(page, strong, "color"), colour(page, "document.querySelector('.ring')", "stroke")) >= 4.5


def test_printed(browser: Browser, pages: dict[str, str]) -> None:
    """On white, with the heads of tables, all rows, and nothing to press; from a dark screen too."""
    page = opened(browser, pages["finished"], 688, dark=True)  # A4 between its margins
    page.media("print", dark=True)
    across, inside = page.ask(WIDE)
    assert across <= inside
    assert colour(page) == (255, 255, 255)
    assert colour(page, "document.querySelector('h1')", "color") == (0, 0, 0)
    hidden = page.ask("['nav', '#theme', '.choose', '.copy'].map((one) => document.querySelector(one).offsetHeight)")
    assert hidden == [0, 0, 0, 0]
    heads = page.ask(
        "[...document.querySelectorAll('#trials thead th')].map((one) => [one.innerText, one.offsetHeight])"
    )
    assert [text.split(",")[0] for text, _ in heads][:3] == ["trial", "accuracy", "epochs"]
    assert all(height > 0 for _, height in heads)
    trials = "document.querySelector('#trials .box')"
    assert page.ask(f"{trials}.scrollHeight <= {trials}.clientHeight + 1")
    lines = page.ask("[...document.querySelectorAll('#trials td.n')].map((one) => one.getClientRects().length)")
    assert set(lines) == {1}
    numbers = page.ask(
        "[...document.querySelectorAll('#trials tbody tr')].map((row) => row.cells[1].firstChild).map((text) => {"
        "const range = document.createRange(); range.selectNode(text); return range.getClientRects().length; })"
    )
    assert set(numbers) == {1}  # no number is broken into two lines
    assert page.pdf().startswith(b"%PDF-")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [688, 1000])
def test_nothing_is_cut_off_on_paper(browser: Browser, pages: dict[str, str], kind: str, width: int) -> None:
    page = opened(browser, pages[kind], width)
    page.media("print")
    beyond = page.ask(
        "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
        ".map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}`)"
    )
    assert beyond == []
    across, inside = page.ask(WIDE)
    assert across <= inside


@pytest.mark.parametrize("width", [390, 1280])
def test_counts_of_mistakes_are_not_broken(browser: Browser, pages: dict[str, str], width: int) -> None:
    page = opened(browser, pages["crowded"], width)
    heights = page.ask("[...document.querySelectorAll('.confusion td')].map((one) => one.offsetHeight)")
    assert max(heights[25:]) <= 40  # a line; the first row has the names


def test_another_score_is_shown(browser: Browser, pages: dict[str, str]) -> None:
    page = opened(browser, pages["finished"])
    shown = "[...document.querySelectorAll('.panel')].filter((one) => one.offsetHeight).map((one) => one.dataset.panel)"
    assert page.ask(shown) == ["trace:official"]
    page.ask(
        "(() => { const one = document.querySelector('select'); one.value = 'synflow:log';"
        "one.dispatchEvent(new Event('change')); })()"
    )
    assert page.ask(shown) == ["synflow:log"]


def test_trials_are_sorted(browser: Browser, pages: dict[str, str]) -> None:
    page = opened(browser, pages["finished"])
    column = "[...document.querySelectorAll('#trials tbody tr')].map((row) => row.cells[{}].textContent)"
    press = "document.querySelectorAll('#trials thead button')[{}].click()"
    page.ask(press.format(1))
    values = page.ask(column.format(1))
    assert values[-2:] == ["failed", "failed"]
    assert values[:-2] == sorted(values[:-2], key=float, reverse=True)
    assert page.ask("document.querySelectorAll('#trials th')[1].getAttribute('aria-sort')") == "descending"
    page.ask(press.format(1))
    assert page.ask(column.format(1))[2:] == sorted(values[:-2], key=float)
    page.ask(press.format(0))
    assert page.ask(column.format(0)) == [str(number) for number in range(40)]
    page.ask(press.format(7))
    cells = page.ask(column.format(7))
    assert cells == sorted(cells)


def test_the_mark_beside_the_pointer_tells_what_it_is(browser: Browser, pages: dict[str, str]) -> None:
    page = opened(browser, pages["finished"])
    page.ask("document.querySelector('#progress .chart').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y, text = page.ask(
        """(() => {
          const chart = document.querySelector("#progress .chart"), box = chart.getBoundingClientRect();
          const line = chart.dataset.tips.split("\\n")[5], [x, y] = line.split(",").map(Number);
          const scale = box.width / chart.viewBox.baseVal.width;
          return [box.left + x * scale, box.top + y * scale, line.split(",").slice(2).join(",")];
        })()"""
    )
    assert page.ask("document.getElementById('tip').hidden")
    page.point(x + 2, y)
    assert page.ask("document.getElementById('tip').textContent") == text
    assert not page.ask("document.getElementById('tip').hidden")
    spot = page.ask(
        "(() => { const b = document.getElementById('spot').getBoundingClientRect(); return [b.x, b.y]; })()"
    )
    assert spot[0] + 7.5 == pytest.approx(x, abs=2)
    page.point(2, 2)
    assert page.ask("document.getElementById('tip').hidden")
    page.ask("document.querySelector('#progress .chart').focus()")
    page.press("ArrowRight")
    assert page.ask("document.getElementById('tip').textContent").startswith("trial 0:")
    page.press("ArrowRight")
    assert page.ask("document.getElementById('tip').textContent").startswith("trial 1:")
    page.press("Escape")
    assert page.ask("document.getElementById('tip').hidden")


def test_without_a_script_the_page_is_whole(browser: Browser, pages: dict[str, str]) -> None:
    page = browser.page(1280)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(pages["finished"])
    shown = page.ask("[...document.querySelectorAll('.panel')].filter((one) => one.offsetHeight).length")
    assert shown == len(making.SCORES)
    assert page.ask("document.getElementById('theme').offsetHeight") == 0


def test_names_of_somebody_else_do_nothing(browser: Browser, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    run, _ = making.begin(tmp_path, trials=3, pooled=30, data=evil, classes=[evil, *making.CLASSES[1:]])
    with run:
        making.finish(run)
        path = report.write(run)
    page = opened(browser, path.as_uri())
    assert page.problems == []
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert evil in page.ask("document.querySelector('#environment').textContent")


def test_a_live_page_follows_the_run(browser: Browser, tmp_path: Path) -> None:
    run = making.in_flight(tmp_path)
    with served(run.path) as server:
        page = opened(browser, server.address, 390)
        assert "7 of 40 trials ended so far." in page.ask("document.querySelector('main').innerText")
        page.ask("document.querySelector('select').value = 'synflow:log'")
        page.ask("document.querySelector('select').dispatchEvent(new Event('change'))")
        run.add_trial(Trial(7, run.space.parse(run.evaluations()[7].architecture), 12, 99.0, 2.0, 60.0, "", {}))
        page.until("document.querySelector('main').innerText.includes('8 of 40 trials ended so far.')")
        assert page.ask("document.querySelector('.panel.on').dataset.panel") == "synflow:log"  # what the reader chose
        assert page.ask("document.getElementById('live').textContent") == "live"
        across, inside = page.ask(WIDE)
        assert across <= inside
        making.finish(run)
        run.close()
        page.until("document.querySelector('.state').textContent === 'Finished'")
        assert page.problems == []
        assert {address.removeprefix(server.address) for address in page.requests} == {"", "main"}
    page.until("document.getElementById('live').textContent.startsWith('not live')")
