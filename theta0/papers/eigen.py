"""Eigen-NAS (Zhu et al., NeurIPS 2022): Table 2, Figure 1, and what appendices F.4 to F.6 are about.

The appendices' numbers are not in the text that we have: those parts have ours alone. Networks are those of theta0's
tables and scores; images of ImageNet16-120 are not free to get, see theta0.papers.hnas.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theta0.activation_search import search
from theta0.bench import Bench, bench
from theta0.candidates import Candidates
from theta0.data.dataset import ImageDataset
from theta0.errors import Theta0Error
from theta0.papers import Given, Report, Row, reproduces
from theta0.papers.bounds import kendall, spearman
from theta0.papers.hnas import DATASETS
from theta0.pool import shipped
from theta0.searchers import Budget
from theta0.space import get_space
from theta0.spaces.mlp import ACTIVATIONS, Layers
from theta0.theory.bounds import proved, smallest, theorem_1
from theta0.theory.finite import finite
from theta0.theory.mlp import infinite, unit

SAMPLE = 300
"""Cells drawn for each search, as theta0's KNAS does; the paper does not say how many."""

_TABLE_2: dict[str, tuple[str, dict[str, Any], tuple[float | None, ...]]] = {
    "eigen k=20": ("eigen", {"train": 20, "sample": SAMPLE}, (93.46, 71.42, 45.54)),
    "eigen k=5": ("eigen", {"train": 5, "sample": SAMPLE}, (93.43, 69.92, 45.53)),
    "eigen k=20, whole space": ("eigen", {"train": 20}, (93.46, 71.42, 45.54)),
    "eigen k=5, whole space": ("eigen", {"train": 5}, (93.43, 69.92, 45.53)),
    "by lambda_min, k=20": ("eigen", {"train": 20, "sample": SAMPLE, "score": "lambda_min"}, (None,) * 3),
    "KNAS k=20": ("knas", {"train": 20, "sample": SAMPLE}, (93.38, 70.78, 44.63)),
    "NASWOT": ("naswot", {}, (92.96, 70.03, 44.43)),
}
"""What is run, its settings, and the paper's accuracies."""
_NASI = {"NASI (T)": (100, (93.08, 69.51, 40.87)), "NASI (4T)": (400, (93.55, 71.20, 44.84))}
"""Sampled gradients and the paper's numbers."""


def _found(given: Given, dataset: str, pool: Candidates, name: str, settings: dict[str, Any]) -> Bench:
    longest = given.table201.epochs(dataset)[-1]
    return bench(
        given.table201, dataset, [name], Budget(evaluations=settings.get("train", 1)), seeds=given.seeds,
        epochs=[longest], scores=pool, settings={name: settings}, processes=given.processes, progress=given.progress,
    )  # fmt: skip


@reproduces("eigen", "table 2", "searchers without training on NAS-Bench-201")
def table_2(given: Given) -> Report:
    """Each data set searched by its own scores and validation accuracies, as KNAS and the paper do."""
    rows = []
    for label, (name, settings, paper) in _TABLE_2.items():
        for (short, (dataset, data)), number in zip(DATASETS.items(), paper, strict=True):
            pool = Candidates.of(shipped("nasbench201", data), get_space("nasbench201"))
            values = _found(given, dataset, pool, name, settings).accuracies(name, dataset)
            rows.append(Row(f"{label}, {short}", number, float(values.mean()), float(values.std())))
    notes = [
        f"Mean ± deviation of {given.seeds} searches among {SAMPLE} random cells, by validation accuracy after the "
        f"longest training; scores by theta0, of Tiny-ImageNet for ImageNet16-120. Over the whole space there is one "
        f"search: the best by the bound are poor cells, so a larger pool makes the result worse.",
        "TE-NAS is table 2b, NASI table 2c.",
    ]
    return Report("Eigen-NAS, Table 2: test accuracy on NAS-Bench-201", rows, notes)


