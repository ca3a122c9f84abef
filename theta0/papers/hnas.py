"""HNAS (Shu et al., NeurIPS 2022) and its later version in the thesis, chapter 7: tables and figures.

Scores are those that come with theta0 unless said otherwise. ImageNet16-120's images are not free to get: scores "of
IN-16" are of Tiny-ImageNet images of 120 classes at 16 x 16. NAS-Bench-101 is a sample of cells, one validation run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr

from theta0.bench import bench
from theta0.candidates import Candidates, Floats
from theta0.errors import Theta0Error
from theta0.papers import Given, Report, Row, reproduces
from theta0.papers.bounds import Metric, kendall, spearman
from theta0.pool import is_shipped, shipped
from theta0.searchers import Budget
from theta0.searchers.hnas import OFFICIAL
from theta0.space import get_space

SCORES = ("grad", "snip", "grasp", "trace")
DATASETS = {"C10": ("cifar10", "cifar10"), "C100": ("cifar100", "cifar100"), "IN-16": ("imagenet16", "tiny16")}
"""The paper's name: the table's data set and that of our scores."""
_SAMPLED = "NAS-Bench-101: {} cells with scores, validation accuracy of one run at 108 epochs"


class _Pool:
    """A scored pool in the order of a table's rows, and the errors there."""

    def __init__(self, given: Given, data: str = "cifar10", space: str = "nasbench201", *, variant: str = "") -> None:
        scores = shipped(space, f"{data}{variant}")
        self.candidates = Candidates.of(scores, get_space(space))
        table = given.table201 if space == "nasbench201" else given.table101
        if table is None:
            raise Theta0Error("this part needs a table of NAS-Bench-101: --nasbench101 FILE")
        self.table, self.rows = table, table.rows(self.candidates.architectures)

    def of(self, architectures: Iterable[Any]) -> _Pool:
        """These of its cells, in this order."""
        places = {architecture: place for place, architecture in enumerate(self.candidates.architectures)}
        kept = np.array([places[architecture] for architecture in architectures])
        found = copy.copy(self)
        found.candidates, found.rows = self.candidates.select(kept), self.rows[kept]
        return found

    def errors(self, dataset: str) -> Floats:
        """Test errors after the longest training; validation errors where the table has no test."""
        longest = self.table.epochs(dataset)[-1]
        read = self.table.test if self.table.has_test(dataset, longest) else self.table.validation
        return np.asarray(100 - read(dataset, longest, self.rows))


def _both(label: str, paper: Sequence[float], bound: Floats, errors: Floats) -> list[Row]:
    return [
        Row(f"{label}, Spearman", paper[0], spearman(bound, errors)),
        Row(f"{label}, Kendall", paper[1], kendall(bound, errors)),
    ]


@reproduces("hnas", "table 1", "correlation of the bounds with errors on NAS-Bench-101 and 201")
def table_1(given: Given) -> Report:
    """Realizable and non-realizable scenario."""
    paper = {
        "nasbench201": {
            "realizable": {"grad": (0.64, 0.47), "snip": (0.64, 0.47), "grasp": (0.57, 0.40), "trace": (0.54, 0.39)},
            "other": {"grad": (0.75, 0.56), "snip": (0.75, 0.56), "grasp": (0.69, 0.50), "trace": (0.70, 0.51)},
        },
        "nasbench101": {
            "realizable": {
                "grad": (-0.25, -0.17), "snip": (-0.21, -0.15), "grasp": (-0.45, -0.31), "trace": (-0.30, -0.21),
            },
            "other": {"grad": (0.35, 0.23), "snip": (0.37, 0.25), "grasp": (0.46, 0.32), "trace": (0.33, 0.23)},
        },
    }  # fmt: skip
    rows, notes = [], []
    for space, numbers in paper.items():
        if space == "nasbench101" and given.table101 is None:
            notes.append("NAS-Bench-101 is left out: no table was given (--nasbench101 FILE)")
            continue
        pool = _Pool(given, space=space)
        if space == "nasbench101":
            notes.append(_SAMPLED.format(len(pool.rows)))
        errors = pool.errors("cifar10")
        for score in SCORES:
            metric = Metric(pool.candidates, score)
            rows += _both(f"{space}, {score}, realizable", numbers["realizable"][score], metric.realizable(), errors)
            bound = metric.non_realizable(metric.best(errors))
            rows += _both(f"{space}, {score}, non-realizable", numbers["other"][score], bound, errors)
        for name in ("grad:paper", "snip:paper"):
            own = Metric(pool.candidates, name)
            rows.append(Row(f"{space}, {name}, realizable, Spearman", None, spearman(own.realizable(), errors)))
    return Report("HNAS, Table 1: correlation of the bounds with errors on CIFAR-10", rows, notes)


