"""NASI (Shu et al., ICLR 2022; thesis, chapter 6): tables and figures.

Networks are scored and trained here, on ``--images``, the paper's CIFAR-10. Without ``--full`` they are small, few and
trained briefly, as much as a CPU can do; every note tells the sizes. Errors are those of one short recipe, the same for
all architectures of a table, where no benchmark has their rows: the NAS-Bench-101 table at hand is a sample of cells.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import pearsonr
from torch import Tensor

from theta0.bench import bench
from theta0.candidates import Candidates, Floats
from theta0.errors import Theta0Error
from theta0.kernel import Recording, all_parameters, frozen
from theta0.nasi import Nasi, NasiSettings, NoGradientError
from theta0.objective import Objective
from theta0.papers import Given, Report, Row, reproduces
from theta0.papers.bounds import kendall, spearman
from theta0.papers.hnas import _folder
from theta0.pool import shipped
from theta0.recipe import Recipe
from theta0.scoring import score
from theta0.searchers import Budget
from theta0.searching import run
from theta0.seeding import derived
from theta0.space import get_space
from theta0.train import train
from theta0.training_objective import TrainingObjective

SPACES = {"S1": "nasbench1shot1_1", "S2": "nasbench1shot1_2", "S3": "nasbench1shot1_3"}
MODES: dict[str, dict[str, Any]] = {
    "Standard": {},
    "Random Label": {"labels": "random"},
    "Random Data": {"data": "random"},
}


@dataclass(frozen=True)
class Sizes:
    """What is computed: networks of ``shot`` and ``darts`` skeletons, and how they are trained."""

    architectures: int
    exact: int
    """Images of the exact trace."""
    shot: Mapping[str, Any]
    darts: Mapping[str, Any]
    nasbench201: Mapping[str, Any]
    batch: int
    steps: int
    images: int
    recipe: Recipe

    def of(self, space: str) -> dict[str, Any]:
        """The skeleton's options."""
        return dict(self.darts if space == "darts" else self.shot)

    def note(self) -> str:
        """For the report."""
        recipe = self.recipe
        return (
            f"NAS-Bench-1Shot1 with {dict(self.shot)}, DARTS with {dict(self.darts)}, T={self.steps}, b={self.batch}; "
            f"trained on {self.images:,} images for {recipe.epochs} epochs (batch {recipe.batch}, learning rate "
            f"{recipe.learning_rate:g} by a cosine), tested on all test images."
        )


SMALL = Sizes(
    architectures=20,
    exact=32,
    shot={"channels": 8, "stacks": 3, "cells": 1},
    darts={"channels": 6, "layers": 5},
    nasbench201={"channels": 16, "cells": 1},
    batch=32,
    steps=25,
    images=2_000,
    recipe=Recipe(epochs=3, batch=64, learning_rate=0.05, nesterov=True, weight_decay=5e-4, clip=5.0),
)
FULL = Sizes(
    architectures=500,
    exact=128,
    shot={"channels": 16, "stacks": 3, "cells": 3},
    darts={"channels": 16, "layers": 8},
    nasbench201={"channels": 16, "cells": 5},
    batch=64,
    steps=100,
    images=50_000,
    recipe=Recipe(epochs=15, batch=96, learning_rate=0.025, weight_decay=3e-4, clip=5.0, cutout=16),
)


def sizes(given: Given) -> Sizes:
    """Those asked for."""
    return FULL if given.full else SMALL


def settings(space: str, size: Sizes, **changes: Any) -> NasiSettings:
    """The paper's, for a small space or for DARTS."""
    paper = {"mu": 2.0, "nu": 500.0} if space == "darts" else {"mu": 1.0, "nu": 1000.0}
    return NasiSettings(**{"steps": size.steps, "batch": size.batch, **paper, **changes})


def select(given: Given, space: str, seed: int, options: Mapping[str, Any] | None = None, **changes: Any) -> Any:
    """The architecture that NASI selects; ``options`` are of the supernet's skeleton."""
    size = sizes(given)
    chosen = {**size.of(space), **(options or {})}
    search = Nasi(get_space(space), given.data.train, settings(space, size, **changes), seed=seed, **chosen)
    return search.run().derive()


