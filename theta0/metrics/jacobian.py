"""The covariance of input gradients: how differently a network treats different images."""

from __future__ import annotations

import torch

from theta0.evidence import Evidence
from theta0.metrics import Metric, Value, Variant, register

_SHIFT = 1e-5


def _jacobian_covariance(e: Evidence) -> Value:
    rows = e.input_gradient.double()
    centred = rows - rows.mean(dim=1, keepdim=True)
    norms = centred.norm(dim=1, keepdim=True)
    if not bool(torch.isfinite(norms).all()):
        return float("nan"), "overflow"
    if bool((norms == 0).any()):  # a correlation with a constant is not defined
        return float("nan"), "dead"
    unit = centred / norms
    # Of a symmetric matrix, where the zero-cost code takes the general solver and may get complex values.
    values = torch.linalg.eigvalsh(unit @ unit.T).clamp(min=0) + _SHIFT
    return -float((values.log() + 1 / values).sum())


register(
    Metric(
        "jacob_cov",
        "Mellor et al., 2020 (first version of NASWOT); Abdelfattah et al., ICLR 2021",
        "higher",
        {
            "zerocost": Variant(
                _jacobian_covariance,
                "-sum of log(v + k) + 1 / (v + k) over the eigenvalues v of the correlations of input gradients",
                needs=frozenset({"input"}),
            )
        },
    )
)
