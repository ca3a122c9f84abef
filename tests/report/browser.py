"""A real browser without a window: Chromium, spoken to in the DevTools protocol over a pair of pipes.

with Browser() as browser:
    page = browser.page(width=390)
    page.open(path.as_uri())
    page.ask("document.title"), page.problems
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

_PATIENCE = 60.0
"""Seconds for one answer: a loaded machine is not a bug."""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def program() -> str:
    """The browser of this machine; a test that needs one is skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    pytest.skip("no chromium or google-chrome is on the PATH, so that no page can be looked at")


class Browser:
    """One process; each page is a tab with a size of its own."""

    def __init__(self) -> None:
        found = program()
        self._profile = tempfile.mkdtemp(prefix="theta0-browser-")
        (down, to), (back, up) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (down, up)]  # not one of 3 and 4 themselves
        command = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "browser", found, *_FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile}"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (down, up, *ends):
            os.close(end)
        self._to, self._back, self._rest, self._number = to, back, b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._to)  # the end of its pipe ends the browser
        os.close(self._back)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def page(self, width: int = 1280, height: int = 900, *, dark: bool = False, scale: float = 1.0) -> Page:
        """A new tab."""
        made = self.call("Target.createTarget", url="about:blank")
        session = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)["sessionId"]
        return Page(self, session, width, height, dark, scale)

    def call(self, method: str, session: str | None = None, **given: Any) -> Any:
        """The answer to one command; what happens meanwhile is kept in ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._read(deadline)
            assert answer is not None, f"the browser does not answer {method}"
            if answer.get("id") != self._number:
                self.events.append(answer)
                continue
            assert "error" not in answer, f"{method}: {answer.get('error')}"
            return answer["result"]

    def wait(self, method: str, session: str, since: int) -> dict[str, Any]:
        """The first event of this name after the first ``since`` events."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            for event in self.events[since:]:
                if (event.get("method"), event.get("sessionId")) == (method, session):
                    return event
            since = len(self.events)
            event = self._read(deadline)
            assert event is not None, f"the browser never said {method}"
            self.events.append(event)

    def _read(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._rest:
            if not select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(self._back, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str, width: int, height: int, dark: bool, scale: float) -> None:
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        self.media(dark=dark)

    def call(self, method: str, **given: Any) -> Any:
        return self.browser.call(method, self.session, **given)

    def media(self, kind: str = "", *, dark: bool = False) -> None:
        """What the page is shown on: a screen, or paper as "print"."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def open(self, address: str) -> None:
        """Loads a page to its end."""
        since = len(self.browser.events)
        found = self.call("Page.navigate", url=address)
        assert "errorText" not in found, found
        self.browser.wait("Page.loadEventFired", self.session, since)

    def ask(self, expression: str) -> Any:
        """What an expression of JavaScript comes to, a promise too."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 20.0) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"never came true: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """One key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def point(self, x: float, y: float) -> None:
        """Moves the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        """A picture of the page as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def pdf(self) -> bytes:
        """As it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])

    @property
    def problems(self) -> list[str]:
        """What the console of this page was told: errors, warnings, violations of the page's policy."""
        self.ask("0")  # all that happened before has been said now
        found = []
        for event in self.browser.events:
            told = event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(told["args"]))
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(json.dumps(told["entry"]))
        return found

    @property
    def requests(self) -> list[str]:
        """The addresses that the page asked for, but for pictures within it."""
        self.ask("0")
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
            if not event["params"]["request"]["url"].startswith("data:")
        ]
