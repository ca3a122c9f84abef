"""Every training-free score of a network, or of many, in one pass each.

    records = theta0.score(model, x, y)                                   # the usual scores
    records = theta0.score(model, x, y, scores=["snip", "trace:frozen"])  # some; a variant behind a colon
    print(records)                                                        # a table; .frame() is a DataFrame

Nothing is replaced in silence: each value comes with its validity, and a model comes back as it went in.
"""

from __future__ import annotations

import copy
import csv
import io
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error, nearest
from theta0.evidence import Evidence, Loss, cross_entropy
from theta0.metrics import Validity, Variant, metrics

USUAL = ("grad", "snip", "grasp", "fisher", "synflow", "naswot", "jacob_cov", "trace", "knas", "kappa", "lambda_min")
"""What is computed if nothing is asked for."""
_FREE = ("parameters", "flops", "latency", "synflow")
"""What is defined whatever the logits are."""
ALWAYS = ("parameters", "flops")
"""What stands beside every score: a score that does not beat them is of no use."""


@dataclass(frozen=True)
class Record:
    """One score of one network."""

    model: str
    name: str
    value: float
    validity: Validity
    direction: str
    variant: str
    dtype: str
    batch: int
    seed: int | None
    seconds: float
    """Its own time; what several scores share is counted with the first of them."""
    note: str = ""


class Records(list[Record]):
    """Scores, one record each."""

    def value(self, name: str, model: str | None = None) -> float:
        """The value of the score called ``name`` (of one model, where there are several)."""
        found = [r.value for r in self if r.name == name and (model is None or r.model == model)]
        if len(found) != 1:
            raise Theta0Error(f"{len(found)} records are called {name!r}; {nearest(name, {r.name for r in self})}")
        return found[0]

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each record."""
        return [asdict(record) for record in self]

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each record."""
        try:
            import pandas
        except ImportError as error:
            raise Theta0Error("a DataFrame needs pandas; pip install pandas") from error
        return pandas.DataFrame(self.rows(), columns=list(Record.__dataclass_fields__))

    def save(self, path: str | Path) -> None:
        """Writes a .csv or a .parquet file."""
        path = Path(path)
        if path.suffix == ".parquet":
            self.frame().to_parquet(path, index=False)
        elif path.suffix == ".csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(Record.__dataclass_fields__), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows())
            path.write_text(text.getvalue(), encoding="utf-8")
        else:
            raise Theta0Error(f"scores are written to .csv or .parquet files, not to {path.name!r}")

    def __str__(self) -> str:
        several = len({record.model for record in self}) > 1
        lines = [f"{'score':<16}{'value':>14}  {'better':<8}{'validity':<11}{'variant':<10}{'seconds':>8}"]
        lines[0] += "  model" if several else ""
        for record in self:
            line = f"{record.name:<16}{record.value:>14.6g}  {record.direction:<8}{record.validity:<11}"
            line += f"{record.variant:<10}{record.seconds:>8.3f}" + (f"  {record.model}" if several else "")
            lines.append(line + (f"  {record.note}" if record.note else ""))
        return "\n".join(lines)


def chosen(scores: Iterable[str] | str | None) -> list[tuple[str, str, Variant]]:
    """The scores of a request as (name, variant name, variant): None, ``all``, names, or names with variants."""
    if scores is None:
        scores = [*USUAL, *ALWAYS]
    elif scores == "all":
        return [
            (name, variant, made)
            for name in metrics.names()
            for variant, made in metrics.get(name).variants.items()
            if not made.expensive
        ]
    elif isinstance(scores, str):
        scores = scores.split(",")
    found = []
    for text in scores:
        name, _, variant = text.strip().partition(":")
        found.append((name, *metrics.get(name).variant(variant or None)))
    if not found:
        raise Theta0Error(f"no score was asked for; {nearest('', metrics.names())}")
    return list(dict.fromkeys(found))