@reproduces("eigen", "table 2b", "the row of TE-NAS, which scores supernets itself and takes long")
def table_2b(given: Given) -> Report:
    """One search for each seed, on random images, read on all data sets."""
    rows = _supernet(given, "TE-NAS", "tenas", (93.90, 71.24, 42.38), None, {})
    return Report("Eigen-NAS, Table 2: TE-NAS", rows, [f"{given.seeds} searches with theta0's defaults."])


@reproduces("eigen", "table 2c", "the rows of NASI, which scores a supernet itself and takes long")
def table_2c(given: Given) -> Report:
    """One search for each seed, on --images, read on all data sets."""
    images, rows = given.data.train, []
    for label, (steps, numbers) in _NASI.items():
        rows += _supernet(given, label, "nasi", numbers, images, {"steps": steps})
    note = f"{given.seeds} searches each on {given.images}, in the supernet of the benchmark's size."
    return Report("Eigen-NAS, Table 2: NASI", rows, [note])


def _supernet(
    given: Given,
    label: str,
    searcher: str,
    numbers: Sequence[float],
    images: ImageDataset | None,
    settings: dict[str, Any],
) -> list[Row]:
    found = bench(
        given.table201, "cifar10", [searcher], Budget(evaluations=1), seeds=given.seeds, images=images,
        epochs=[given.table201.epochs("cifar10")[-1]], settings={searcher: settings}, processes=given.processes,
        progress=given.progress,
    )  # fmt: skip
    rows = []
    for (short, (dataset, _)), number in zip(DATASETS.items(), numbers, strict=True):
        values = found.accuracies(searcher, dataset)
        rows.append(Row(f"{label}, {short}", number, float(values.mean()), float(values.std())))
    seconds = float(np.mean([one.own_seconds for one in found.of(searcher)]))
    return [*rows, Row(f"{label}, seconds of a search", None, seconds)]


@reproduces("eigen", "table F.5", "Eigen-NAS on NAS-Bench-101")
def table_f5(given: Given) -> Report:
    """The bound's rank correlation, and what its best cells reach."""
    if given.table101 is None:
        raise Theta0Error("this part needs a table of NAS-Bench-101: --nasbench101 FILE")
    space = get_space("nasbench101")
    pool = Candidates.of(shipped("nasbench101", "cifar10"), space)
    longest = given.table101.epochs("cifar10")[-1]
    accuracy = given.table101.validation("cifar10", longest, given.table101.rows(pool.architectures))
    rows = []
    for k in (5, 20):
        for sample in (0, SAMPLE):
            settings = {"train": k, "sample": sample}
            found = bench(
                given.table101, "cifar10", ["eigen"], Budget(evaluations=k), seeds=given.seeds, epochs=[longest],
                scores=pool, settings={"eigen": settings}, processes=given.processes, progress=given.progress,
            )  # fmt: skip
            values = found.accuracies("eigen", "cifar10")
            label = f"k = {k} of {sample or len(pool)} cells, validation accuracy"
            rows.append(Row(label, None, float(values.mean()), float(values.std())))
    rows.append(Row("best of the pool", None, float(accuracy.max())))
    for score in ("trace", "lambda_min", "kappa", "parameters", "flops"):
        ranks = pool.column(score) if score in ("parameters", "flops") else pool.ranks(score)
        rows.append(Row(f"{score}, Spearman with accuracy", None, spearman(ranks, accuracy)))
    notes = [f"A sample of {len(pool):,} cells with scores; the bound orders as the trace. One validation run."]
    return Report("Eigen-NAS, F.5: NAS-Bench-101", rows, notes)


@reproduces("eigen", "table F.6", "cells found on one data set, on the others")
def table_f6(given: Given) -> Report:
    """Searched on each data set with k = 20, read on all."""
    rows = []
    for short, (dataset, data) in DATASETS.items():
        pool = Candidates.of(shipped("nasbench201", data), get_space("nasbench201"))
        found = _found(given, dataset, pool, "eigen", {"train": 20, "sample": SAMPLE})
        for other, (read, _) in DATASETS.items():
            values = found.accuracies("eigen", read)
            rows.append(
                Row(f"searched on {short}, accuracy on {other}", None, float(values.mean()), float(values.std()))
            )
    return Report("Eigen-NAS, F.6: transfer", rows, [f"{given.seeds} searches among {SAMPLE} random cells."])