@reproduces("hnas", "table 2", "the same over the data that scores are computed on")
def table_2(given: Given) -> Report:
    """Mean and deviation over the three data sets of the scores."""
    paper = {
        "realizable": {
            "C10": (0.64, 0.64, 0.58, 0.55),
            "C100": (0.64, 0.64, 0.58, 0.54),
            "IN-16": (0.57, 0.57, 0.52, 0.47),
        },
        "non-realizable": {
            "C10": (0.75, 0.75, 0.69, 0.69),
            "C100": (0.74, 0.74, 0.69, 0.69),
            "IN-16": (0.69, 0.69, 0.63, 0.65),
        },
    }
    rows = _transfer(given, SCORES, paper)
    return Report("HNAS, Table 2: Spearman correlation, mean ± deviation over the scores' data sets", rows, [_TINY])


_TINY = "The third data set of the scores is Tiny-ImageNet at 16 x 16, not ImageNet16-120."


def _transfer(
    given: Given, scores: Sequence[str], paper: Mapping[str, Mapping[str, tuple[float, ...]]], by: Any = spearman
) -> list[Row]:
    pools = [_Pool(given, data) for _, data in DATASETS.values()]
    rows = []
    weights = {score: Metric(pools[0].candidates, score).best(pools[0].errors("cifar10")) for score in scores}
    for scenario, numbers in paper.items():
        for name, (dataset, _) in DATASETS.items():
            for place, score in enumerate(scores):
                found = []
                for pool in pools:
                    metric = Metric(pool.candidates, score)
                    bound = metric.realizable() if scenario == "realizable" else metric.non_realizable(weights[score])
                    found.append(by(bound, pool.errors(dataset)))
                label = f"{scenario}, errors of {name}, {score}"
                rows.append(Row(label, numbers[name][place], float(np.mean(found)), float(np.std(found))))
    return rows


@reproduces("hnas", "table 4", "searchers on NAS-Bench-201")
def table_4(given: Given) -> Report:
    """HNAS by the official protocol, the paper's baselines, and our winning mode."""
    paper = {
        "grad": (94.04, 71.75, 45.91, 3010),
        "snip": (93.94, 71.49, 46.07, 2976),
        "grasp": (94.13, 72.59, 46.24, 3148),
        "trace": (94.07, 72.30, 45.93, 3006),
    }
    rows = _hnas(given, paper)
    baselines = {
        "evolution": (93.92, 71.84, 45.15, 12000),
        "random": (93.70, 71.04, 44.57, 12000),
        "reinforce": (93.85, 71.71, 45.24, 12000),
        "bohb": (93.61, 70.85, 44.42, 12000),
    }
    pool = _Pool(given).candidates
    found = bench(
        given.table201, "cifar10", list(baselines), Budget(seconds=12000), seeds=given.seeds, epochs=[12],
        scores=pool, processes=given.processes, progress=given.progress,
    )  # fmt: skip
    for name, numbers in baselines.items():
        rows += _accuracies(name, numbers, found, name)
    best = bench(
        given.table201, "cifar10", ["hnas"], Budget(seconds=3000), seeds=given.seeds, epochs=[12],
        scores=pool, processes=given.processes, progress=given.progress,
    )  # fmt: skip
    rows += _accuracies("hnas, our winning mode, 3,000 s", (None, None, None, None), best, "hnas")
    few = bench(
        given.table201, "cifar10", ["naswot", "knas"], Budget(seconds=12000), seeds=given.seeds, epochs=[12],
        scores=pool, settings={"knas": {"train": 20}}, processes=given.processes, progress=given.progress,
    )  # fmt: skip
    rows += _accuracies("NASWOT, N = 1000", (92.96, 69.98, 44.44, 306), few, "naswot")
    rows += _accuracies("KNAS, k = 20", (93.05, 68.91, 34.11, 4200), few, "knas")
    notes = [
        f"Ours: mean ± deviation of {given.seeds} searches of 12-epoch trainings on CIFAR-10, all data sets read for "
        "the cell chosen there. HNAS: official protocol (20 evaluations, its pool growth, scales and absolute value), "
        "the pool's scores fixed. Cost: simulated seconds of training; scoring is not in it, as in the official code.",
        "Not here: those that take supernets, ENAS, DARTS, GDAS, NASI and TE-NAS; see `reproduce nasi --table 4`.",
    ]
    return Report("HNAS, Table 4: searchers on NAS-Bench-201", rows, notes)


