from __future__ import annotations

import http.client
import signal
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.report import making
from tests.report.reading import read
from tests.runs.making import python, said
from theta0.errors import DataError, Theta0Error
from theta0.report.watch import Server, serving, watch
from theta0.searching import Trial


class Answer(NamedTuple):
    status: int
    body: str
    headers: Mapping[str, str]


@contextmanager
def served(path: Path) -> Iterator[Server]:
    with serving(path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: Server, path: str | None = None, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> Answer:
    """``path`` is what follows the token if it does not begin with a slash."""
    if path is None or not path.startswith("/"):
        path = f"/{server.token}/{path or ''}"
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(), dict(answer.headers))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with making.finished(tmp_path_factory.mktemp("runs"), pooled=60) as run:
        return run.path


@pytest.fixture(scope="module")
def server(finished: Path) -> Iterator[Server]:
    with served(finished) as server:
        yield server


def test_a_finished_run_is_served(server: Server) -> None:
    with urllib.request.urlopen(server.address) as answer:
        page = answer.read().decode()
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert server.address.startswith("http://127.0.0.1:")
    found = read(page)
    assert "Test accuracy 97.5" in found.sections["result"].text
    assert [tag for tag in found.whole.having("main") if "data-live" in tag]


def test_only_this_machine_can_reach_it(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.server_port), timeout=5)


@pytest.mark.parametrize("path", ["/", "/main", "/x/main", "/../x", "//", "/%2e%2e/"])
def test_the_address_is_secret(server: Server, path: str) -> None:
    answer = ask(server, path)
    assert answer.status == 403
    assert "not that of `theta0 watch`" in answer.body
    assert server.token not in answer.body
    assert "digits" not in answer.body


def test_an_address_of_other_bytes_is_refused(server: Server) -> None:
    for target in (b"/\xc3\xa4/", b"*", server.address.encode()):
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            host = f"Host: 127.0.0.1:{server.server_port}".encode()
            connection.sendall(b"GET " + target + b" HTTP/1.1\r\n" + host + b"\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.0 403 ")


def test_tokens_are_long_and_new(server: Server, finished: Path) -> None:
    assert len(server.token) >= 32
    with serving(finished) as other:
        assert other.token != server.token
    assert ask(server, f"/{server.token[:-1]}/").status == 403
    assert ask(server, f"/{server.token}x/").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", ""])
def test_other_hosts_are_refused(server: Server, host: str) -> None:
    """A name that was made to lead here gets nothing, even with the token."""
    answer = ask(server, "main", {"Host": host})
    assert answer.status == 403
    assert "this host name does not lead here" in answer.body


def test_localhost_is_this_machine(server: Server) -> None:
    assert ask(server, "", {"Host": f"LOCALHOST:{server.server_port}"}).status == 200


def test_what_is_not_there(server: Server) -> None:
    for path in ("nothing", "main/x", "run.db", "../run.db"):
        assert ask(server, path).status == 404
    assert ask(server, "main", method="POST").status == 501
    assert ask(server, "?x=1").status == 200


def test_an_address_without_its_last_slash_leads_to_the_page(server: Server) -> None:
    """The page asks for what lies beside it."""
    answer = ask(server, f"/{server.token}")
    assert answer.status == 301
    assert answer.headers["Location"] == f"/{server.token}/"
    with urllib.request.urlopen(server.address.rstrip("/")) as found:
        assert found.url == server.address


