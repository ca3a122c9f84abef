"""One file from a URL: whole, of the known size and sha256, or not there at all.

The bytes go to a temporary file in the same folder, which takes the final name only after the check, in one step. So an
interrupted, failed or wrong download leaves nothing that could be taken for the file.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import BinaryIO

from theta0.errors import DataError

_CHUNK = 2**20
_TIMEOUT = 60.0


def fetch(url: str, target: Path, *, size: int, sha256: str) -> Path:
    """Downloads ``url`` to ``target``; returns ``target``. ``size`` is in bytes and also the limit of what is read."""
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in ("http", "https", "file"):
        raise DataError(f"{url}: expected an http, https or file URL, found {scheme or 'no scheme'!r}; check mirror=")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Opened as any file, not with tempfile: that would let only the owner read, and a data folder is often shared.
    temporary = target.parent / f".{target.name}-{secrets.token_hex(8)}.part"
    try:
        with temporary.open("xb") as out:
            found = _stream(url, out, size, target)
        if found != sha256:
            raise DataError(
                f"{url}: expected sha256 {sha256}, found {found}; the file was removed. It was changed or damaged "
                f"on the way: try again, or give another source with mirror="
            )
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def matches(file: Path, *, size: int, sha256: str) -> bool:
    """Whether ``file`` is there, whole and right."""
    if not file.is_file() or file.stat().st_size != size:
        return False
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def _stream(url: str, out: BinaryIO, size: int, target: Path) -> str:
    """Copies the body to ``out`` and returns its sha256; a body of another length than ``size`` is an error."""
    digest, done = hashlib.sha256(), 0
    request = urllib.request.Request(url, headers={"User-Agent": "theta0"})
    by_hand = f"give another source with mirror=, or put the file there by hand: {target}"
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            announced = response.headers.get("Content-Length")
            if announced is not None and announced.isdigit() and int(announced) != size:
                raise DataError(f"{url}: expected {size} bytes, found {announced} announced; another file: {by_hand}")
            while chunk := response.read(_CHUNK):
                done += len(chunk)
                if done > size:
                    raise DataError(f"{url}: expected {size} bytes, found more; another file: {by_hand}")
                digest.update(chunk)
                out.write(chunk)
                _progress(target.name, done, size)
    except urllib.error.HTTPError as error:
        with error:
            raise DataError(
                f"{url}: expected the file, found HTTP status {error.code} {error.reason}; {by_hand}"
            ) from error
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{url}: the download failed after {done} of {size} bytes: {error}; {by_hand}") from error
    finally:
        _progress(target.name, done, size, last=True)
    if done != size:
        raise DataError(
            f"{url}: expected {size} bytes, found {done} when the connection ended; try again, or {by_hand}"
        )
    return digest.hexdigest()


def _progress(name: str, done: int, size: int, *, last: bool = False) -> None:
    if sys.stderr.isatty():
        line = f"\r{name}: {done / 1e6:.1f} of {size / 1e6:.1f} MB"
        print(line, end="\n" if last else "", file=sys.stderr, flush=True)