def _hnas(given: Given, paper: Mapping[str, tuple[float, ...]]) -> list[Row]:
    pool = _Pool(given).candidates
    rows = []
    for score, numbers in paper.items():
        found = bench(
            given.table201, "cifar10", ["hnas-paper"], Budget(evaluations=20), seeds=given.seeds, epochs=[12],
            scores=pool, settings={"hnas-paper": {**OFFICIAL, "score": score}}, processes=given.processes,
            progress=given.progress,
        )  # fmt: skip
        rows += _accuracies(f"HNAS ({score})", numbers, found, "hnas-paper")
    return rows


def _accuracies(label: str, paper: Sequence[float | None], found: Any, name: str) -> list[Row]:
    rows = []
    for (short, (dataset, _)), number in zip(DATASETS.items(), paper, strict=False):
        values = found.accuracies(name, dataset)
        rows.append(Row(f"{label}, {short}", number, float(values.mean()), float(values.std())))
    seconds = [one.seconds for one in found.of(name)]
    return [*rows, Row(f"{label}, cost", paper[3], float(np.mean(seconds)), float(np.std(seconds)))]


@reproduces("hnas", "table 5", "correlation of scores with each other")
def table_5(given: Given) -> Report:
    """With the KNAS rows of the thesis, Table 7.4."""
    order = ("Pearson", "Spearman", "Kendall")
    paper = {
        ("grad", "snip"): ((0.98, 0.98, 0.87), (1.00, 1.00, 0.97)),
        ("grad", "grasp"): ((0.35, 0.61, 0.43), (0.60, 0.92, 0.77)),
        ("grad", "trace"): ((0.98, 0.98, 0.87), (0.98, 0.97, 0.85)),
        ("snip", "grasp"): ((0.34, 0.59, 0.42), (0.55, 0.92, 0.77)),
        ("snip", "trace"): ((0.94, 0.93, 0.77), (0.97, 0.96, 0.83)),
        ("grasp", "trace"): ((0.37, 0.57, 0.40), (0.69, 0.89, 0.73)),
        ("fisher", "trace"): ((0.69, 0.97, 0.85), (0.30, 0.78, 0.69)),
        ("synflow", "trace"): ((0.02, 0.50, 0.34), (0.07, 0.49, 0.35)),
        ("naswot", "trace"): ((0.08, 0.11, 0.08), (0.10, 0.32, 0.22)),
        ("knas", "grad"): ((0.95, 0.96, 0.83), (0.88, 0.94, 0.80)),
        ("knas", "snip"): ((0.91, 0.92, 0.75), (0.87, 0.94, 0.78)),
        ("knas", "grasp"): ((0.37, 0.65, 0.46), (0.45, 0.87, 0.69)),
        ("knas", "trace"): ((0.96, 0.96, 0.84), (0.89, 0.97, 0.86)),
        ("grad:paper", "trace"): ((None,) * 3, (None,) * 3),
        ("snip:paper", "trace"): ((None,) * 3, (None,) * 3),
    }
    rows, notes = [], ["SynFlow here is its logarithm, so Pearson's is not that of the paper's SynFlow."]
    for place, space in enumerate(("nasbench101", "nasbench201")):
        candidates = Candidates.of(shipped(space, "cifar10"), get_space(space))
        for (first, second), numbers in paper.items():
            kept = candidates.ok(first) & candidates.ok(second)
            one, other = candidates.column(first)[kept], candidates.column(second)[kept]
            found = (float(pearsonr(one, other).statistic), spearman(one, other), kendall(one, other))
            for name, number, ours in zip(order, numbers[place], found, strict=True):
                rows.append(Row(f"{space}, {first} and {second}, {name}", number, ours))
        notes.append(f"{space}: {len(candidates):,} cells, those without a valid score left out")
    return Report("HNAS, Table 5: correlation of scores with each other", rows, notes)


