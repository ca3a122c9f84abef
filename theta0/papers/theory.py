"""Statements of the documents about scores, training and cells, drawn on real images (papers.md: Y2, Y4, Y5, Y8)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from theta0.data import load
from theta0.errors import Theta0Error
from theta0.papers import Given, Report, Row, reproduces
from theta0.papers.bounds import spearman
from theta0.spaces.mlp import ACTIVATIONS, Layers, MLPSpace
from theta0.theory.generalization import chain, gap
from theta0.theory.linearized import bound, closed_form, descend, linearized
from theta0.theory.mlp import infinite, unit
from theta0.theory.smoothness import Cells, Kind
from theta0.theory.transfer import transfer


def _stem(given: Given, name: str) -> Path:
    if given.folder is None:
        raise Theta0Error("a figure needs a place: --out FOLDER")
    given.folder.mkdir(parents=True, exist_ok=True)
    return given.folder / name


@reproduces("theory", "figure Y2", "the generalization gap against kappa / M (HNAS, Theorem 2)")
def figure_y2(given: Given) -> Report:
    """Kernel regression on digits for networks of the Eigen-NAS space."""
    from theta0 import figure

    x, y = load("digits").train.batch(300, seed=0)
    rows_of, space, generator = unit(x), MLPSpace(layers=5), np.random.default_rng(0)
    labels = F.one_hot(y, 10).double()
    found = []
    for _ in range(40):
        gram = infinite(space.sample(generator), rows_of).ntk
        gram = gram / torch.linalg.eigvalsh(gram[:100, :100])[-1]
        steps = chain(gram[:100, :100], (y[:100] < 5).double())
        found.append([*steps[:5], gap(gram[:100, :100], gram[100:, :100], labels[:100], labels[100:])])
    values = np.array(found)
    drawing, axes = figure.make()
    names = ("Rademacher complexity", "its norm", "M / sqrt(lambda_min)", "kappa sqrt(lambda_min) / M", "kappa / M")
    rows = []
    for place, name in enumerate(names):
        rows.append(Row(f"{name}, Spearman with the gap", None, spearman(values[:, place], values[:, 5])))
        axes[0].scatter(values[:, place], values[:, 5], s=12, label=name)
    axes[0].set(xscale="log", xlabel="bound, constants left out", ylabel="generalization gap")
    axes[0].legend(fontsize=7)
    figure.plain(axes[0])
    ordered = bool((np.diff(values[:, :5], axis=1) >= 0).all())
    rows.append(Row("each step at most the next, share of networks", None, float(ordered)))
    paths = figure.save(drawing, _stem(given, "theory-Y2"))
    notes = ["100 digits; kernels at infinite width, divided by their largest eigenvalue."]
    return Report("HNAS, Theorem 2: the gap and its bounds", rows, notes, paths)


@reproduces("theory", "figure Y4", "scores across data (NASI, Proposition 2; HNAS, Theorem 3)")
def figure_y4(given: Given) -> Report:
    """Digits mixed with random images, share by share."""
    from theta0 import figure

    x, _ = load("digits").train.batch(100, seed=0)
    generator = torch.Generator().manual_seed(0)
    other = unit(torch.randn(100, 64, generator=generator)) * torch.rand(100, 1, generator=generator).double()
    both, digits = torch.cat([unit(x), other]), torch.zeros(200, dtype=torch.float64)
    digits[:100] = 1 / 100
    drawing, axes = figure.make()
    rows, shares = [], np.linspace(0.1, 1, 10)
    for name in ACTIVATIONS:
        found = [transfer((name,) * 3, both, (digits, (1 - s) * digits + s * digits.flip(0))) for s in shares]
        (line,) = axes[0].plot(2 * shares, [one.difference for one in found], label=name)
        axes[0].plot(2 * shares, [one.bound for one in found], "--", color=line.get_color())
        rows.append(Row(f"{name}: difference at Z = 2", None, found[-1].difference))
        rows.append(Row(f"{name}: bound at Z = 2", None, found[-1].bound))
    axes[0].set(xlabel="Z, the distance of the data", ylabel="difference of traces (dashed: bound)", yscale="log")
    axes[0].legend(fontsize=7)
    figure.plain(axes[0])
    paths = figure.save(drawing, _stem(given, "theory-Y4"))
    return Report("NASI, Proposition 2: traces of two data sets", rows, ["Four layers, infinite width."], paths)


@reproduces("theory", "figure Y5", "training of the linearized network (NASI, Proposition 1)")
def figure_y5(given: Given) -> Report:
    """Digits: gradient descent on the parameters, the closed form, and the bound."""
    from theta0 import figure

    x, y = load("digits").train.batch(32, seed=0)
    model = MLPSpace(layers=4).build(
        Layers(("relu", "tanh", "swish"), (True, True)), seed=0, width=64, shape=(1, 8, 8), initialization="ntk"
    )
    found = linearized(model.double(), x.double())
    residual = F.one_hot(y, 10).double().flatten() - found.outputs
    rate = 0.9 / float(torch.linalg.eigvalsh(found.gram)[-1])
    steps = [0, 1, 2, 5, 10, 30, 100, 300, 1000]
    exact = closed_form(found.gram, residual, rate, steps, samples=32)
    followed = descend(found.jacobian, residual, rate, steps, samples=32)
    limit = bound(found.gram, rate, steps, samples=32, classes=10)
    drawing, axes = figure.make()
    axes[0].plot(steps, exact, label="closed form (equation 4)")
    axes[0].plot(steps, followed, "o", label="gradient descent")
    axes[0].plot(steps, limit, "--", label="bound (equation 6)")
    axes[0].set(xscale="symlog", yscale="log", xlabel="steps", ylabel="mean squared error")
    axes[0].legend(fontsize=8)
    rows = [Row("largest relative difference", None, float(((exact - followed).abs() / exact).max()))]
    for step, one, other in zip(steps, exact.tolist(), limit.tolist(), strict=True):
        rows.append(Row(f"loss after {step} steps", None, one))
        rows.append(Row(f"bound after {step} steps", None, other))
    paths = figure.save(drawing, _stem(given, "theory-Y5"))
    return Report("NASI, Proposition 1: linearized training", rows, ["32 digits, 10 classes, width 64."], paths)


@reproduces("theory", "figure Y8", "smoothness of wide and narrow cells (thesis, Theorems 4.3 and 4.4)")
def figure_y8(given: Given) -> Report:
    """The two cells of Figure 4.9 on digits, over the scale of the weights."""
    from theta0 import figure

    x, y = load("digits").train.batch(200, seed=0)
    rows_of, labels, n = unit(x), F.one_hot(y, 10).double(), 4
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(64, 64, generator=generator, dtype=torch.float64) / 16 for _ in range(n)]
    readout = torch.randn(10, n * 64, generator=generator, dtype=torch.float64) / 16
    scales, rows = np.geomspace(0.25, 4, 9), []
    both = [Cells([scale * w for w in weights], rows_of, readout, labels) for scale in scales]
    drawing, axes = figure.make(1, 2, width=9.5)
    kinds: tuple[Kind, ...] = ("wide", "narrow")
    for kind in kinds:
        axes[0].plot(scales, [max(one.lipschitz(kind)) for one in both], label=kind)
        axes[1].plot(scales, [max(one.variance(kind)) for one in both], label=kind)
    axes[0].plot(scales, [max(one.printed_lipschitz()) for one in both], "--", label="Theorem 4.3")
    axes[0].plot(scales, [max(one.proved()) for one in both], ":", label="what holds")
    axes[1].plot(scales, [max(one.printed_variance()) for one in both], "--", label="Theorem 4.4")
    for axis, label in zip(axes, ("block-wise Lipschitz constant", "gradient variance"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="scale of the weights", ylabel=f"{label}, largest block")
        axis.legend(fontsize=8)
        figure.plain(axis)
    for one, scale in zip(both, scales, strict=True):
        largest = max(one.norms)
        pairs = zip(one.lipschitz("narrow"), one.printed_lipschitz(), strict=True)
        rows.append(
            Row(
                f"scale {scale:.2f} (norm {largest:.2f}): narrow / wide Lipschitz",
                None,
                max(one.lipschitz("narrow")) / max(one.lipschitz("wide")),
            )
        )
        rows.append(
            Row(f"scale {scale:.2f}: blocks beyond Theorem 4.3, of {n}", None, float(sum(a > b for a, b in pairs)))
        )
        others = zip(one.variance("narrow"), one.printed_variance(), strict=True)
        rows.append(
            Row(f"scale {scale:.2f}: blocks beyond Theorem 4.4, of {n}", None, float(sum(a > b for a, b in others)))
        )
    paths = figure.save(drawing, _stem(given, "theory-Y8"))
    return Report("Thesis, Theorems 4.3 and 4.4: wide and narrow cells", rows, ["200 digits, four nodes."], paths)
