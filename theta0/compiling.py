"""``torch.compile`` for many networks in one process."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from theta0.recipe import Compile


def compiled(network: Callable[..., Any], mode: Compile) -> Callable[..., Any]:
    """``network`` compiled, or its kernels recorded only (``cudagraphs``); each shape of input is compiled for itself.

    torch counts how often one and the same function is compiled, and after eight times runs it as it is, with a warning
    in the log. All networks share the functions of their classes, so each gets a function of its own here.
    """

    def forward(*inputs: Any) -> Any:
        return network(*inputs)

    own = types.FunctionType(forward.__code__.replace(), globals(), "forward", closure=forward.__closure__)
    if mode == "cudagraphs":
        return torch.compile(own, backend="cudagraphs", dynamic=False)
    return torch.compile(own, mode=mode, dynamic=False)
