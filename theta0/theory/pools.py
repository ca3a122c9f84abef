"""Scores of architectures without a network: those of their kernels at infinite width, as a pool for any searcher.

    table = scores(space, architectures, images)            # columns kappa:infinite, trace:infinite, ...
    run("eigen", objective, Budget(20), scores=table)

A score of that name is defined for networks (theta0.metrics) and has its direction there; ``infinite`` is its NTK's at
infinite width and ``nngp`` that of the covariance of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor, linalg

from theta0.errors import Theta0Error
from theta0.pool import PoolScores
from theta0.space import Space
from theta0.theory.cells import CellKernel
from theta0.theory.mlp import infinite, unit

NAMES = ("trace", "kappa", "lambda_min", "knas", "eigen_bound", "frobenius")


def spectrum(gram: Tensor, dimension: int) -> dict[str, tuple[float, str]]:
    """The scores of a Gram matrix (N, N) with their validity; ``dimension`` is the d of Eigen-NAS's bound."""
    if not bool(gram.isfinite().all()):
        return dict.fromkeys(NAMES, (math.nan, "overflow"))
    size, values = len(gram), linalg.eigvalsh(gram)
    low, high, trace = float(values[0]), float(values[-1]), float(gram.diagonal().sum())
    if high <= 0:
        return dict.fromkeys(NAMES, (0.0, "dead")) | {"kappa": (math.inf, "dead")}
    singular = low <= size * 1e-13 * high
    return {
        "trace": (math.sqrt(trace / size), "ok"),
        "kappa": (math.inf, "singular") if singular else (high / low, "ok"),
        "lambda_min": (0.0, "singular") if singular else (low, "ok"),
        "knas": (math.sqrt(abs(float(gram.mean()))), "ok"),
        "eigen_bound": (trace / dimension, "ok"),
        "frobenius": (float(gram.norm()), "ok"),
    }


def scores(space: Space[Any], architectures: Sequence[Any], images: Tensor, **settings: Any) -> PoolScores:
    """A pool of cells of NAS-Bench-201 (``settings`` of :class:`~theta0.theory.cells.CellKernel`) or of networks of the
    Eigen-NAS space (of :func:`~theta0.theory.mlp.infinite`, images brought to the unit sphere).

    Architectures of one canonical form are worked out once.
    """
    kernels: Callable[[Any], tuple[Tensor, Tensor]]
    if space.name == "nasbench201":
        kernels = CellKernel(images, **settings).of
    elif space.name == "mlp":
        x = unit(images)

        def kernels(architecture: Any) -> tuple[Tensor, Tensor]:
            return infinite(architecture, x, **settings)[:2]
    else:
        raise Theta0Error(f"kernels of infinite width are known for nasbench201 and mlp, not for {space.name}")
    dimension, known, rows = images[0].numel(), dict[Any, list[tuple[float, str]]](), []
    for architecture in architectures:
        key = space.canonical(architecture)
        if key not in known:
            known[key] = [spectrum(gram, dimension)[name] for gram in kernels(architecture) for name in NAMES]
        rows.append(known[key])
    shape = (len(rows), 2 * len(NAMES))
    values = np.array([[value for value, _ in row] for row in rows]).reshape(shape)
    validity = np.array([[PoolScores.code(said) for _, said in row] for row in rows], dtype=np.uint8).reshape(shape)
    names = [f"{name}:{kind}" for kind in ("infinite", "nngp") for name in NAMES]
    facts = {"images": list(images.shape), "width": "infinite", **settings}
    return PoolScores(space.name, [space.format(one) for one in architectures], names, values, validity, facts)
