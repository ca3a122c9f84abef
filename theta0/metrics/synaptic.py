"""SynFlow: the flow through all paths of a network with absolute weights, without normalisation and without data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call

from theta0.evidence import Evidence, check_logits
from theta0.metrics import Metric, Value, Variant, register

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_SHIFT = 900
"""The power of two by which the second try scales down."""


@contextlib.contextmanager
def _without_normalisation(model: nn.Module) -> Iterator[None]:
    layers = [module for module in model.modules() if isinstance(module, _NORMS)]
    try:
        for layer in layers:
            layer.forward = lambda input: input  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _flow(e: Evidence, shift: int) -> float:
    """sum_l |theta_l dR/dtheta_l| times 4^-shift.

    Images and biases are scaled by 2^-shift, and so is everything behind them, since rectifiers and linear layers are
    homogeneous; the output is scaled once more for the way back. So both ways stay within float64 where R does not.
    """
    scale = 2.0**-shift
    names = dict(e.model.named_parameters())
    values = {name: p.detach().abs().double() * (scale if name.endswith("bias") else 1) for name, p in names.items()}
    chosen = {id(weight.value) for weight in e.weights}
    flowing = {name: value.requires_grad_(True) for name, value in values.items() if id(names[name]) in chosen}
    buffers = {n: b.abs().double() if b.is_floating_point() else b for n, b in e.model.named_buffers()}
    ones = torch.full((1, *e.x.shape[1:]), scale, dtype=torch.float64, device=e.x.device)
    with _without_normalisation(e.model):
        out: Tensor = check_logits(functional_call(e.model, {**values, **buffers}, (ones,)), 1)
    gradients = torch.autograd.grad(out.sum() * scale, list(flowing.values()), allow_unused=True)
    terms = [(v.detach() * g).abs().sum() for v, g in zip(flowing.values(), gradients, strict=True) if g is not None]
    return float(torch.stack(terms).sum()) if terms else 0.0


def _logarithm(e: Evidence) -> tuple[float, bool]:
    """The logarithm of the flow, and whether the flow itself is beyond float64."""
    flow = _flow(e, 0)
    if math.isfinite(flow):
        return (math.log(flow) if flow > 0 else -math.inf), False
    flow = _flow(e, _SHIFT)
    return (math.log(flow) + 2 * _SHIFT * math.log(2) if 0 < flow < math.inf else math.nan), True


def _raw(e: Evidence) -> Value:
    value, large = _logarithm(e)
    if large:
        return math.inf, "overflow"
    return (0.0, "dead") if value == -math.inf else math.exp(value)


def _log(e: Evidence) -> Value:
    value, _ = _logarithm(e)
    if math.isnan(value):
        return value, "overflow"
    return (value, "dead") if value == -math.inf else value


register(
    Metric(
        "synflow",
        "Tanaka et al., NeurIPS 2020; Abdelfattah et al., ICLR 2021",
        "higher",
        {
            "log": Variant(_log, "log of sum_l |theta_l dR / dtheta_l|, R the sum of outputs on an image of ones"),
            "zerocost": Variant(_raw, "sum_l |theta_l dR / dtheta_l|"),
        },
    )
)
