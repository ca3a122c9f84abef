"""Searchers against each other on a table: many seeds, means and deviations, the incumbent over cost.

    found = bench(table, "cifar10", ["hnas", "evolution"], Budget(seconds=3000), seeds=10, scores=scores)
    print(found.text())
    found.save(folder)                      # bench.csv, bench.svg, bench.png

Random search and the optimum always stand beside. Test accuracy is read here, after the searches have ended.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from theta0.candidates import Candidates
from theta0.errors import Theta0Error, nearest
from theta0.objective import TableObjective
from theta0.pool import PoolScores
from theta0.searchers import Budget, searchers
from theta0.searching import incumbent, run
from theta0.tables.table import Table

if TYPE_CHECKING:
    from theta0.data.dataset import ImageDataset

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One search: what it chose, and its incumbents as they changed."""

    searcher: str
    seed: int
    row: int
    seconds: float
    evaluations: int
    own_seconds: float
    steps: list[tuple[float, int]]
    """(seconds spent, row of the incumbent)."""
    drawn: bool = True
    """Whether anything was drawn: otherwise it is that of every seed."""


@dataclass
class Bench:
    """All runs, and the table that they are read in."""

    table: Table
    dataset: str
    budget: Budget
    runs: list[Run]
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The searchers, in the order in which they were asked for."""
        return list(dict.fromkeys(run.searcher for run in self.runs))

    def of(self, name: str) -> list[Run]:
        """The runs of a searcher."""
        return [run for run in self.runs if run.searcher == name]

    def _final(self, rows: Any, dataset: str) -> Floats:
        """What counts: test accuracy after the longest training, or validation where the table has no test."""
        longest = self.table.epochs(dataset)[-1]
        read = self.table.test if self.table.has_test(dataset, longest) else self.table.validation
        return read(dataset, longest, rows)

    @property
    def measure(self) -> str:
        """What the accuracies are."""
        longest = self.table.epochs(self.dataset)[-1]
        kind = "test" if self.table.has_test(self.dataset, longest) else "validation"
        return f"{kind} accuracy after {longest} epochs"

    def accuracies(self, name: str, dataset: str) -> Floats:
        """(seeds,) final accuracy of what a searcher chose."""
        return self._final([run.row for run in self.of(name)], dataset)

    def optimum(self, dataset: str) -> float:
        """The best accuracy of the table, within the limits."""
        rows = self.table.within(self.limits, self.dataset) if self.limits else None
        return float(self._final(rows, dataset).max())

    def curve(self, name: str, grid: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation over seeds of the incumbent's final accuracy at costs ``grid``; NaN until all have one."""
        values = np.full((len(self.of(name)), len(grid)), np.nan)
        for i, one in enumerate(self.of(name)):
            costs = np.array([cost for cost, _ in one.steps])
            reached = self._final([row for _, row in one.steps], self.dataset)
            place = np.searchsorted(costs, grid, side="right") - 1
            values[i, place >= 0] = reached[place[place >= 0]]
        whole = ~np.isnan(values).any(axis=0)
        mean, deviation = np.full(len(grid), np.nan), np.full(len(grid), np.nan)
        mean[whole], deviation[whole] = values[:, whole].mean(axis=0), values[:, whole].std(axis=0)
        return mean, deviation

    def rows(self) -> list[dict[str, Any]]:
        """A line for each searcher, and the optimum."""
        lines = []
        for name in self.names:
            runs, line = self.of(name), {"searcher": name, "seeds": len(self.of(name))}
            for dataset in self.table.datasets:
                values = self.accuracies(name, dataset)
                line[f"{dataset} mean"], line[f"{dataset} deviation"] = float(values.mean()), float(values.std())
            line["seconds"] = float(np.mean([run.seconds for run in runs]))
            line["evaluations"] = float(np.mean([run.evaluations for run in runs]))
            line["own seconds"] = float(np.mean([run.own_seconds for run in runs]))
            lines.append(line)
        best: dict[str, Any] = {"searcher": "optimum", "seeds": 0}
        for dataset in self.table.datasets:
            best[f"{dataset} mean"], best[f"{dataset} deviation"] = self.optimum(dataset), 0.0
        return [*lines, best]

    def text(self) -> str:
        """The table for the screen."""
        sets = self.table.datasets
        lines = [
            f"{'searcher':<16}" + "".join(f"{name:>16}" for name in sets) + f"{'cost s':>9}{'trials':>8}{'own s':>8}"
        ]
        for row in self.rows():
            cells = "".join(f"{row[f'{name} mean']:>10.2f}±{row[f'{name} deviation']:<5.2f}" for name in sets)
            if row["searcher"] == "optimum":
                cells = "".join(f"{row[f'{name} mean']:>10.2f}{'':<6}" for name in sets)
                lines.append(f"{'optimum':<16}{cells}")
            else:
                spent = f"{row['seconds']:>9.0f}{row['evaluations']:>8.1f}{row['own seconds']:>8.2f}"
                lines.append(f"{row['searcher']:<16}{cells}{spent}")
        asked = f"searched on {self.dataset} by validation accuracy; {self.measure}; mean ± deviation over seeds"
        return "\n".join([*lines, asked])

    def save(self, folder: str | Path) -> list[Path]:
        """Writes bench.csv (a line for each run) and the curves as bench.svg and bench.png."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "bench.csv"
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            sets = self.table.datasets
            writer.writerow(["searcher", "seed", *sets, "seconds", "evaluations", "own seconds", "architecture"])
            for one in self.runs:
                values = [round(float(self._final(one.row, name)), 4) for name in sets]
                facts = [round(one.seconds, 1), one.evaluations, round(one.own_seconds, 3), self.table.cells[one.row]]
                writer.writerow([one.searcher, one.seed, *values, *facts])
        return [path, *self.draw(folder / "bench")]

    def draw(self, stem: Path) -> list[Path]:
        """The incumbent over cost, linear and logarithmic."""
        from theta0 import figure

        most = max(run.seconds for run in self.runs)
        least = min(cost for run in self.runs if run.evaluations for cost, _ in run.steps)
        curves = {}
        for name in self.names:
            if any(run.evaluations for run in self.of(name)):
                grid = np.geomspace(max(least, 1e-3), most, 200)
                curves[name] = (grid, *self.curve(name, grid))
        drawing, axes = figure.make(1, 2, width=9.5, height=3.8)
        for axis, scale in zip(axes, ("linear", "log"), strict=True):
            for name, (grid, mean, deviation) in curves.items():
                figure.band(axis, grid, mean, deviation / math.sqrt(len(self.of(name))), name)
            for name in self.names:
                if name not in curves:  # at no cost, and perhaps below what is shown: its number stands in the legend
                    value = float(self.accuracies(name, self.dataset).mean())
                    label = f"{name}, untrained: {value:.2f}"
                    axis.axhline(value, color="0.7", linestyle=":", linewidth=1.6, label=label)
            axis.axhline(self.optimum(self.dataset), color="0.4", linestyle="--", linewidth=1, label="optimum")
            axis.set_xscale(scale)
            axis.set_xlabel("cost of training (s)")
            axis.set_ylabel(f"{self.dataset}: {self.measure} (%)")
            shown = np.concatenate([mean[grid > most / 8] for grid, mean, _ in curves.values()])
            if np.isfinite(shown).any():
                low, high = float(np.nanmin(shown)), self.optimum(self.dataset)
                axis.set_ylim(low - 0.1 * (high - low + 0.1), high + 0.1 * (high - low + 0.1))
            figure.plain(axis)
        axes[0].legend(fontsize=8, title="mean and its standard error", title_fontsize=8)
        return figure.save(drawing, stem)


def bench(
    table: Table,
    dataset: str,
    names: Sequence[str],
    budget: Budget,
    *,
    seeds: int = 10,
    epochs: Sequence[int] | None = None,
    scores: PoolScores | Candidates | None = None,
    images: ImageDataset | None = None,
    limits: Mapping[str, float] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    processes: int = 1,
    progress: TextIO | None = None,
) -> Bench:
    """Runs each searcher with seeds 0 to ``seeds`` - 1; random search is added where it is missing.

    ``settings`` are options by the name of the searcher; ``epochs`` the training budgets that searchers may use;
    ``images`` are for those that look at some or train a supernet.
    """
    if seeds < 1 or processes < 1:
        raise Theta0Error(f"a comparison needs at least one seed and one process, not {seeds} and {processes}")
    wanted = list(dict.fromkeys([*names, "random"]))
    for name in wanted:
        searchers.get(name)
    for name in settings or ():
        if name not in wanted:
            raise Theta0Error(f"settings for {name!r}, which is not compared; {nearest(name, wanted)}")
    objective = TableObjective(table, dataset, epochs=epochs, limits=limits)
    pool = Candidates.of(scores, objective.space) if isinstance(scores, PoolScores) else scores
    work = _Work(objective, pool, images, budget, dict(settings or {}))
    runs: list[Run] = []
    for one in _results(work, wanted, seeds, processes):
        runs.append(one)
        if progress is not None:
            total = len(wanted) * seeds
            end = "\n" if len(runs) == total else ""
            print(f"\r{len(runs)} of {total} searches, {one.searcher:<16}", end=end, file=progress, flush=True)
    order = {name: place for place, name in enumerate(wanted)}
    runs.sort(key=lambda one: (order[one.searcher], one.seed))
    return Bench(table, dataset, budget, runs, dict(limits or {}))


@dataclass(frozen=True)
class _Work:
    """What every process needs to know."""

    objective: TableObjective
    pool: Candidates | None
    images: ImageDataset | None
    budget: Budget
    settings: dict[str, Mapping[str, Any]]


def _results(work: _Work, names: list[str], seeds: int, processes: int) -> Iterator[Run]:
    """The first seed of each searcher; then the others, of those that draw anything."""
    with contextlib.ExitStack() as stack:
        search: Callable[[list[tuple[str, int]]], Iterable[Run]]
        if processes == 1:
            search = functools.partial(map, lambda task: _one(work, *task))
        else:
            pool = stack.enter_context(ProcessPoolExecutor(processes, get_context("spawn"), _start, (work,)))
            search = functools.partial(pool.map, _task)
        same = []
        for one in search([(name, 0) for name in names]):
            yield one
            if not one.drawn:
                same.append(one.searcher)
                yield from (replace(one, seed=seed) for seed in range(1, seeds))
        yield from search([(name, seed) for name in names if name not in same for seed in range(1, seeds)])


_work: _Work | None = None


def _start(work: _Work) -> None:
    global _work
    _work = work


def _task(task: tuple[str, int]) -> Run:
    assert _work is not None
    return _one(_work, *task)


def _one(work: _Work, name: str, seed: int) -> Run:
    objective = work.objective
    settings = work.settings.get(name)
    result = run(name, objective, work.budget, seed=seed, scores=work.pool, images=work.images, settings=settings)
    steps: list[tuple[float, int]] = []
    for count in range(1, len(result.trials) + 1):
        said = result.choices[count] if count < len(result.trials) else result.chosen
        best = incumbent(result.trials[:count]) if said is None else said
        if best is not None and (not steps or steps[-1][1] != objective.table.row(best)):
            steps.append((result.trials[count - 1].spent, objective.table.row(best)))
    row = objective.table.row(result.chosen)
    if not steps:
        steps.append((result.seconds, row))
    return Run(name, seed, row, result.seconds, len(result.trials), result.own_seconds, steps, result.drawn)
