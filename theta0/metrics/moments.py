"""Scores from moments of gradients and of feature maps: ZiCo and MeCo."""

from __future__ import annotations

import torch
from torch import nn

from theta0.errors import Theta0Error
from theta0.evidence import Evidence, check_logits
from theta0.kernel import Recording
from theta0.metrics import Metric, Value, Variant, register


def _zico(e: Evidence) -> Value:
    """The batch in two halves, as the paper takes two batches."""
    half = e.size // 2
    if half < 1:
        raise Theta0Error("ZiCo compares two halves of a batch; this batch has one sample")
    values = [weight.value for weight in e.weights]
    found = []
    for part in (slice(0, half), slice(half, 2 * half)):
        losses = e.loss(check_logits(e.model(e.x[part].clone()), half), e.y[part])
        gradients = torch.autograd.grad(losses.mean(), values, allow_unused=True)
        found.append([torch.zeros_like(v) if g is None else g for v, g in zip(values, gradients, strict=True)])
    total, layers = 0.0, 0
    for first, second in zip(*found, strict=True):
        pair = torch.stack([first, second]).double()
        deviation = pair.std(dim=0, correction=0)
        kept = deviation > 0
        ratio = float((pair.abs().mean(dim=0)[kept] / deviation[kept]).sum())
        if ratio > 0:
            total += float(torch.log(torch.tensor(ratio, dtype=torch.float64)))
            layers += 1
    return total if layers else (0.0, "dead")


def _meco(e: Evidence) -> Value:
    """One image of noise; the others of its batch only give the normalisation its statistics."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(e.x.shape, generator=generator, dtype=e.x.dtype).to(e.x.device)
    with Recording(e.model) as recording:
        check_logits(e.model(noise), e.size)
    total = 0.0
    for call in recording.calls:
        if isinstance(call.layer, nn.Conv2d) and call.value.shape[1] > 1 and call.value[0, 0].numel() > 1:
            maps = call.activation()[0].flatten(1).double()
            maps = maps - maps.mean(dim=1, keepdim=True)
            maps = maps / maps.norm(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
            total += float(torch.linalg.eigvalsh(maps @ maps.T)[0])
    return total


register(
    Metric(
        "zico",
        "Li et al., ICLR 2023",
        "higher",
        {
            "paper": Variant(
                _zico, "sum_l log sum over weights of mean |g| / deviation of g, over two halves of the batch"
            )
        },
    )
)
register(
    Metric(
        "meco",
        "Jiang et al., NeurIPS 2023",
        "higher",
        {
            "paper": Variant(
                _meco, "sum over convolutions of lambda_min of the correlations of their maps of one noise image"
            )
        },
    )
)
