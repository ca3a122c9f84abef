"""Good archives, and archives that try to write elsewhere."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile

import pytest

from theta0.data.archive import extract
from theta0.errors import DataError


def tar(path, members, name="data.tar.gz"):
    """``members``: (name, bytes) for files, or ready ``TarInfo``."""
    with tarfile.open(path / name, "w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path / name


def zipped(path, members):
    with zipfile.ZipFile(path / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path / "data.zip"


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


FILES = [("top/a.bin", b"one"), ("top/deep/b.bin", b"two" * 1000)]


@pytest.mark.parametrize("make", [tar, zipped])
def test_a_good_archive(tmp_path, make):
    archive = make(tmp_path, FILES)
    folder = extract(archive, "top")
    assert folder == tmp_path / "top"
    assert {str(f.relative_to(tmp_path)): f.read_bytes() for f in folder.rglob("*.bin")} == dict(FILES)
    assert sorted(os.listdir(tmp_path)) == sorted([archive.name, "top"])


def test_permissions_of_the_archive_are_not_applied(tmp_path):
    info = tarfile.TarInfo("top/run")
    info.mode = 0o4777
    extract(tar(tmp_path, [info]), "top")
    assert (tmp_path / "top" / "run").stat().st_mode & (stat.S_ISUID | stat.S_IXUSR) == 0


EVIL = ["../evil", "top/../../evil", "/tmp/theta0-evil", "top\\..\\evil", "C:/evil"]


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize("name", EVIL)
def test_a_path_that_leads_outside_is_refused(tmp_path, make, name):
    inner = tmp_path / "inner"
    inner.mkdir()
    archive = make(inner, [*FILES, (name, b"evil")])
    with pytest.raises(DataError, match=r"found a path that leads outside.*evil"):
        extract(archive, "top")
    assert os.listdir(tmp_path) == ["inner"]
    assert os.listdir(inner) == [archive.name]


@pytest.mark.parametrize(
    "member",
    [
        special("top/link", tarfile.SYMTYPE, "/etc/passwd"),
        special("top/link", tarfile.LNKTYPE, "top/a.bin"),
        special("top/link", tarfile.FIFOTYPE),
        special("top/link", tarfile.CHRTYPE),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, member):
    with pytest.raises(DataError, match="found a link or device: 'top/link'"):
        extract(tar(tmp_path, [*FILES, member]), "top")
    assert os.listdir(tmp_path) == ["data.tar.gz"]


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        info = zipfile.ZipInfo("top/link")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="found a link or device: 'top/link'"):
        extract(tmp_path / "data.zip", "top")


@pytest.mark.parametrize("make", [tar, zipped])
def test_a_bomb_stops_at_the_limit(tmp_path, make):
    with pytest.raises(DataError, match="unpacks to less than its limit"):
        extract(make(tmp_path, [("top/zeros", bytes(5_000_000))]), "top", limit=1_000_000)
    assert not (tmp_path / "top").exists()


@pytest.mark.parametrize("make", [tar, zipped])
def test_a_truncated_archive_leaves_nothing(tmp_path, make):
    archive = make(tmp_path, [("top/noise", os.urandom(20_000))])
    archive.write_bytes(archive.read_bytes()[:9_000])
    with pytest.raises(DataError, match=r"data\.\S+: expected a whole archive"):
        extract(archive, "top")
    assert os.listdir(tmp_path) == [archive.name]


def test_a_file_that_is_there_twice(tmp_path):
    with pytest.raises(DataError, match=r"expected a whole archive.*exists"):
        extract(tar(tmp_path, [("top/a", b"1"), ("top/a", b"2")]), "top")


def test_another_archive_and_an_occupied_place(tmp_path):
    archive = tar(tmp_path, FILES)
    with pytest.raises(DataError, match="expected the folder other/ in it, found top"):
        extract(archive, "other")
    (tmp_path / "top").mkdir()
    with pytest.raises(DataError, match="expected nothing there"):
        extract(archive, "top")
