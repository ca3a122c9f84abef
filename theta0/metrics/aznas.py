"""AZ-NAS: expressivity, progressivity and trainability of a network's blocks, ranked together over a pool.

The blocks are the children of a ``nn.Sequential`` that give feature maps (N, C, H, W), as in the networks of the spaces
here. The fourth part of the paper's score is FLOPs; :func:`combined` ranks all four over a pool.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from theta0.errors import Theta0Error
from theta0.evidence import Evidence
from theta0.metrics import Metric, Value, Variant, register


def _blocks(e: Evidence) -> list[Tensor]:
    """The outputs of the blocks in training mode, each with the graph from the one before."""
    if not isinstance(e.model, nn.Sequential):
        raise Theta0Error(
            f"AZ-NAS compares the blocks of a network; they are the children of a nn.Sequential, and this is a "
            f"{type(e.model).__name__}"
        )
    x = e.x.detach()
    found: list[Tensor] = []
    for child in e.model:
        x = child(x.clone())  # which it may change in place
        if x.dim() != 4 or x[0, 0].numel() < 2:
            break
        x = x.detach().requires_grad_(True) if not found else x
        found.append(x)
    if len(found) < 2:
        raise Theta0Error(f"AZ-NAS compares blocks that give feature maps; this network has {len(found)}")
    return found


def _entropies(e: Evidence) -> list[float]:
    """For each block the entropy of the normalised variances along its features' principal components."""
    result = []
    for block in _blocks(e):
        features = block.detach().double().transpose(0, 1).flatten(1)
        features = features - features.mean(dim=1, keepdim=True)
        values = torch.linalg.eigvalsh(features @ features.T / features.shape[1]).clamp(min=0)
        if not bool(torch.isfinite(values).all()):
            return [float("nan")]
        share = values / values.sum() if float(values.sum()) > 0 else values
        result.append(-float(torch.special.xlogy(share, share).sum()))
    return result


def _expressivity(e: Evidence) -> Value:
    total = sum(_entropies(e))
    return (total, "dead") if total == 0 else total


def _progressivity(e: Evidence) -> Value:
    values = np.array(_entropies(e))
    return float(np.diff(values).min()) if len(values) > 1 else float("nan")


def _trainability(e: Evidence) -> Value:
    """Mean over blocks of 2 - s - 1/s; s is the spectral norm of what a block makes of random signs sent backwards."""
    generator = torch.Generator().manual_seed(0)
    blocks, values = _blocks(e), []
    for before, after in itertools.pairwise(blocks):
        signs = torch.randint(2, after.shape, generator=generator).to(after) * 2 - 1
        (back,) = torch.autograd.grad(after, before, signs, retain_graph=True, allow_unused=True)
        if back is None or float(back.abs().max()) == 0:
            return float("-inf"), "dead"
        stride = before.shape[2] // after.shape[2]
        if stride > 1:
            back = nn.functional.pixel_unshuffle(back, stride)
        if back.shape[2:] != after.shape[2:]:
            raise Theta0Error(f"AZ-NAS needs blocks that divide the sides of their maps; this one takes {stride}")
        rows, columns = (t.double().transpose(0, 1).flatten(1) for t in (back, signs))
        norm = float(torch.linalg.matrix_norm(rows @ columns.T / rows.shape[1], ord=2))
        values.append(2 - norm - 1 / norm)
    return float(np.mean(values))


def combined(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The paper's score of each architecture of a pool: the sum of log(rank / size) over ``parts``, higher is better.

    The parts are expressivity, progressivity, trainability and FLOPs, each (n,); ties share the best rank, and what is
    not a number ranks last.
    """
    total = np.zeros(len(parts[0]))
    for part in parts:
        values = np.where(np.isnan(part), -np.inf, part)
        total += np.log(np.searchsorted(np.sort(values), values, side="right") / len(values))
    return total


register(
    Metric(
        "aznas",
        "Lee and Ham, CVPR 2024",
        "higher",
        {
            "expressivity": Variant(_expressivity, "sum over blocks of the entropy of their principal variances"),
            "progressivity": Variant(_progressivity, "smallest growth of that entropy from a block to the next"),
            "trainability": Variant(
                _trainability, "mean over blocks of 2 - s - 1/s, s the norm of their signs' return"
            ),
        },
    )
)