class Trained:
    """Test errors by the short recipe; each architecture is trained once for a seed."""

    def __init__(self, given: Given, space: str) -> None:
        self.given, self.space, self.size = given, get_space(space), sizes(given)
        order = torch.randperm(len(given.data.train), generator=torch.Generator().manual_seed(0))
        self.images = given.data.train.subset(order[: self.size.images])
        self._known: dict[Any, float] = {}

    def error(self, architecture: Any, seed: int = 0) -> float:
        """Percent."""
        key = (self.space.canonical(architecture), seed)
        if key not in self._known:
            options = {**self.size.of(self.space.name), "shape": self.images.shape, "classes": len(self.images.classes)}
            model = self.space.build(architecture, seed=derived(seed, "network"), **options)
            result = train(
                model, self.images, self.size.recipe, seed=seed, device=self.given.device,
                validation=self.given.data.test, validate_every=None,
            )  # fmt: skip
            assert result.evaluation is not None
            self._known[key] = result.evaluation.error
        return self._known[key]


def _mean(label: str, paper: float | None, values: Sequence[float]) -> Row:
    return Row(label, paper, float(np.mean(values)), float(np.std(values)))


def _networks(given: Given, space: str) -> list[torch.nn.Module]:
    """Random architectures at initialization."""
    size, of, generator = sizes(given), get_space(space), np.random.default_rng(0)
    data = given.data.train
    options = {**size.of(space), "shape": data.shape, "classes": len(data.classes)}
    drawn = [of.sample(generator) for _ in range(size.architectures)]
    return [of.build(one, seed=0, **options).to(given.device) for one in drawn]