_SCENARIOS = {
    "C10": {
        "realizable": ((0.637, 0.469), (0.639, 0.472), (0.566, 0.400), (0.538, 0.387)),
        "realizable + trade-off": ((0.642, 0.475), (0.641, 0.474), (0.570, 0.403), (0.549, 0.397)),
        "realizable + kappa": ((0.724, 0.530), (0.728, 0.533), (0.658, 0.474), (0.657, 0.474)),
        "non-realizable": ((0.750, 0.559), (0.748, 0.556), (0.686, 0.501), (0.697, 0.512)),
    },
    "C100": {
        "realizable": ((0.638, 0.473), (0.638, 0.475), (0.571, 0.409), (0.535, 0.385)),
        "realizable + trade-off": ((0.642, 0.476), (0.645, 0.481), (0.578, 0.414), (0.546, 0.394)),
        "realizable + kappa": ((0.716, 0.527), (0.719, 0.529), (0.649, 0.469), (0.651, 0.470)),
        "non-realizable": ((0.740, 0.552), (0.746, 0.557), (0.680, 0.498), (0.686, 0.504)),
    },
    "IN-16": {
        "realizable": ((0.578, 0.430), (0.578, 0.433), (0.550, 0.397), (0.486, 0.354)),
        "realizable + trade-off": ((0.588, 0.438), (0.589, 0.441), (0.566, 0.408), (0.526, 0.382)),
        "realizable + kappa": ((0.646, 0.472), (0.649, 0.474), (0.612, 0.443), (0.587, 0.423)),
        "non-realizable": ((0.682, 0.505), (0.685, 0.506), (0.655, 0.480), (0.660, 0.482)),
    },
}


@reproduces("hnas", "table 6", "what the trade-off and kappa add")
def table_6(given: Given) -> Report:
    """Four scenarios, three data sets."""
    rows = []
    for name, scenarios in _SCENARIOS.items():
        dataset, data = DATASETS[name]
        pool = _Pool(given, data)
        errors = pool.errors(dataset)
        for place, score in enumerate(SCORES):
            metric = Metric(pool.candidates, score)
            weights = metric.best(errors)
            bounds = {
                "realizable": metric.realizable(),
                "realizable + trade-off": metric.with_trade_off(weights),
                "realizable + kappa": metric.with_kappa(),
                "non-realizable": metric.non_realizable(weights),
            }
            for scenario, bound in bounds.items():
                rows += _both(f"{name}, {score}, {scenario}", scenarios[scenario][place], bound, errors)
    return Report("HNAS, Table 6: correlation with test errors in four scenarios", rows, [_TINY])


_SAME = ""
"""The settings of the main tables."""
_C10 = {name: _SCENARIOS["C10"][name] for name in ("realizable", "non-realizable")}


def _ablation(
    given: Given, title: str, parts: Mapping[str, tuple[str, str, tuple[tuple[float, float], ...]]]
) -> Report:
    """``parts``: label to the variants for M and for kappa, and the paper's numbers."""
    variants = {_SAME, *(variant for of_metric, of_kappa, _ in parts.values() for variant in (of_metric, of_kappa))}
    there = {variant for variant in variants if is_shipped("nasbench201", f"cifar10{variant}")}
    pools = {variant: _Pool(given, variant=variant) for variant in sorted(there)}
    # Some settings were scored on more cells than others.
    shared = set.intersection(*(set(pool.candidates.architectures) for pool in pools.values()))
    common = [architecture for architecture in pools[_SAME].candidates.architectures if architecture in shared]
    pools = {variant: pool.of(common) for variant, pool in pools.items()}
    errors = pools[_SAME].errors("cifar10")
    weights = {score: Metric(pools[_SAME].candidates, score).best(errors) for score in SCORES}
    rows: list[Row] = []
    for label, (of_metric, of_kappa, numbers) in parts.items():
        for place, score in enumerate(SCORES if {of_metric, of_kappa} <= there else ()):
            metric = Metric(pools[of_metric].candidates, score, pools[of_kappa].candidates)
            bound = metric.realizable() if label.startswith("realizable") else metric.non_realizable(weights[score])
            rows += _both(f"{label}, {score}", numbers[place], bound, errors)
    deviation = (1 - 0.7**2) / np.sqrt(len(common))
    notes = [
        f"{len(common):,} cells: a correlation of 0.7 has a deviation of about {deviation:.2f}; differences between "
        "rows, which share the cells, are known better. The main tables' settings were scored on other images."
    ]
    notes = notes if rows else []
    if variants - there:
        lacking = ", ".join(sorted(variant.removeprefix("-") for variant in variants - there))
        notes.append(
            f"Left out, as their scores do not come with theta0: {lacking}; benchmarks/ablations.py makes them."
        )
    return Report(title, rows, notes)


