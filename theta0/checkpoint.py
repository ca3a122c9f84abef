"""Files from which a training goes on: whole or not there, and only for the training that wrote them.

A file is a line with the number of its format, the sha256 of the rest, and the rest: tensors and plain values as torch
writes them. It is read without running any code from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from theta0.errors import DataError

FORMAT = 1
_NAME = b"theta0 checkpoint "


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Replaces ``path`` by a file with ``content``."""
    buffer = io.BytesIO()
    torch.save(dict(content), buffer)
    body = buffer.getbuffer()
    replace(path, _NAME + str(FORMAT).encode() + b"\n" + hashlib.sha256(body).digest(), body, what="checkpoint")


def replace(path: Path, *parts: bytes | memoryview, what: str) -> None:
    """Replaces ``path`` by a file of these bytes; whatever happens, the old or the new one is there, whole."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):  # what is left of a full disk is worth having
            part.unlink()
        raise DataError(
            f"{path}: the {what} cannot be written: {error}; make room or get permission, or name another folder"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """The content of ``path``, tensors on the CPU."""
    try:
        head, _, rest = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise DataError(f"{path}: the checkpoint cannot be read: {error}") from error
    if not head.startswith(_NAME):
        raise DataError(f"{path}: expected a checkpoint of theta0, found something else; choose another path")
    if head != _NAME + str(FORMAT).encode():
        found = head.removeprefix(_NAME).decode("ascii", "replace")[:20]
        raise DataError(
            f"{path}: this checkpoint has format {found}, and this version of theta0 reads {FORMAT}; go on with the "
            f"version that wrote it, or remove the file to start anew"
        )
    digest, body = rest[:32], memoryview(rest)[32:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError(f"{path}: the checkpoint is damaged (its sha256 differs); remove the file to start anew")
    try:
        content: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise DataError(f"{path}: the checkpoint holds what theta0 never writes: {error}; do not use it") from error
    return content


def architecture(model: nn.Module) -> str:
    """sha256 over what ``model`` is made of: modules, their plain settings, and the shapes of all that it keeps."""
    digest = hashlib.sha256()
    for name, module in model.named_modules():
        settings = {
            key: repr(value)
            for key, value in vars(module).items()
            if not key.startswith("_") and key not in ("training", "active") and _plain(value)
        }
        digest.update(repr((name, type(module).__qualname__, sorted(settings.items()))).encode())
    for name, value in model.state_dict().items():
        digest.update(repr((name, tuple(value.shape), str(value.dtype))).encode())
    return digest.hexdigest()


def _plain(value: object) -> bool:
    """Whether ``repr`` says all, and says it alike in every process."""
    if isinstance(value, tuple | list):
        return all(_plain(element) for element in value)
    if dataclasses.is_dataclass(value):
        return all(_plain(getattr(value, field.name)) for field in dataclasses.fields(value))
    return value is None or isinstance(value, bool | int | float | str)


def check_identity(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """An error that says in what the training of ``path`` differs from the one that is to go on."""
    for name, value in expected.items():
        there = found.get(name)
        if there == value:
            continue
        what = f"of another {name}"
        if isinstance(value, dict) and isinstance(there, dict):
            differing = [key for key in value if there.get(key) != value[key]]
            what += " with " + ", ".join(f"{key}={there.get(key)!r} (not {value[key]!r})" for key in differing)
        raise DataError(
            f"{path}: this checkpoint is {what}; go on with what it was made with, choose another path, or remove the "
            f"file to start anew"
        )
