from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainings import cell, darts
from theta0 import checkpoint
from theta0.errors import DataError
from theta0.space import get_space

CONTENT = {"tensor": torch.arange(5.0), "number": 3, "list": [1.5, None], "identity": {"seed": 1}}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"
    checkpoint.write(path, {"old": 1})
    checkpoint.write(path, CONTENT)
    found = checkpoint.read(path)
    assert torch.equal(found.pop("tensor"), CONTENT["tensor"])
    assert found == {name: value for name, value in CONTENT.items() if name != "tensor"}
    assert os.listdir(tmp_path) == ["one.ckpt"]


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str) -> None:
    path = tmp_path / "one.ckpt"
    checkpoint.write(path, {"old": 1})

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, breaks, full)
        with pytest.raises(DataError, match=r"one\.ckpt: the checkpoint cannot be written: .*No space left"):
            checkpoint.write(path, CONTENT)
    assert checkpoint.read(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["one.ckpt"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        checkpoint.write(tmp_path / "nowhere/one.ckpt", CONTENT)
    with pytest.raises(DataError, match="cannot be read"):
        checkpoint.read(tmp_path / "nowhere/one.ckpt")


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "one bit": (lambda whole: whole[:-99] + bytes([whole[-99] ^ 1]) + whole[-98:], "damaged"),
    "cut short": (lambda whole: whole[:-10], "damaged"),
    "the first line": (lambda whole: whole[:20], "damaged"),
    "nothing": (lambda whole: b"", "something else"),
    "another file": (lambda whole: b"PNG\n" + whole, "something else"),
    "a later format": (lambda whole: whole.replace(b"checkpoint 1\n", b"checkpoint 2\n", 1), "format 2, .* reads 1"),
}


@pytest.mark.parametrize("found", DAMAGE)
def test_files_that_are_not_whole(tmp_path: Path, found: str) -> None:
    path, (change, said) = tmp_path / "one.ckpt", DAMAGE[found]
    checkpoint.write(path, CONTENT)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=rf"one\.ckpt: .*{said}"):
        checkpoint.read(path)


class Evil:
    def __reduce__(self) -> Any:
        return print, ("ran",)


def test_no_code_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, buffer = tmp_path / "one.ckpt", io.BytesIO()
    torch.save({"model": Evil()}, buffer)
    body = buffer.getvalue()
    path.write_bytes(b"theta0 checkpoint 1\n" + hashlib.sha256(body).digest() + body)
    with pytest.raises(DataError, match="what theta0 never writes"):
        checkpoint.read(path)
    assert not capsys.readouterr().out


def test_architectures_are_told_apart() -> None:
    space = get_space("darts")
    genotype = space.parse("DARTS_V2")
    first, *others = genotype.normal.edges
    rewired = genotype._replace(normal=replace(genotype.normal, edges=(first._replace(source=1), *others)))
    assert checkpoint.architecture(cell(seed=0)) == checkpoint.architecture(cell(seed=1).eval())
    kinds = [
        cell(),
        darts(),
        darts(channels=4),
        darts(affine=False),
        space.build(rewired, seed=0, channels=2, layers=3, classes=3, auxiliary=True),
        nn.Conv2d(2, 2, 3),
        nn.Conv2d(2, 2, 3, padding=1),
        nn.Sequential(nn.ReLU()),
        nn.Sequential(nn.Tanh()),
        nn.Sequential(nn.LeakyReLU(0.1)),
        nn.Sequential(nn.LeakyReLU(0.2)),
    ]
    assert len({checkpoint.architecture(model) for model in kinds}) == len(kinds)


def test_another_training_is_named(tmp_path: Path) -> None:
    ours = {"seed": 1, "recipe": {"epochs": 2, "batch": 8}}
    checkpoint.check_identity(tmp_path, ours, ours)
    with pytest.raises(DataError, match="of another seed"):
        checkpoint.check_identity(tmp_path, {**ours, "seed": 2}, ours)
    with pytest.raises(DataError, match=r"of another recipe with epochs=3 \(not 2\);"):
        checkpoint.check_identity(tmp_path, {**ours, "recipe": {"epochs": 3, "batch": 8}}, ours)