@reproduces("hnas", "table 9", "initializations")
def table_9(given: Given) -> Report:
    """The paper's row called LeCun equals its main tables, which used torch's own initialization."""
    realizable = {
        _SAME: _C10["realizable"],
        "-lecun": _C10["realizable"],
        "-xavier": ((0.608, 0.445), (0.627, 0.463), (0.449, 0.316), (0.465, 0.334)),
        "-he": ((0.609, 0.446), (0.615, 0.454), (0.340, 0.242), (0.460, 0.334)),
    }
    other = {
        _SAME: _C10["non-realizable"],
        "-lecun": _C10["non-realizable"],
        "-xavier": ((0.676, 0.493), (0.685, 0.501), (0.615, 0.442), (0.635, 0.460)),
        "-he": ((0.607, 0.436), (0.611, 0.439), (0.505, 0.358), (0.569, 0.407)),
    }
    names = {_SAME: "torch's own", "-lecun": "LeCun", "-xavier": "Xavier", "-he": "He"}
    parts = {f"realizable, {names[key]}": (key, key, numbers) for key, numbers in realizable.items()}
    parts |= {f"non-realizable, {names[key]}": (key, key, numbers) for key, numbers in other.items()}
    return _ablation(given, "HNAS, Table 9: initializations", parts)


@reproduces("hnas", "table 10", "batch sizes, for M and for kappa apart")
def table_10(given: Given) -> Report:
    """Non-realizable scenario."""
    metric = {
        4: ((0.737, 0.547), (0.741, 0.550), (0.671, 0.487), (0.684, 0.501)),
        8: ((0.739, 0.549), (0.743, 0.552), (0.676, 0.492), (0.689, 0.506)),
        16: ((0.747, 0.556), (0.748, 0.556), (0.685, 0.499), (0.690, 0.507)),
        32: ((0.750, 0.558), (0.748, 0.556), (0.687, 0.502), (0.690, 0.506)),
    }
    kappa = {
        4: ((0.578, 0.416), (0.585, 0.421), (0.569, 0.402), (0.509, 0.362)),
        8: ((0.597, 0.429), (0.603, 0.433), (0.591, 0.419), (0.542, 0.386)),
        16: ((0.628, 0.462), (0.633, 0.455), (0.620, 0.442), (0.582, 0.414)),
        32: ((0.663, 0.479), (0.666, 0.481), (0.645, 0.462), (0.621, 0.445)),
    }
    parts = {f"batch {size} for M": (f"-batch{size}", _SAME, numbers) for size, numbers in metric.items()}
    parts |= {f"batch {size} for kappa": (_SAME, f"-batch{size}", numbers) for size, numbers in kappa.items()}
    parts["batch 64 for both"] = (_SAME, _SAME, _C10["non-realizable"])
    return _ablation(given, "HNAS, Table 10: batch sizes, non-realizable scenario", parts)


def _channels(count: int) -> str:
    return _SAME if count == 16 else f"-channels{count}"


@reproduces("hnas", "table 11", "initial channels, for M and for kappa apart")
def table_11(given: Given) -> Report:
    """Non-realizable scenario."""
    metric = {
        4: ((0.744, 0.550), (0.746, 0.552), (0.688, 0.499), (0.732, 0.539)),
        8: ((0.750, 0.556), (0.753, 0.559), (0.707, 0.515), (0.744, 0.550)),
        16: ((0.753, 0.558), (0.753, 0.559), (0.728, 0.535), (0.750, 0.556)),
        32: ((0.755, 0.560), (0.756, 0.562), (0.736, 0.543), (0.752, 0.558)),
    }
    kappa = {
        8: ((0.720, 0.529), (0.722, 0.531), (0.700, 0.512), (0.709, 0.522)),
        16: ((0.698, 0.511), (0.700, 0.514), (0.677, 0.492), (0.681, 0.498)),
        32: ((0.686, 0.501), (0.688, 0.503), (0.664, 0.481), (0.664, 0.484)),
    }
    parts = {f"{c} channels for M, 4 for kappa": (_channels(c), "-channels4", n) for c, n in metric.items()}
    parts |= {f"32 channels for M, {c} for kappa": ("-channels32", _channels(c), n) for c, n in kappa.items()}
    return _ablation(given, "HNAS, Table 11: initial channels, non-realizable scenario", parts)


