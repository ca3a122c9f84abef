"""Scores from activation patterns: which units of the rectifiers are on for which sample.

The patterns are those of the one forward pass in training mode. ``hamming`` counts, for each pair of samples, the units
on which they agree; NASWOT's kernel is that count, and two samples lie in one linear region if they agree on all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.evidence import Evidence, Need
from theta0.metrics import Metric, Value, Variant, register

_PATTERNS: frozenset[Need] = frozenset({"patterns"})


def hamming(e: Evidence) -> tuple[Tensor, int]:
    """(N, N) float64: units on which two samples agree; and the number of units."""
    if not e.patterns and not len(e.logits):
        raise Theta0Error("an empty batch has no patterns")
    if not e.patterns:
        raise Theta0Error("the network calls no rectifier (relu, relu6, leaky_relu); it has no activation patterns")
    total = torch.zeros(e.size, e.size, dtype=torch.float64, device=e.x.device)
    units = 0
    for pattern in e.patterns:
        signs = pattern.to(torch.float32).mul_(2).sub_(1)  # agreements less disagreements, exact up to 2^24 units
        total += (signs @ signs.T).double()
        units += pattern.shape[1]
    return (total + units) / 2, units


def _naswot(e: Evidence) -> Value:
    kernel, _ = hamming(e)
    values = torch.linalg.eigvalsh(kernel)
    if float(values[0]) <= e.size * 1e-15 * float(values[-1]):
        return float("-inf"), "singular"
    return float(values.log().sum())


def _regions(e: Evidence) -> float:
    kernel, units = hamming(e)
    return float((1 / (kernel == units).sum(dim=1).double()).sum())


def _swap(e: Evidence) -> float:
    if not e.patterns:
        hamming(e)
    # Each unit's pattern over the samples, packed into integers, so that different ones can be counted.
    packed = []
    for pattern in e.patterns:
        words = [
            (
                pattern[start : start + 62].long()
                << torch.arange(len(pattern[start : start + 62]), device=e.x.device)[:, None]
            ).sum(0)
            for start in range(0, e.size, 62)
        ]
        packed.append(torch.stack(words, dim=1))
    return float(len(torch.unique(torch.cat(packed), dim=0)))


register(
    Metric(
        "naswot",
        "Mellor et al., ICML 2021",
        "higher",
        {"paper": Variant(_naswot, "log det of the numbers of units on which two samples agree", _PATTERNS)},
    )
)
register(
    Metric(
        "regions",
        "Chen et al. (TE-NAS), ICLR 2021",
        "higher",
        {"paper": Variant(_regions, "number of linear regions that the samples of the batch lie in", _PATTERNS)},
    )
)
register(
    Metric(
        "swap",
        "Peng et al., ICLR 2024",
        "higher",
        {"paper": Variant(_swap, "number of different patterns that units have over the samples", _PATTERNS)},
    )
)
