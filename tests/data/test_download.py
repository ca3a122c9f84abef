"""The downloader against a server on this machine that does everything wrong that a server can."""

from __future__ import annotations

import hashlib
import http.server
import os
import threading

import pytest

from theta0.data import download
from theta0.errors import DataError

BODY = bytes(range(256)) * 40
RIGHT = {"size": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/good":
            self.answer(BODY, len(BODY))
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
        elif self.path == "/changed":
            self.answer(BODY[:-1] + b"x", len(BODY))
        elif self.path == "/short":
            self.answer(BODY[:-7], len(BODY) - 7)
        elif self.path == "/cut":
            self.answer(BODY[:5000], len(BODY))
        elif self.path == "/endless":
            self.answer(BODY * 3, None)
        elif self.path == "/unannounced":
            self.answer(BODY[:5000], None)
        else:
            self.send_error(404)

    def answer(self, body: bytes, length: int | None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["good", "moved"])
def test_a_good_file_arrives_whole_in_a_new_folder(server, tmp_path, path):
    target = tmp_path / "new" / "file.bin"
    assert download.fetch(f"{server}/{path}", target, **RIGHT) == target
    assert target.read_bytes() == BODY
    assert os.listdir(target.parent) == ["file.bin"]
    assert download.matches(target, **RIGHT)
    assert not download.matches(target, size=RIGHT["size"], sha256="0" * 64)
    assert not download.matches(tmp_path / "none", **RIGHT)


def test_the_file_can_be_read_by_others_as_the_umask_says(server, tmp_path):
    old = os.umask(0o022)
    try:
        target = download.fetch(f"{server}/good", tmp_path / "file.bin", **RIGHT)
    finally:
        os.umask(old)
    assert target.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("changed", rf"expected sha256 {RIGHT['sha256']}, found [0-9a-f]{{64}}; the file was removed"),
        ("short", rf"expected {len(BODY)} bytes, found {len(BODY) - 7} announced"),
        ("cut", rf"expected {len(BODY)} bytes, found 5000 when the connection ended|failed after \d+ of"),
        ("unannounced", rf"expected {len(BODY)} bytes, found 5000 when the connection ended"),
        ("endless", rf"expected {len(BODY)} bytes, found more"),
        ("nothing", r"HTTP status 404 .*mirror=.*by hand: .*file\.bin"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(server, tmp_path, path, message):
    with pytest.raises(DataError, match=rf"{server}/{path}: .*({message})"):
        download.fetch(f"{server}/{path}", tmp_path / "file.bin", **RIGHT)
    assert os.listdir(tmp_path) == []


def test_a_failed_download_leaves_the_old_file(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(b"old")
    with pytest.raises(DataError, match="sha256"):
        download.fetch(f"{server}/changed", tmp_path / "file.bin", **RIGHT)
    assert (tmp_path / "file.bin").read_bytes() == b"old"


def test_nobody_listens(tmp_path):
    with pytest.raises(DataError, match="failed after 0 of"):
        download.fetch("http://127.0.0.1:9/file", tmp_path / "file.bin", **RIGHT)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["ftp://host/file", "/just/a/path", "data:,hello"])
def test_other_kinds_of_url_are_refused(tmp_path, url):
    with pytest.raises(DataError, match="http, https or file URL"):
        download.fetch(url, tmp_path / "file.bin", **RIGHT)


def test_a_local_mirror_and_progress_on_a_terminal(tmp_path, monkeypatch, capsys):
    (tmp_path / "source").write_bytes(BODY)
    download.fetch((tmp_path / "source").as_uri(), tmp_path / "quiet.bin", **RIGHT)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    download.fetch((tmp_path / "source").as_uri(), tmp_path / "file.bin", **RIGHT)
    assert "file.bin: 0.0 of 0.0 MB" in capsys.readouterr().err


def test_an_interrupted_download_leaves_nothing(server, tmp_path, monkeypatch):
    def interrupt(*args, last=False):
        if not last:
            raise KeyboardInterrupt

    monkeypatch.setattr(download, "_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        download.fetch(f"{server}/good", tmp_path / "file.bin", **RIGHT)
    assert os.listdir(tmp_path) == []