@reproduces("hnas", "table 12", "scores that are not of gradients")
def table_12(given: Given) -> Report:
    """With the KNAS column of the thesis, Table 7.12."""
    scores = ("knas", "fisher", "synflow", "naswot")
    paper = {
        "realizable": {
            "C10": (0.53, 0.389, 0.777, 0.089),
            "C100": (0.53, 0.389, 0.763, 0.085),
            "IN-16": (0.46, 0.318, 0.751, 0.162),
        },
        "non-realizable": {
            "C10": (0.66, 0.506, 0.808, 0.045),
            "C100": (0.67, 0.505, 0.795, 0.047),
            "IN-16": (0.62, 0.437, 0.779, 0.046),
        },
    }
    notes = [_TINY, "The quantity that the HNAS code calls NASWOT is another one; ours is NASWOT's."]
    return Report("HNAS, Table 12: Spearman correlation of other scores", _transfer(given, scores, paper), notes)


@reproduces("hnas", "table 13", "HNAS with other scores")
def table_13(given: Given) -> Report:
    """With the KNAS row of the thesis, Table 7.13."""
    paper = {
        "knas": (94.19, 72.94, 46.31, 3081),
        "fisher": (93.28, 69.42, 42.85, 3309),
        "synflow": (94.13, 72.50, 45.47, 3615),
        "naswot": (92.10, 66.81, 39.26, 2832),
    }
    notes = [
        f"Ours: {given.seeds} searches, official protocol. Our SynFlow is its logarithm and our NASWOT is NASWOT's.",
    ]
    return Report("HNAS, Table 13: HNAS with other scores", _hnas(given, paper), notes)


def _folder(given: Given) -> Path:
    if given.folder is None:
        raise Theta0Error("a figure needs a place: --out FOLDER")
    given.folder.mkdir(parents=True, exist_ok=True)
    return given.folder


@reproduces("hnas", "figure 2", "trace against the other scores")
def figure_2(given: Given) -> Report:
    """One panel for each score."""
    from theta0 import figure

    candidates = Candidates.of(shipped("nasbench201", "cifar10"), get_space("nasbench201"))
    drawing, axes = figure.make(1, 3, width=10, height=3.4)
    rows = []
    for axis, (score, paper) in zip(axes, {"grad": 0.97, "snip": 0.96, "grasp": 0.89}.items(), strict=True):
        kept = candidates.ok(score) & candidates.ok("trace")
        x, y = candidates.column("trace")[kept], candidates.column(score)[kept]
        rows.append(Row(f"nasbench201, {score} and trace, Spearman", paper, spearman(x, y)))
        axis.scatter(x, y, s=2, alpha=0.3, linewidths=0, rasterized=True)
        axis.set(xscale="log", yscale="log", xlabel="trace", ylabel=score, title=f"r = {rows[-1].ours:.2f}")
        figure.plain(axis)
    paths = figure.save(drawing, _folder(given) / "hnas-figure-2")
    return Report(
        "HNAS, Figure 2: trace against other scores", rows, ["The paper's numbers are those of Table 5."], paths
    )


@reproduces("hnas", "figure 3", "searchers under growing budgets")
def figure_3(given: Given) -> Report:
    """The incumbent's test accuracy against the cost."""
    names = ["hnas", "hnas-paper", "robot", "evolution", "reinforce", "bohb", "zerocost"]
    found = bench(
        given.table201, "cifar10", names, Budget(seconds=12000), seeds=given.seeds, epochs=[12],
        scores=_Pool(given).candidates, settings={"zerocost": {"score": "trace", "train": 1}},
        processes=given.processes, progress=given.progress,
    )  # fmt: skip
    rows = []
    for seconds in (500.0, 1500.0, 3000.0, 12000.0):
        for name in found.names:
            mean, deviation = found.curve(name, np.array([seconds]))
            if np.isfinite(mean[0]):
                rows.append(Row(f"{name}, {seconds:,.0f} s", None, float(mean[0]), float(deviation[0])))
    paths = found.draw(_folder(given) / "hnas-figure-3")
    return Report("HNAS, Figure 3: test accuracy on CIFAR-10 by cost", rows, ["The paper gives curves only."], paths)


