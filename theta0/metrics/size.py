"""What a network costs: the baseline that every score must beat."""

from __future__ import annotations

import statistics
import time

import torch

from theta0 import count
from theta0.evidence import Evidence
from theta0.metrics import Metric, Variant, register

_RUNS = 10


def _latency(e: Evidence) -> float:
    """Median milliseconds of a forward pass over the batch, in evaluation mode, after two that do not count."""
    modes = [(module, module.training) for module in e.model.modules()]
    e.model.eval()
    times = []
    try:
        with torch.no_grad():
            for _ in range(_RUNS + 2):
                start = time.perf_counter()
                e.model(e.x.clone())
                if e.x.is_cuda:
                    torch.cuda.synchronize(e.x.device)
                times.append(time.perf_counter() - start)
    finally:
        for module, mode in modes:
            module.training = mode
    return statistics.median(times[2:]) * 1000


register(
    Metric(
        "parameters",
        "-",
        "higher",
        {"trainable": Variant(lambda e: float(count.parameters(e.model)), "trainable parameters")},
    )
)
register(
    Metric(
        "flops",
        "-",
        "higher",
        {
            "dense": Variant(
                lambda e: float(count.flops(e.model, tuple(e.x.shape[1:]))),
                "multiply-adds of convolutions and linear layers, one image",
            )
        },
    )
)
register(
    Metric("latency", "-", "lower", {"batch": Variant(_latency, "median milliseconds for the batch, evaluation mode")})
)