def test_nothing_is_kept_and_nobody_frames_it(server: Server) -> None:
    for path in ("", "main", "/wrong"):
        headers = ask(server, path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["Server"] == "theta0"


def test_what_has_not_changed_is_not_sent_again(server: Server) -> None:
    first = ask(server, "main")
    assert (first.status, first.body.startswith("<div")) == (200, True)
    tag = first.headers["ETag"]
    again = ask(server, "main", {"If-None-Match": tag})
    assert (again.status, again.body) == (304, "")
    assert again.headers["ETag"] == tag
    assert ask(server, "main", {"If-None-Match": '"other"'}).status == 200
    head = ask(server, "main", method="HEAD")
    assert (head.status, head.body, head.headers["ETag"]) == (200, "", tag)
    assert int(head.headers["Content-Length"]) == len(first.body.encode())


def test_many_readers_at_once(server: Server) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(ask(server, "main").status)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 12


def test_a_reader_that_goes_away_is_no_event(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(
                f"GET /{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
            )
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\r\n\r\n")  # what a browser says that wants https
    assert ask(server, "main").status == 200
    assert capsys.readouterr() == ("", "")


def test_changes_appear(tmp_path: Path) -> None:
    run = making.in_flight(tmp_path)
    with served(run.path) as server:
        first = ask(server, "main")
        assert "7 of 40 trials ended so far." in read(first.body).whole.text
        tag = first.headers["ETag"]
        assert ask(server, "main", {"If-None-Match": tag}).status == 304
        architecture = run.space.parse(run.evaluations()[7].architecture)
        run.add_trial(Trial(7, architecture, 12, 99.0, 2.0, 60.0, "", {}))
        second = ask(server, "main", {"If-None-Match": tag})
        assert second.status == 200
        assert second.headers["ETag"] != tag
        assert "8 of 40 trials ended so far." in read(second.body).whole.text
        assert "99.0" in read(second.body).sections["result"].text
        making.finish(run)
        third = ask(server, "main", {"If-None-Match": second.headers["ETag"]})
        assert read(third.body).whole.having("span", cls="finished")
        run.close()
        assert ask(server, "main").status == 200


def test_a_process_that_dies_shows(tmp_path: Path) -> None:
    """Nothing is written when a process is killed; the page knows all the same."""
    run = making.in_flight(tmp_path)
    with served(run.path) as server:
        first = ask(server, "main")
        assert read(first.body).whole.having("span", cls="running")
        run.close()
        second = ask(server, "main", {"If-None-Match": first.headers["ETag"]})
        assert second.status == 200
        assert read(second.body).whole.having("span", cls="stopped")
        assert "cut off" in read(second.body).sections["trials"].text


def test_a_run_that_vanishes_is_said(tmp_path: Path) -> None:
    with making.failed(tmp_path) as run, served(run.path) as server:
        assert ask(server, "main").status == 200
        (run.path / "run.db").unlink()
        answer = ask(server, "main")
        assert answer.status == 503
        assert "run.db" in answer.body or "unable to open" in answer.body
        assert ask(server, "").status == 503


def test_a_server_leaves_the_run_as_it_is(finished: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in finished.iterdir()}
    with served(finished) as server:
        ask(server)
        ask(server, "main")
    assert {path.name: path.stat().st_mtime_ns for path in finished.iterdir()} == before


def test_places_where_it_cannot_listen(finished: Path, tmp_path: Path) -> None:
    for host in ("0.0.0.0", "", "::", "example.org"):
        with pytest.raises(
            Theta0Error, match=r"to this machine only, at 127.0.0.1, not at .*; from elsewhere use a tun"
        ):
            watch(finished, host=host)
    for port in (-1, 65536):
        with pytest.raises(Theta0Error, match=f"a port is from 0 .* to 65535, not {port}"):
            watch(finished, port=port)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            Theta0Error, match=rf"nothing can listen on port {port}: Address already in use; take anoth"
        ):
            watch(finished, port=port)
    with pytest.raises(DataError, match="expected the folder of a run"):
        watch(tmp_path)


def test_another_version(tmp_path: Path) -> None:
    with making.failed(tmp_path) as run:
        path = run.path
    with closing(sqlite3.connect(path / "run.db")) as connection:
        connection.execute("PRAGMA user_version = 77")
    with pytest.raises(DataError, match="expected a run of format 1, found format 77; update theta0"):
        watch(path)


def test_the_command_serves_until_it_is_interrupted(finished: Path) -> None:
    code = "import sys; from theta0.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ("watch", finished.name, "--root", finished.parent, "--browser", "none")
    with python(code, *arguments) as process:
        address = said(process).strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert "Test accuracy" in read(answer.read().decode()).sections["result"].text
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_opens_a_browser(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("webbrowser.open", told.append)

    def interrupted(self: Server, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    ready: list[str] = []
    watch(finished, open_browser=True, on_ready=ready.append)
    assert told == ready
    assert ready[0].startswith("http://127.0.0.1:")
    watch(finished)
    assert len(told) == 1


def test_a_run_that_is_not_there() -> None:
    with pytest.raises(DataError, match="found no folder there"):
        watch("/no/such/run")