def score(
    models: nn.Module | Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    scores: Iterable[str] | str | None = None,
    *,
    loss: Loss = cross_entropy,
    dtype: torch.dtype | None = None,
    seed: int | None = None,
) -> Records:
    """Scores of one network or several on a batch of images x (N, C, H, W) and labels y (N,).

    ``scores`` are names (``snip``) or names with a variant (``trace:frozen``), None for the usual ones, ``all`` for
    every variant that does not take a backward pass for each sample. ``dtype`` scores a copy in another precision.
    ``seed`` is for networks that draw random numbers in forward; it is put into the records.
    """
    wanted = chosen(scores)
    single = isinstance(models, nn.Module)
    listed: Sequence[nn.Module] = [models] if single else models  # type: ignore[list-item, assignment]
    records = Records()
    for i, model in enumerate(listed):
        records += _one(model, x, y, wanted, loss, dtype, seed, "" if single else str(i))
    return records


def _one(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    wanted: list[tuple[str, str, Variant]],
    loss: Loss,
    dtype: torch.dtype | None,
    seed: int | None,
    label: str,
) -> Records:
    first = next((p for p in model.parameters() if p.requires_grad), None)
    if first is None:
        raise Theta0Error("the network has no trainable parameters; there is nothing to score")
    _check_batch(x, y)
    kind = dtype or first.dtype
    if not kind.is_floating_point:
        raise Theta0Error(f"scores are computed in a floating point dtype, not in {kind}")
    if kind != first.dtype:
        model = copy.deepcopy(model).to(kind)
    x, y = x.to(first.device, kind), y.to(first.device)
    records = Records()
    needs = {need for _, _, variant in wanted for need in variant.needs}
    with Evidence(model, x, y, loss=loss, needs=needs) as e:
        if seed is not None:
            torch.manual_seed(seed)
        classes = e.logits.shape[1]
        if int(y.max()) >= classes:
            raise Theta0Error(f"labels run from 0 to {classes - 1} for {classes} logits; found {int(y.max())}")
        finite = bool(torch.isfinite(e.logits).all())
        for name, variant_name, variant in wanted:
            start = time.perf_counter()
            value, validity, note = _value(e, variant, finite, free=name in _FREE)
            records.append(
                Record(
                    label,
                    name,
                    value,
                    validity,
                    metrics.get(name).direction,
                    variant_name,
                    str(kind).removeprefix("torch."),
                    len(x),
                    seed,
                    time.perf_counter() - start,
                    note,
                )
            )
    return records


def _value(e: Evidence, variant: Variant, finite: bool, *, free: bool) -> tuple[float, Validity, str]:
    if not finite and not free:
        return math.nan, "overflow", "the logits are not finite"
    try:
        found = variant.compute(e)
    except Theta0Error as error:
        return math.nan, "refused", str(error)
    value, validity = found if isinstance(found, tuple) else (found, "ok")
    if e.dead and not free:
        validity = "dead"
    if validity == "ok" and math.isnan(value):
        validity = "undefined"
    if validity == "ok" and math.isinf(value):
        validity = "overflow"
    return value, validity, ""


def _check_batch(x: Tensor, y: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.dim() < 2 or len(x) < 1:
        shape = f"{tuple(x.shape)} {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise Theta0Error(f"a batch is a floating point tensor (N, ...) of at least one sample; this is {shape}")
    if not isinstance(y, Tensor) or y.shape != (len(x),) or y.is_floating_point() or y.dtype == torch.bool:
        shape = f"{tuple(y.shape)} {y.dtype}" if isinstance(y, Tensor) else type(y).__name__
        raise Theta0Error(f"labels are integers, one for each of the {len(x)} samples; these are {shape}")
    if int(y.min()) < 0:
        raise Theta0Error(f"labels begin at 0; found {int(y.min())}")
    if not bool(torch.isfinite(x).all()):
        raise Theta0Error("the images have values that are not finite (NaN or infinite); clean the data first")