@reproduces("eigen", "table 5.2", "the cheap bound against the eigenvalue: cost and ranks")
def table_52(given: Given) -> Report:
    """On NAS-Bench-201, from the same kernels; costs of a kernel that is there."""
    pool = Candidates.of(shipped("nasbench201", "cifar10"), get_space("nasbench201"))
    accuracy = given.table201.test("cifar10", 200, given.table201.rows(pool.architectures))
    kept = pool.ok("lambda_min") & pool.ok("eigen_bound")
    bound, least = pool.column("eigen_bound")[kept], pool.column("lambda_min")[kept]
    rows = [
        Row("tr K / d and lambda_min, Spearman", None, spearman(bound, least)),
        Row("tr K / d and lambda_min, Kendall", None, kendall(bound, least)),
        Row("lambda_min / (tr K / N), median", None, float(np.median(least / (bound * 3072 / 64)))),
    ]
    for name in ("eigen_bound", "lambda_min", "frobenius", "kappa"):
        rows.append(Row(f"{name} and test accuracy, Spearman", None, spearman(pool.ranks(name), accuracy)))
        rows.append(Row(f"{name} and test accuracy, Kendall", None, kendall(pool.ranks(name), accuracy)))
    for name in ("parameters", "flops"):
        rows.append(Row(f"{name} and test accuracy, Spearman", None, spearman(pool.column(name), accuracy)))
    for size in (64, 1024):
        gram = torch.eye(size, dtype=torch.float64) + 1 / size
        for label, compute in (
            ("trace", lambda gram=gram: gram.diagonal().sum()),
            ("Frobenius norm", lambda gram=gram: gram.norm()),
            ("lambda_min", lambda gram=gram: torch.linalg.eigvalsh(gram)),
        ):
            rows.append(Row(f"{label} of {size} samples, microseconds", None, 1e6 * _seconds(compute)))
    notes = ["Each score has what is not valid last. 64 images; the kernel itself costs hundreds of milliseconds."]
    return Report("Eigen-NAS, 5.2: the bound and the eigenvalue", rows, notes)


def _seconds(compute: Any) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        compute()
        times.append(time.perf_counter() - start)
    return min(times)


def draw_figure_1(probabilities: NDArray[np.float64], skips: NDArray[np.float64], stem: Path) -> list[Path]:
    """Probabilities (runs, layers - 1, 5) and alphas (runs, layers - 2) by layer, means and deviations."""
    from theta0 import figure

    drawing, axes = figure.make(1, 2, width=9.5, height=3.6)
    layers = np.arange(1, probabilities.shape[1] + 1)
    for place, name in enumerate(ACTIVATIONS):
        values = probabilities[:, :, place]
        figure.band(axes[0], layers, values.mean(axis=0), values.std(axis=0), name)
    axes[0].set(xlabel="layer", ylabel="probability", title="(a) activations")
    axes[0].legend(fontsize=8)
    figure.band(axes[1], layers[1:], skips.mean(axis=0), skips.std(axis=0), "alpha")
    axes[1].axhline(0.5, color="0.4", linestyle="--", linewidth=1)
    axes[1].set(xlabel="layer", ylabel="alpha", title="(b) skip connections")
    return figure.save(drawing, stem)


EPOCHS = 1
"""Of the search behind Figure 1, which the paper does not give; an epoch of one run takes two minutes on a core."""