@reproduces("hnas", "figure 4", "errors by score, and kappa within bins")
def figure_4(given: Given) -> Report:
    """Twenty bins of each score."""
    from theta0 import figure

    pool = _Pool(given)
    errors = pool.errors("cifar10")
    drawing, axes = figure.make(2, 4, width=12, height=5.6)
    rows = []
    for place, score in enumerate(SCORES):
        metric = Metric(pool.candidates, score)
        kept = np.flatnonzero(metric.valid)
        bins = np.array_split(kept[np.argsort(metric.metric[kept], kind="stable")], 20)
        centres = [float(metric.metric[part].mean()) for part in bins]
        means = [float(errors[part].mean()) for part in bins]
        inside = [spearman(metric.kappa[part], errors[part]) for part in bins]
        top, bottom = axes[place], axes[4 + place]
        for part, centre in zip(bins, centres, strict=True):
            low, high = np.quantile(errors[part], [0.05, 0.95])
            top.vlines(centre, low, high, color=figure.COLOURS[0], alpha=0.6)
        top.plot(centres, means, "k--", linewidth=1)
        top.set(xlabel=score, ylabel="test error (%)", xscale="log", ylim=(5, 25))
        bottom.bar(range(1, 21), inside, color=figure.COLOURS[1])
        bottom.set(xlabel=f"bin of {score}", ylabel="Spearman of kappa, error", ylim=(-0.5, 1))
        figure.plain(top)
        rows.append(Row(f"{score}: bin of the least mean error, of 20", None, float(np.argmin(means) + 1)))
        rows.append(Row(f"{score}: mean Spearman of kappa and error within bins", None, float(np.mean(inside))))
    paths = figure.save(drawing, _folder(given) / "hnas-figure-4")
    notes = [
        "Lines: 5 to 95 % of a bin; dashed: its mean.",
        "The paper shows a least error inside the range, not at its end, and positive correlations with kappa.",
    ]
    return Report("HNAS, Figure 4: the trade-off and kappa", rows, notes, paths)


@reproduces("hnas", "figure 7.5", "the bound's correlation over the search (thesis)")
def figure_75(given: Given) -> Report:
    """Of the mu and nu of best validation accuracy so far."""
    from theta0 import figure
    from theta0.objective import TableObjective
    from theta0.searchers.hnas import Terms
    from theta0.searching import run

    pool = _Pool(given)
    errors = pool.errors("cifar10")
    terms = Terms(pool.candidates, "trace", "kappa", absolute=True, signed=True, scale=5e3)
    objective = TableObjective(given.table201, "cifar10", epochs=[12])
    curves = []
    for seed in range(given.seeds):
        result = run("hnas-paper", objective, Budget(20), seed=seed, scores=pool.candidates, **OFFICIAL)
        best, correlation, curve = -np.inf, np.nan, []
        for trial in result.trials:
            if trial.value > best:
                best = trial.value
                value = terms.value(trial.why["mu"], trial.why["t"])
                known = np.isfinite(value)
                correlation = spearman(np.where(known, value, 2 * value[known].max()), errors)
            curve.append(correlation)
        curves.append(curve)
    values = np.array(curves)
    drawing, axes = figure.make()
    steps = np.arange(1, values.shape[1] + 1)
    figure.band(axes[0], steps, values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values)), "trace")
    axes[0].set(xlabel="evaluations", ylabel="Spearman of the bound and test error", xticks=steps[4::5])
    paths = figure.save(drawing, _folder(given) / "hnas-figure-7.5")
    rows = []
    for n in (1, 5, 10, 20):
        column = values[:, n - 1]
        rows.append(Row(f"after {n} evaluations", None, float(column.mean()), float(column.std())))
    notes = ["The thesis gives a curve only: it rises."]
    return Report("Thesis, Figure 7.5: correlation of the bound over the search", rows, notes, paths)
