"""Parameters and multiply-adds of a module; neither needs weights, so a network on the meta device will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_DENSE = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


def parameters(model: nn.Module) -> int:
    """The number of trainable parameters; an auxiliary classifier is left out, since the finished network has none."""
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and not name.startswith("auxiliary.")
    )


class _Shapes(TorchFunctionMode):
    """Skips what keeps the shape: on the meta device one normalisation costs as much as twenty convolutions."""

    skipped = frozenset({functional.batch_norm, functional.relu, torch.relu})

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return args[0] if func in self.skipped else func(*args, **(kwargs or {}))


def flops(model: nn.Module, shape: tuple[int, ...]) -> int:
    """Multiply-adds of the convolutions and linear layers for one input of ``shape`` (C, H, W).

    The model runs once, in evaluation mode, on the device where its parameters are; it comes back as it went in.
    """
    total = 0

    def add(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        nonlocal total
        # One multiply-add for each weight that an output element reads: all weights but those of the other outputs.
        weight: Tensor = module.weight  # type: ignore[assignment]
        total += output.numel() * (weight.numel() // weight.shape[0])

    handles = [module.register_forward_hook(add) for module in model.modules() if isinstance(module, _DENSE)]
    modes = [(module, module.training) for module in model.modules()]
    first = next(model.parameters(), None)
    device, dtype = (first.device, first.dtype) if first is not None else (torch.device("cpu"), torch.float32)
    model.eval()
    try:
        with torch.no_grad(), _Shapes():
            model(torch.zeros(1, *shape, device=device, dtype=dtype))
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return total