@reproduces("eigen", "figure 1", "DARTS on activations and skip connections")
def figure_1(given: Given) -> Report:
    """L = 10, m = 1024 on Fashion-MNIST, which must lie under the data root; one run for each seed."""
    from theta0.data import load

    images = load("fashion_mnist").train
    runs = [search(images, epochs=EPOCHS, seed=seed) for seed in range(given.seeds)]
    probabilities, skips = (np.stack(v) for v in zip(*((one.probabilities, one.skips) for one in runs), strict=True))
    rows = []
    for layer in range(probabilities.shape[1]):
        for place, name in enumerate(ACTIVATIONS):
            values = probabilities[:, layer, place]
            rows.append(Row(f"layer {layer + 1}, {name}", None, float(values.mean()), float(values.std())))
    for place in range(skips.shape[1]):
        rows.append(
            Row(f"skip of layer {place + 2}", None, float(skips[:, place].mean()), float(skips[:, place].std()))
        )
    notes = [
        "The paper: ReLU and LeakyReLU most probable in every layer, the largest differences in the first one, every "
        f"skip connection kept. Ours after {EPOCHS} epoch(s) of first-order DARTS with its own learning rates."
    ]
    paths = draw_figure_1(probabilities, skips, _folder(given) / "eigen-figure-1")
    return Report("Eigen-NAS, Figure 1: DARTS on the Eigen-NAS space", rows, notes, paths)


def _folder(given: Given) -> Path:
    if given.folder is None:
        raise Theta0Error("a figure needs a place: --out FOLDER")
    given.folder.mkdir(parents=True, exist_ok=True)
    return given.folder


DEPTHS = (3, 4, 6, 8, 10)
WIDTHS = (32, 128, 512)


@reproduces("eigen", "figure F.4", "the smallest eigenvalue against the depth")
def figure_f4(given: Given) -> Report:
    """Infinite and finite width, the bounds that hold and those printed, for each activation."""
    from theta0 import figure

    x = _digits(24)
    drawing, axes = figure.make(2, 5, width=15, height=6.2)
    rows = []
    for panel, (skip, name) in enumerate((skip, name) for skip in (False, True) for name in ACTIVATIONS):
        axis = axes[panel]
        networks = [Layers((name,) * (depth - 1), (skip,) * (depth - 2)) for depth in DEPTHS]
        least = [smallest(infinite(one, x).ntk) for one in networks]
        bounds = [proved(one, x) for one in networks]
        printed = [theorem_1(one, len(x), x.shape[1]) for one in networks]
        axis.plot(DEPTHS, least, "k-", linewidth=2, label="infinite width")
        for width in WIDTHS:
            values = np.array([_least(one, x, width, given.seeds) for one in networks])
            figure.band(axis, np.array(DEPTHS), values.mean(axis=1), values.std(axis=1), f"width {width}")
        for which, style in (("lower", ":"), ("trace", "--")):
            axis.plot(DEPTHS, [getattr(one, which) for one in bounds], style, color="0.3", label=f"proved, {which}")
        for which, style in (("lower", ":"), ("upper", "--")):
            axis.plot(
                DEPTHS, [getattr(one, which) for one in printed], style, color="tab:red", label=f"printed, {which}"
            )
        axis.set(yscale="log", xlabel="layers L", title=f"{name}{', skips' if skip else ''}")
        figure.plain(axis)
        for depth, value, bound, other in zip(DEPTHS, least, bounds, printed, strict=True):
            if depth in (3, 6, 10):
                label = f"{name}{', skips' if skip else ''}, L = {depth}"
                rows.append(Row(f"{label}: lambda_min", None, value))
                rows.append(Row(f"{label}: proved lower bound", None, bound.lower))
                rows.append(Row(f"{label}: mean of the diagonal", None, bound.trace))
                rows.append(Row(f"{label}: printed lower bound", None, other.lower))
                rows.append(Row(f"{label}: printed upper bound", None, other.upper))
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=9)
    axes[0].set_ylabel("smallest eigenvalue")
    axes[5].set_ylabel("smallest eigenvalue")
    paths = figure.save(drawing, _folder(given) / "eigen-figure-F.4")
    notes = [f"24 digits on the unit sphere, d = 64; Lemma 1's factor 2; {given.seeds} networks of each width."]
    return Report("Eigen-NAS, F.4: the smallest eigenvalue against the depth", rows, notes, paths)


def _digits(samples: int) -> torch.Tensor:
    from theta0.data import load

    images, _ = load("digits").train.batch(samples, seed=0)
    return unit(images)


def _least(architecture: Layers, x: torch.Tensor, width: int, seeds: int) -> list[float]:
    return [float(torch.linalg.eigvalsh(finite(architecture, x, width=width, seed=seed))[0]) for seed in range(seeds)]
