"""The page of a run while it goes on, for the one who started it, in a browser of the same machine.

The server listens on 127.0.0.1 alone. Every address has a secret token in its path, which other users of the machine
and other pages in the browser do not know; a request that names another host is refused as well, so that no foreign
name can be made to lead here (DNS rebinding). It only reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path
from typing import Any

from theta0.errors import Theta0Error
from theta0.report.document import body, document
from theta0.report.material import POOL, Material
from theta0.runs import Run
from theta0.runs.database import NAME

_HOSTS = ("127.0.0.1", "localhost")
_PAGE, _TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def watch(
    run_path: str | PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = False,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serves the page of the run in the folder ``run_path`` until the keyboard stops it; finished runs stay shown.

    ``on_ready`` gets the address, which is secret. Port 0 is any that is free.
    """
    with serving(run_path, host=host, port=port) as server:
        if on_ready is not None:
            on_ready(server.address)
        if open_browser:
            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)


@contextlib.contextmanager
def serving(run_path: str | PathLike[str], *, host: str = "127.0.0.1", port: int = 0) -> Iterator[Server]:
    """A server that listens, and answers once ``serve_forever`` is called."""
    if host not in _HOSTS:
        raise Theta0Error(
            f"a run is shown to this machine only, at 127.0.0.1, not at {host!r}; from elsewhere use a tunnel: "
            f"ssh -L PORT:127.0.0.1:PORT"
        )
    if not 0 <= port < 65536:
        raise Theta0Error(f"a port is from 0 (any that is free) to 65535, not {port}")
    with Run.open(run_path) as run:
        try:
            server = Server(run, port)
        except OSError as error:
            raise Theta0Error(f"nothing can listen on port {port}: {error.strerror}; take another (--port)") from error
        with server:
            yield server


class Server(ThreadingHTTPServer):
    """One run at one secret address."""

    daemon_threads = True

    def __init__(self, run: Run, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.run, self.token = run, secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._known: tuple[object, str, bytes] = (None, "", b"")

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> set[str]:
        """What a request may call this machine."""
        return {f"{host}:{self.server_port}" for host in _HOSTS}

    def page(self) -> bytes:
        """The whole page."""
        return _encoded(document(Material.of(self.run), live=True))

    def main(self) -> tuple[str, bytes]:
        """The part that changes, and its tag; made again only if the run's files or its state are others."""
        with self._lock:
            stamp = self._stamp()
            if stamp != self._known[0]:
                content = _encoded(body(Material.of(self.run)))
                self._known = stamp, f'"{hashlib.sha256(content).hexdigest()[:32]}"', content
            return self._known[1:]

    def _stamp(self) -> object:
        folder = self.run.path
        return self.run.state, *(_state(folder / name) for name in (NAME, f"{NAME}-wal", POOL))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 10
    protocol_version = "HTTP/1.0"
    """No connection outlives its answer, so that a page knows at once that the server has ended."""

    def do_GET(self) -> None:
        """Answers who knows the token."""
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            return self._refuse("this host name does not lead here")
        _, *parts = self.path.partition("?")[0].split("/", 2)
        token, *rest = parts or [""]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self._refuse("the address is not that of `theta0 watch`; copy it whole")
        if not rest:  # the page asks for what lies beside it
            return self._send(HTTPStatus.MOVED_PERMANENTLY, b"", Location=f"/{token}/")
        try:
            if rest == [""]:
                return self._send(HTTPStatus.OK, self.server.page(), _PAGE)
            if rest == ["main"]:
                return self._main()
        except (Theta0Error, OSError) as error:
            return self._send(HTTPStatus.SERVICE_UNAVAILABLE, str(error).encode())
        return self._send(HTTPStatus.NOT_FOUND, b"there is nothing at this address")

    do_HEAD = do_GET  # noqa: N815 (the name is the library's)

    def _main(self) -> None:
        tag, content = self.server.main()
        if self.headers.get("If-None-Match") == tag:
            return self._send(HTTPStatus.NOT_MODIFIED, b"", ETag=tag)
        return self._send(HTTPStatus.OK, content, _PAGE, ETag=tag)

    def _refuse(self, why: str) -> None:
        self._send(HTTPStatus.FORBIDDEN, why.encode())

    def _send(self, status: HTTPStatus, content: bytes, kind: str = _TEXT, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        if status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status is not HTTPStatus.NOT_MODIFIED:
            self.wfile.write(content)

    def version_string(self) -> str:
        """Nothing that a stranger needs to know."""
        return "theta0"

    def log_message(self, format: str, *arguments: Any) -> None:
        """The address is secret, and a poll every two seconds is no news."""


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