def batch_norm_squared(model: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    """The estimate of equation 12."""
    return score(model, x, y, ["trace_estimate:batch"]).value("trace_estimate")


def sum_of_squares(model: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    """The first bound of equation 11; statistics of normalisation are those of the batch, taken as constants."""
    with frozen(model), Recording(model) as recording:
        losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
        return float(recording.squares(losses.sum(), all_parameters, extra=lambda: losses).sum())


def exact_trace(model: torch.nn.Module, x: Tensor) -> float:
    """Of the NTK of all logits, in the same mode."""
    with frozen(model), Recording(model) as recording:
        logits = model(x)
        return sum(
            float(recording.squares(logits[:, c].sum(), all_parameters, extra=lambda c=c: logits[:, c]).sum())  # type: ignore[misc]
            for c in range(logits.shape[1])
        )


@reproduces("nasi", "figure 1", "the estimate with random labels and random data")
def figure_1(given: Given) -> Report:
    """Pearson correlation with the estimate on true ones."""
    from theta0 import figure

    paper = {"S1": (1.0, 0.94), "S2": (1.0, 0.95), "S3": (1.0, 0.94)}
    folder = _folder(given)
    drawing, axes = figure.make(2, 3, width=10, height=6)
    rows = []
    data, size = given.data.train, sizes(given)
    x, y = data.batch(size.batch, seed=0)
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(len(data.classes), y.shape, generator=generator).to(y.device)
    pixels = torch.randn(x.shape, generator=generator).to(x.device)
    for place, (title, space) in enumerate(SPACES.items()):
        pairs = ((x, y), (x, labels), (pixels, y))
        found = np.array([[batch_norm_squared(net, *pair) for pair in pairs] for net in _networks(given, space)])
        for row, what in enumerate(("labels", "data")):
            rows.append(
                Row(f"{title}, random {what}", paper[title][row], float(pearsonr(found[:, 0], found[:, row + 1])[0]))
            )
            axis = axes[place + 3 * row]
            axis.scatter(found[:, 0], found[:, row + 1], s=6, alpha=0.6, linewidths=0)
            axis.set(
                xlabel=f"with true {what}", ylabel=f"with random {what}", title=f"{title}: r = {rows[-1].ours:.2f}"
            )
            figure.plain(axis)
    paths = figure.save(drawing, folder / "nasi-figure-1")
    notes = [f"{size.architectures} architectures of each space, one batch of {size.batch}. {size.note()}"]
    return Report("NASI, Figure 1: Pearson correlation of trace estimates", rows, notes, paths)


@reproduces("nasi", "table 7", "the estimates of the trace against the exact trace")
def table_7(given: Given) -> Report:
    """Pearson correlation over random architectures."""
    batches = (4, 8, 16, 32, 64, 128)
    paper = {
        "S1": (0.74, 0.80, 0.84, 0.83, 0.85, 0.86, 0.88),
        "S2": (0.82, 0.87, 0.90, 0.89, 0.91, 0.91, 0.92),
        "S3": (0.66, 0.74, 0.81, 0.79, 0.82, 0.84, 0.87),
    }
    rows, size = [], sizes(given)
    x, y = given.data.train.batch(max(batches), seed=0)
    for title, space in SPACES.items():
        found, exact = [], []
        for model in _networks(given, space):
            exact.append(exact_trace(model, x[: size.exact]))
            found.append([*(batch_norm_squared(model, x[:b], y[:b]) for b in batches), sum_of_squares(model, x, y)])
        values = np.array(found)
        for place, label in enumerate([*(f"b = {b}" for b in batches), "sum"]):
            rows.append(Row(f"{title}, {label}", paper[title][place], float(pearsonr(values[:, place], exact)[0])))
    notes = [
        f"{size.architectures} architectures of each space with {dict(size.shot)}. The exact trace is that of the NTK "
        f"of all logits and all parameters on {size.exact} images. It and the sum (of squared norms, on {max(batches)} "
        f"images) take the statistics of batch normalisation as constants, so that a gradient is that of its sample; "
        f"the paper names neither.",
    ]
    return Report("NASI, Table 7: Pearson correlation of trace estimates with the exact trace", rows, notes)


@reproduces("nasi", "table 2", "NASI with random labels and random data")
def table_2(given: Given) -> Report:
    """Test errors of what it selects."""
    paper = {
        "Standard": (7.3, 7.2, 7.2, 2.95),
        "Random Label": (6.8, 7.0, 7.5, 2.90),
        "Random Data": (6.6, 7.5, 7.3, 2.97),
    }
    rows = []
    for place, (title, space) in enumerate({**SPACES, "DARTS": "darts"}.items()):
        trained = Trained(given, space)
        for mode, changes in MODES.items():
            chosen = [select(given, space, seed, **changes) for seed in range(given.seeds)]
            rows.append(_mean(f"{title}, {mode}", paper[mode][place], [trained.error(one) for one in chosen]))
        rows.append(_random(trained, title, given.seeds))
    return Report(
        "NASI, Table 2: test error (%) with random labels and data", rows, [_NOT_THE_PAPERS, sizes(given).note()]
    )


_NOT_THE_PAPERS = (
    "Errors are of a short training, not those of NAS-Bench-101 or of 600 epochs: compare rows of ours with each other."
)


def _random(trained: Trained, title: str, seeds: int) -> Row:
    generator = np.random.default_rng(0)
    drawn = [trained.space.sample(generator) for _ in range(seeds)]
    return _mean(f"{title}, random architectures", None, [trained.error(one) for one in drawn])


def _over(
    given: Given, title: str, paper: Mapping[str, Sequence[float]], parts: Mapping[str, dict[str, Any]]
) -> Report:
    """Errors of what NASI selects in the three spaces, for each part of an ablation."""
    rows = []
    for name, space in SPACES.items():
        trained = Trained(given, space)
        for place, (part, changes) in enumerate(parts.items()):
            chosen = [select(given, space, seed, **changes) for seed in range(given.seeds)]
            rows.append(_mean(f"{name}, {part}", paper[name][place], [trained.error(one) for one in chosen]))
    return Report(title, rows, [_NOT_THE_PAPERS, sizes(given).note()])


@reproduces("nasi", "table 6", "NASI with supernets of growing width")
def table_6(given: Given) -> Report:
    """Initial channels 2 to 32 of the supernet; what is selected is trained at one width."""
    paper = {"S1": (7.0, 8.3, 8.0, 7.3, 6.5), "S2": (7.3, 8.0, 7.3, 7.3, 7.0), "S3": (7.6, 7.7, 6.8, 6.8, 6.4)}
    # A vertex of a cell with four or five of them at the output needs a channel: two are too few.
    widths = {"N = 2": 5, "N = 4": 5, "N = 8": 8, "N = 16": 16, "N = 32": 32}
    parts = {name: {"options": {"channels": width}} for name, width in widths.items()}
    report = _over(given, "NASI, Table 6: test error (%) by the supernet's width N", paper, parts)
    report.notes.append("N = 2 and 4 are 5 channels here: five vertices at the output need one each.")
    return report


@reproduces("nasi", "table 8", "NASI with batches of 8 to 128")
def table_8(given: Given) -> Report:
    """Batch size b of the estimate."""
    paper = {"S1": (6.8, 6.7, 6.7, 6.0, 7.0), "S2": (6.9, 7.3, 7.1, 7.2, 6.8), "S3": (7.0, 6.6, 6.7, 6.6, 7.1)}
    parts = {f"b = {b}": {"batch": b} for b in (8, 16, 32, 64, 128)}
    return _over(given, "NASI, Table 8: test error (%) by batch size", paper, parts)


@reproduces("nasi", "table 4", "NASI on NAS-Bench-201 and others in the same run")
def table_4(given: Given) -> Report:
    """Looked up in the table; seconds are those that the searcher itself took here."""
    paper = {
        "nasi T": (93.08, 69.51, 40.87, 30.0),
        "nasi 4T": (93.55, 71.20, 44.84, 120.0),
        "gdas": (93.61, 70.70, 41.84, 28926.0),
        "naswot": (92.96, 69.98, 44.44, 306.0),
        "tenas": (93.90, 71.24, 42.38, 1558.0),
    }
    size = sizes(given)
    skeleton = tuple(f"{name}={value}" for name, value in size.nasbench201.items())
    common = {"batch": size.batch, "skeleton": skeleton}
    gdas = {**common, "search_epochs": 250 if given.full else 2, "batch": 64}
    runs: dict[str, tuple[str, dict[str, Any]]] = {
        "nasi T": ("nasi", {**common, "steps": size.steps}),
        "nasi 4T": ("nasi", {**common, "steps": 4 * size.steps}),
        "nasi T, random labels": ("nasi", {**common, "steps": size.steps, "labels": "random"}),
        "nasi T, random data": ("nasi", {**common, "steps": size.steps, "data": "random"}),
        "nasi T, nu fixed": ("nasi", {**common, "steps": size.steps, "constraint": "fixed", "nu": 0.0}),
        "gdas": ("gdas", gdas),
        "naswot": ("naswot", {}),
        "hnas": ("hnas", {}),
        **({"tenas": ("tenas", {})} if given.full else {}),
    }
    images = given.data.train if given.full else given.data.train.subset(range(min(size.images, len(given.data.train))))
    pool = Candidates.of(shipped("nasbench201", "cifar10"), get_space("nasbench201"))
    rows = []
    for label, (name, changes) in runs.items():
        one = bench(
            given.table201, "cifar10", [name], Budget(evaluations=20 if name == "hnas" else 1), seeds=given.seeds,
            epochs=[12], scores=pool, images=images, settings={name: changes}, processes=given.processes,
        )  # fmt: skip
        numbers = paper.get(label, (None, None, None, None))
        for dataset, number in zip(("cifar10", "cifar100", "imagenet16"), numbers, strict=False):
            rows.append(_mean(f"{label}, {dataset}", number, list(one.accuracies(name, dataset))))
        rows.append(_mean(f"{label}, seconds", numbers[3], [found.own_seconds for found in one.of(name)]))
    notes = [
        f"{given.seeds} searches each; supernets with {dict(size.nasbench201)}, T={size.steps}, b={size.batch}, on "
        f"{len(images):,} images; {gdas['search_epochs']} epochs of GDAS. The paper's seconds are of a GTX 1080Ti.",
        "naswot and hnas choose from scores that come with theta0, whose cost is not in their seconds.",
    ]
    return Report("NASI, Table 4: test accuracy (%) on NAS-Bench-201", rows, notes)


def _benchmarked(given: Given, space: str, count: int) -> tuple[list[Any], Floats]:
    """Architectures whose NAS-Bench-101 cell has a row, and their errors."""
    table, of, generator = given.table101, get_space(space), np.random.default_rng(0)
    if table is None:
        raise Theta0Error("this part needs a table of NAS-Bench-101: --nasbench101 FILE")
    parent: Any = of
    found: dict[int, Any] = {}
    for _ in range(400 * count):
        architecture = of.sample(generator)
        cell = parent.nasbench101(architecture)
        if cell in table:
            found.setdefault(table.row(cell), architecture)
        if len(found) == count:
            break
    longest = table.epochs("cifar10")[-1]
    read = table.test if table.has_test("cifar10", longest) else table.validation
    return list(found.values()), np.asarray(100 - read("cifar10", longest, np.array(list(found))))


def _scored(given: Given, space: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    """(architectures, scores) and errors."""
    size, of, data = sizes(given), get_space(space), given.data.train
    architectures, errors = _benchmarked(given, space, size.architectures)
    x, y = data.batch(size.batch, seed=0)
    options = {**size.of(space), "shape": data.shape, "classes": len(data.classes)}
    values = []
    for architecture in architectures:
        records = score(of.build(architecture, seed=0, **options).to(given.device), x, y, list(names))
        values.append([records.value(name.partition(":")[0]) for name in names])
    return np.array(values), errors


@reproduces("nasi", "table 3", "training-free metrics in NAS-Bench-1Shot1")
def table_3(given: Given) -> Report:
    """Correlation with accuracy; NASI's under its constraint."""
    names = ("snip", "grasp", "synflow", "naswot", "trace_estimate:batch")
    paper = {
        "S1": ((-0.49, -0.39), (0.41, 0.33), (-0.52, -0.42), (0.21, 0.16), (0.62, 0.44)),
        "S2": ((-0.62, -0.49), (0.54, 0.42), (-0.45, -0.40), (0.32, 0.24), (0.74, 0.53)),
        "S3": ((-0.79, -0.63), (0.17, 0.15), (-0.53, -0.47), (0.54, 0.44), (0.76, 0.53)),
    }
    rows = []
    for title, space in SPACES.items():
        values, errors = _scored(given, space, names)
        for place, name in enumerate(names):
            kept = np.isfinite(values[:, place])
            label = name
            if name.startswith("trace"):
                kept &= values[:, place] <= np.median(values[kept, place])
                label = "NASI (conditioned)"
            pair = values[kept, place], -errors[kept]
            for how, number, by in zip(("Spearman", "Kendall"), paper[title][place], (spearman, kendall), strict=True):
                rows.append(Row(f"{title}, {label}, {how}", number, by(*pair)))
    notes = [
        f"{len(errors)} cells of each space that have a row in the table. The paper does not give the nu of its "
        f"constraint; here it is the median of the trace. {sizes(given).note()}",
    ]
    return Report("NASI, Table 3: correlation of metrics with accuracy", rows, notes)


@reproduces("nasi", "figure 3", "errors by the trace in NAS-Bench-1Shot1")
def figure_3(given: Given) -> Report:
    """Bins of the estimate."""
    from theta0 import figure

    drawing, axes = figure.make(1, 3, width=10, height=3.4)
    rows = []
    for axis, (title, space) in zip(axes, SPACES.items(), strict=True):
        values, errors = _scored(given, space, ("trace_estimate:batch",))
        order = np.argsort(values[:, 0])
        bins = [part for part in np.array_split(order, min(12, len(order) // 2)) if len(part)]
        centres = [float(values[part, 0].mean()) for part in bins]
        means = [float(errors[part].mean()) for part in bins]
        axis.errorbar(centres, means, [float(errors[part].std() / 2) for part in bins], fmt="o-", markersize=3)
        axis.axhline(float(errors.min()), color="tab:red", linewidth=1)
        axis.set(xlabel="trace estimate", ylabel="test error (%)", title=title)
        figure.plain(axis)
        rows.append(Row(f"{title}: bin of the least mean error, of {len(bins)}", None, float(np.argmin(means) + 1)))
        rows.append(Row(f"{title}: Spearman of trace and error", None, spearman(values[:, 0], errors)))
    paths = figure.save(drawing, _folder(given) / "nasi-figure-3")
    notes = ["The paper shows a fast fall of the error, then a slow rise.", sizes(given).note()]
    return Report("NASI, Figure 3: errors by the estimated trace", rows, notes, paths)


@reproduces("nasi", "figure 2", "searchers in NAS-Bench-1Shot1 by epochs of search")
def figure_2(given: Given) -> Report:
    """Test errors of what they choose."""
    epochs = (1, 5, 20) if given.full else (1, 3)
    size, rows = sizes(given), []
    for title, space in SPACES.items():
        trained = Trained(given, space)
        objective: Objective[Any] = TrainingObjective(space, trained.images, trained.images, options=size.of(space))

        def chosen(name: str, seed: int, objective: Objective[Any] = objective, **options: Any) -> Any:
            return run(name, _Untrained(objective), Budget(1), seed=seed, **options).chosen

        skeleton = tuple(f"{name}={value}" for name, value in size.of(space).items())
        steps = max(1, len(trained.images) // size.batch)
        nasi = [chosen("nasi", s, steps=min(steps, 4 * size.steps), batch=size.batch, skeleton=skeleton) for s in range(given.seeds)]  # fmt: skip  # noqa: E501
        rows.append(_mean(f"{title}, nasi, 1 epoch", None, [trained.error(one) for one in nasi]))
        for name in ("darts", "gdas", "enas", "pc-darts"):
            for count in epochs:
                options: dict[str, Any] = {"search_epochs": count, "skeleton": skeleton}
                if name == "pc-darts":
                    options |= {"head_start": 0, "channels_share": 1 if size.shot["channels"] < 20 else 4, "batch": 64}
                found = [chosen(name, seed, **options) for seed in range(given.seeds)]
                rows.append(_mean(f"{title}, {name}, {count} epochs", None, [trained.error(one) for one in found]))
        rows.append(_random(trained, title, given.seeds))
    notes = ["The paper gives curves only.", _NOT_THE_PAPERS, size.note()]
    return Report("NASI, Figure 2: test error (%) by epochs of search", rows, notes)


class _Untrained(Objective[Any]):
    """Lets searchers train supernets on an objective's images, and counts what they choose as if it were trained."""

    def __init__(self, of: Objective[Any]) -> None:
        self.space, self.epochs, self.images = of.space, of.epochs, of.images

    def evaluate(self, architecture: Any, epochs: int, seconds: float = np.inf) -> Any:
        """No training: the table trains all choices by its own recipe."""
        from theta0.objective import Outcome

        return Outcome(0.0, 0.0, "not trained here")


def _limits(given: Given, what: str, parts: Mapping[str, dict[str, Any]]) -> tuple[list[Row], list[str]]:
    trained = Trained(given, "darts")
    rows, notes = [], list[str]()
    for label, changes in parts.items():
        start = time.perf_counter()
        try:
            chosen = [select(given, "darts", seed, constraint="fixed", **changes) for seed in range(given.seeds)]
        except NoGradientError as error:
            notes.append(f"{label} is left out: {error}")
            continue
        seconds = (time.perf_counter() - start) / given.seeds
        rows.append(_mean(f"{what}, {label}: test error", None, [trained.error(one) for one in chosen]))
        measured = [trained.space.measure(one, **sizes(given).of("darts")).parameters / 1e6 for one in chosen]
        rows.append(_mean(f"{what}, {label}: parameters (M)", None, measured))
        rows.append(Row(f"{what}, {label}: seconds of search", None, seconds))
    return rows, notes


@reproduces("nasi", "figure 4", "what is selected in DARTS by nu and by mu")
def figure_4(given: Given) -> Report:
    """Training curves become final errors; nu in units of the mean of random architectures."""
    return _by_limits(given, "NASI, Figure 4: what is selected in the DARTS space", joint=False)


@reproduces("nasi", "figure 6", "the impact of nu and mu in DARTS")
def figure_6(given: Given) -> Report:
    """Joint impact."""
    return _by_limits(given, "NASI, Figure 6: joint impact of nu and mu in the DARTS space", joint=True)


def _by_limits(given: Given, title: str, *, joint: bool) -> Report:
    search = Nasi(
        get_space("darts"), given.data.train, settings("darts", sizes(given), nu=0.0, constraint="fixed"), seed=0,
        **sizes(given).darts,
    )  # fmt: skip
    search.step()
    unit = search.limit
    nus = {f"nu = {share:g} of the mean": {"nu": share * unit} for share in (0.1, 1.0, 2.0)}
    mus = {f"mu = {mu:g}": {"mu": mu} for mu in (1.0, 2.0, 3.0)}
    if joint:
        parts = {f"{a}, {b}": {**x, **y} for a, x in nus.items() for b, y in mus.items()}
    else:
        parts = {**nus, **{name: {**value, "nu": unit} for name, value in mus.items()}}
    rows, left_out = _limits(given, "fixed", parts)
    notes = [
        f"The mean trace of 50 random architectures is {unit:.3g} here; the paper's nu of 10 to 200 is in units of its "
        f"own parameterization.",
        _NOT_THE_PAPERS,
        sizes(given).note(),
    ]
    return Report(title, rows, [*notes, *left_out])
