"""Scores from the neural tangent kernel of a batch: trace, knas, kappa, lambda_min and its bound, Frobenius norm.

K is the Gram matrix (N, N) of the samples' gradients. ``official`` is the HNAS code's: contributions of one backward
pass in training mode, target logit, convolutions and linear layers. ``frozen`` takes the batch statistics as constants,
which makes each gradient that of its sample. ``tenas`` is the TE-NAS code's: true gradients through the batch
statistics, sum of logits, all weights; a backward pass for each sample. ``knas:series`` is the KNAS code's, which is
no Gram matrix of samples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.evidence import Evidence, check_logits
from theta0.metrics import Metric, Value, Variant, register

_KINDS: dict[str, tuple[tuple[str, str, str], str]] = {
    "official": (("contribution", "target", "official"), "contributions, target logit"),
    "frozen": (("frozen", "target", "official"), "frozen statistics, target logit"),
    "logits": (("contribution", "logits", "official"), "contributions, every logit"),
    "loss": (("contribution", "loss", "official"), "contributions, loss"),
    "tenas": (("coupled", "sum", "every_weight"), "coupled statistics, sum of logits"),
}


def _of(kind: str, function: Callable[[Tensor, Evidence], Value]) -> Callable[[Evidence], Value]:
    def compute(e: Evidence) -> Value:
        gram = e.gram(*_KINDS[kind][0])
        if not bool(torch.isfinite(gram).all()):
            return float("nan"), "overflow"
        return function(gram, e)

    return compute


def _variants(
    function: Callable[[Tensor, Evidence], Value], formula: str, first: str = "official"
) -> dict[str, Variant]:
    names = [first, *(kind for kind in _KINDS if kind != first)]
    return {
        kind: Variant(_of(kind, function), f"{formula}; {_KINDS[kind][1]}", expensive=kind == "tenas") for kind in names
    }


def _flagged(value: float, gram: Tensor) -> Value:
    return (value, "dead") if float(gram.diagonal().sum()) == 0 else value


def _trace(gram: Tensor, e: Evidence) -> Value:
    return _flagged(float(gram.diagonal().sum() / e.size) ** 0.5, gram)


def _knas(gram: Tensor, e: Evidence) -> Value:
    return _flagged(abs(float(gram.mean())) ** 0.5, gram)


def _frobenius(gram: Tensor, e: Evidence) -> Value:
    return _flagged(float(gram.norm()), gram)


def _bound(gram: Tensor, e: Evidence) -> Value:
    return _flagged(float(gram.diagonal().sum()) / e.x[0].numel(), gram)


def _extremes(gram: Tensor, e: Evidence) -> tuple[float, float, bool]:
    """Smallest and largest eigenvalue, and whether the smallest is no more than rounding.

    The gradients have errors of some units of their dtype relative to the largest ones, and the smallest eigenvalue one
    of the square of that; below it, and below the rounding of the Gram matrix itself, it says nothing.
    """
    if e.size < 2:
        raise Theta0Error("the spectrum of an NTK needs at least two samples; this batch has one")
    values = torch.linalg.eigvalsh(gram)
    low, high = float(values[0]), float(values[-1])
    unit = max(torch.finfo(e.x.dtype).eps * 8, 1e-15)
    return low, high, low <= e.size * max(unit**2, 1e-15) * high


def _kappa(gram: Tensor, e: Evidence) -> Value:
    low, high, singular = _extremes(gram, e)
    if high <= 0:
        return float("inf"), "dead"
    return (float("inf"), "singular") if singular else high / low


def _lambda_min(gram: Tensor, e: Evidence) -> Value:
    low, high, singular = _extremes(gram, e)
    if high <= 0:
        return 0.0, "dead"
    return (0.0, "singular") if singular else low


_SERIES, _ENTRIES, _TENSORS = 50, 50, 11


def _knas_series(e: Evidence) -> Value:
    """What the KNAS code computes: how gradients of later mini-batches go with those of earlier ones, entry by entry.

    50 mini-batches, here cut out of the batch; the first 50 entries of the first 11 parameters that have so many.
    """
    if e.size < 2 * _SERIES:
        raise Theta0Error(f"the KNAS code takes {_SERIES} mini-batches; give a batch of at least 100, not {e.size}")
    chosen = [w.value for w in e.parameters if w.value.numel() >= _ENTRIES][:_TENSORS]
    rows = []
    for x, y in zip(e.x.tensor_split(_SERIES), e.y.tensor_split(_SERIES), strict=True):
        loss = e.loss(check_logits(e.model(x.clone()), len(x)), y).mean()
        found = torch.autograd.grad(loss, chosen, allow_unused=True)
        pieces = [
            (torch.zeros_like(v) if g is None else g).flatten()[:_ENTRIES] for v, g in zip(chosen, found, strict=True)
        ]
        rows.append(torch.cat(pieces).double())
    earlier, later = torch.stack(rows).chunk(2)
    earlier, later = earlier - earlier.mean(dim=0), later - later.mean(dim=0)
    total = float((earlier * later).sum()) / _SERIES**2
    return (total, "dead") if total == 0 else total


_HNAS = "Shu et al. (HNAS), NeurIPS 2022"
register(Metric("trace", f"{_HNAS}, equation 4", "higher", _variants(_trace, "sqrt(tr K / N)")))
_SERIES_FORM = Variant(_knas_series, "products of the loss gradients of mini-batches k and k + 25", expensive=True)
register(
    Metric(
        "knas",
        "Xu et al., ICML 2021; thesis D.1.1",
        "higher",
        _variants(_knas, "sqrt |mean_ij K_ij|") | {"series": _SERIES_FORM},
    )
)
register(Metric("kappa", f"{_HNAS}, 4.2; Chen et al. (TE-NAS)", "lower", _variants(_kappa, "lambda_max / lambda_min")))
register(Metric("lambda_min", "Zhu et al. (Eigen-NAS), 2022", "higher", _variants(_lambda_min, "lambda_min(K)")))
register(Metric("eigen_bound", "Zhu et al. (Eigen-NAS), 5.2", "higher", _variants(_bound, "tr K / d")))
register(Metric("frobenius", "Xu et al., ICML 2021", "higher", _variants(_frobenius, "||K||_F")))
