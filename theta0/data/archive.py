"""Unpacks a tar or zip archive in which nothing can reach outside the folder it is unpacked to.

Only plain files and folders are written, by this file itself: no link, device, owner or permission of the archive is
ever applied. The result appears in one step, so a folder that is there is whole.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from theta0.errors import DataError

# The largest known archive unpacks to 0.5 GB; what goes far beyond is a bomb.
LIMIT = 8 * 2**30


def extract(archive: Path, folder: str, *, limit: int = LIMIT) -> Path:
    """Unpacks ``archive`` beside itself and returns its top ``folder``; at most ``limit`` bytes are written."""
    target = archive.parent / folder
    if target.exists():
        raise DataError(f"{target}: expected nothing there before unpacking {archive.name}; move it away")
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{archive.name}-") as temporary:
        written = 0
        try:
            for name, is_folder, content in _members(archive):
                place = Path(temporary) / _inside(archive, name)
                if is_folder:
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                with content, place.open("xb") as out:
                    written += _copy(archive, content, out, limit - written)
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise DataError(
                f"{archive}: expected a whole archive, found {error}; remove it and download again"
            ) from error
        made = Path(temporary) / folder
        if not made.is_dir():
            found = ", ".join(sorted(os.listdir(temporary))[:5]) or "nothing"
            raise DataError(f"{archive}: expected the folder {folder}/ in it, found {found}; this is another archive")
        os.rename(made, target)
    return target


def _members(archive: Path) -> Iterator[tuple[str, bool, IO[bytes]]]:
    """(name, is a folder, content) of each member in the order of the archive; everything else is refused."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise _refused(archive, info.filename, "a link or device")
                yield info.filename, info.is_dir(), zipped.open(info)
    else:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None and not member.isdir():
                    raise _refused(archive, member.name, "a link or device")
                yield member.name, content is None, content or io.BytesIO()


def _inside(archive: Path, name: str) -> PurePosixPath:
    """``name`` as a relative path; a drive, a backslash or ``..`` would lead elsewhere on some system."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise _refused(archive, name, "a path that leads outside")
    return path


def _copy(archive: Path, content: IO[bytes], out: IO[bytes], left: int) -> int:
    written = 0
    # One member at a time and in pieces: what a header says of the size is not believed.
    while piece := content.read(2**20):
        written += len(piece)
        if written > left:
            raise DataError(f"{archive}: expected an archive that unpacks to less than its limit, found more; refused")
        out.write(piece)
    return written


def _refused(archive: Path, name: str, what: str) -> DataError:
    return DataError(
        f"{archive}: expected plain files and folders, found {what}: {name!r}; nothing was unpacked. This is not the "
        f"official archive: remove it and download from another source"
    )
