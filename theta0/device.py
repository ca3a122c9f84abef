"""Where networks compute: a device by the name that a user gives it."""

from __future__ import annotations

import torch

from theta0.errors import Theta0Error


def resolved(name: str) -> str:
    """The device ``name``, which must be there; ``auto`` is the GPU, where torch finds one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(name).type
    except RuntimeError as error:
        raise Theta0Error(f"there is no device {name!r}; take cpu, cuda or auto") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise Theta0Error(f"the device {name!r} is not there: torch finds no GPU; take --device cpu")
    return name
