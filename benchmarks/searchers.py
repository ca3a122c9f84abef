"""HNAS and its rivals on NAS-Bench-201: the paper's protocol and its details, all searchers at two budgets, whether
what was chosen on one half of the cells holds on the other half, and what the searchers themselves take.

    python benchmarks/searchers.py --nasbench201 FILE --nasbench101 FILE --seeds 50 --processes 2 --part all

The halves are of isomorphism groups, so that no cell of one is a copy of a cell of the other. There a seed is a random
70 % of a half's cells (one of each group), since some searchers draw nothing. `hnas`'s defaults were chosen on the
first half and on NAS-Bench-101.

The part `overhead` puts two packages beside ours, where they are installed: bayesian-optimization, which the official
HNAS uses, and optuna. Both choose mu and nu; the pool, the objective and the look-ups are the same for all.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from theta0 import tables
from theta0.bench import Bench, bench
from theta0.candidates import Candidates
from theta0.objective import TableObjective
from theta0.pool import shipped
from theta0.searchers import Budget, Search, Task
from theta0.searchers.hnas import OFFICIAL, Terms
from theta0.searching import run
from theta0.space import get_space
from theta0.tables.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from record import save

DATA = {"cifar10": "cifar10", "cifar100": "cifar100", "imagenet16": "tiny16"}
"""The table's data set, and that of the scores that stand for it."""
RIVALS: dict[str, dict[str, Any]] = {
    "hnas": {},
    "robot": {},
    "hnas-paper": {},
    "zerocost": {"train": 10_000},
    "evolution": {},
    "reinforce": {},
    "bohb": {},
}
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "hnas": ("hnas", {}),
    "without the gain of large networks": ("hnas", {"gain": 0.0}),
    "without the architecture's choices": ("hnas", {"encoding": 0.0}),
    "one score as the prior: synflow": ("hnas", {"ranking": ("synflow",)}),
    "kappa in the prior": ("hnas", {"ranking": ("flops", "synflow", "jacob_cov", "kappa")}),
    "flops and naswot as the prior": ("hnas", {"ranking": ("flops", "naswot")}),
    "nine scores": (
        "hnas",
        {"scores": ("flops", "synflow", "naswot", "jacob_cov", "kappa", "snip", "grasp", "trace", "fisher")},
    ),
    "down the ranking of synflow": ("zerocost", {"train": 10_000}),
    "robot": ("robot", {}),
    "hnas-paper, trace": ("hnas-paper", {}),
    "hnas-paper, official": ("hnas-paper", OFFICIAL),
    "random": ("random", {}),
}


@cache
def pool_of(space: str, data: str) -> Candidates:
    """Shipped scores."""
    return Candidates.of(shipped(space, data), get_space(space))


def line(found: Bench, name: str) -> str:
    """Means and deviations on the three data sets, and the cost."""
    runs = found.of(name)
    parts = [found.accuracies(name, one) for one in found.table.datasets]
    numbers = " / ".join(f"{values.mean():.2f} ± {values.std():.2f}" for values in parts)
    cost, own = np.mean([one.seconds for one in runs]), np.mean([one.own_seconds for one in runs])
    return f"{numbers}; {cost:,.0f} s, {np.mean([one.evaluations for one in runs]):.1f} trainings, own {own:.2f} s"


def protocol(table: Table, seeds: int, processes: int) -> Iterator[tuple[str, str]]:
    """The official protocol for the four scores, and what each of its details gives for trace."""
    pool = pool_of("nasbench201", "cifar10")
    logs = replace(pool, scores={**pool.scores, "kappa:official": np.log(np.maximum(pool.column("kappa"), 1))})
    changes: dict[str, tuple[Candidates, dict[str, Any]]] = {
        f"official, {score}": (pool, {**OFFICIAL, "score": score}) for score in ("grad", "snip", "grasp", "trace")
    }
    changes |= {
        "official, trace, square": (pool, {**OFFICIAL, "form": "square"}),
        "official, trace, pool scaling": (pool, {**OFFICIAL, "scaling": "pool"}),
        "official, trace, mu from 1e-6 to 10": (pool, {**OFFICIAL, "lowest": -6.0, "highest": 1.0}),
        "official, trace, whole pool": (pool, {**OFFICIAL, "growth": 0}),
        "official, trace, ucb": (pool, {**OFFICIAL, "acquisition": "ucb"}),
        "official, trace, ln kappa": (logs, OFFICIAL),
        "ours (square, pool scaling, whole pool), trace": (pool, {}),
        "ours, trace, ln kappa": (logs, {}),
    }
    for label, (given, settings) in changes.items():
        found = bench(
            table, "cifar10", ["hnas-paper"], Budget(20), seeds=seeds, epochs=[12], scores=given,
            settings={"hnas-paper": settings}, processes=processes,
        )  # fmt: skip
        yield f"protocol: {label}", line(found, "hnas-paper")


def rivals(table: Table, seeds: int, processes: int) -> Iterator[tuple[str, str]]:
    """All at two budgets, on each data set's own validation accuracy; the middle one of three numbers is CIFAR-100."""
    for dataset, data in DATA.items():
        pool = pool_of("nasbench201", data)
        for seconds in (1500.0, 3000.0):
            found = bench(
                table, dataset, list(RIVALS), Budget(seconds=seconds), seeds=seeds, epochs=[12], scores=pool,
                settings=RIVALS, processes=processes, progress=sys.stderr,
            )  # fmt: skip
            for name in found.names:
                yield f"searched on {dataset}, {seconds:,.0f} s: {name}", line(found, name)


def halves(table: Table, other: Table, seeds: int) -> Iterator[tuple[str, str]]:
    """Share of the pool that is better than what was chosen, in percent; means over seeds and data sets."""
    space = get_space("nasbench201")
    groups = np.unique(
        [str(space.canonical(table.architecture(row))) for row in range(len(table))], return_inverse=True
    )
    first = np.unique(groups[1], return_index=True)[1]
    side = np.random.default_rng(0).permutation(len(first)) < len(first) // 2
    final = {one: table.test(one, table.epochs(one)[-1]) for one in DATA}
    sampled = pool_of("nasbench101", "cifar10")
    objectives = {("nasbench201", one): TableObjective(table, one, epochs=[12]) for one in DATA}
    objectives["nasbench101", "cifar10"] = TableObjective(other, "cifar10", epochs=[12])
    for label, (name, settings) in MODES.items():
        for place, kept in (("first half", first[side]), ("second half", first[~side]), ("nasbench101", None)):
            numbers = []
            for evaluations in (3, 10, 20):
                beaten = []
                for dataset, data in DATA.items() if kept is not None else (("cifar10", ""),):
                    for seed in range(seeds):
                        drawn = np.random.default_rng(seed)
                        if kept is None:
                            given, accuracy, within = sampled, other.validation(dataset, 108), other
                        else:
                            whole, accuracy, within = pool_of("nasbench201", data), final[dataset], table
                            given = whole.select(np.isin(within.rows(whole.architectures), kept))
                        size = len(given)
                        given = given.select(np.sort(drawn.permutation(size)[: int(0.7 * size)]))
                        result = run(
                            name,
                            objectives[within.space, dataset],
                            Budget(evaluations),
                            seed=seed,
                            scores=given,
                            settings=settings,
                        )
                        reached = accuracy[within.row(result.chosen)]
                        beaten.append(100 * np.mean(accuracy[within.rows(given.architectures)] > reached))
                numbers.append(f"{np.mean(beaten):.2f}")
            yield f"halves: {label}, {place}", " / ".join(numbers) + " after 3 / 10 / 20 trainings"


Ask = Callable[[], tuple[float, float]]
Tell = Callable[[float, float, float], None]


def by_bayes_opt(seed: int) -> tuple[Ask, Tell]:
    """A Gaussian process with a Matern-5/2 kernel and expected improvement, as in the official code."""
    package = importlib.import_module("bayes_opt")
    ei = importlib.import_module("bayes_opt.acquisition").ExpectedImprovement(xi=0.0)
    model = package.BayesianOptimization(
        None, {"power": (-4.0, 0.0), "t": (0.0, 1.0)}, acquisition_function=ei, random_state=seed, verbose=0
    )

    def ask() -> tuple[float, float]:
        point = model.suggest()
        return float(point["power"]), float(point["t"])

    def tell(power: float, t: float, value: float) -> None:
        model.register({"power": power, "t": t}, value)

    return ask, tell


def by_optuna(seed: int, sampler: str) -> tuple[Ask, Tell]:
    """Its tree of Parzen estimators or its Gaussian process, by ask and tell."""
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=getattr(optuna.samplers, sampler)(seed=seed))
    asked: list[Any] = []

    def ask() -> tuple[float, float]:
        asked.append(study.ask())
        return asked[-1].suggest_float("power", -4.0, 0.0), asked[-1].suggest_float("t", 0.0, 1.0)

    def tell(power: float, t: float, value: float) -> None:
        study.tell(asked[-1], value)

    return ask, tell


def two_weights(made: Callable[[int], tuple[Ask, Tell]]) -> Callable[..., Search]:
    """HNAS's search over mu and nu with another package's optimizer."""

    def searcher(task: Task, generator: np.random.Generator) -> Search:
        pool = task.pool()
        terms = Terms(pool, "trace", "kappa", absolute=False, signed=False, scale=None)
        ask, tell = made(int(generator.integers(2**31)))
        done: list[int] = []
        while True:
            power, t = ask()
            value = terms.value(10**power, t)
            value[done] = np.inf
            done.append(int(np.argmin(value)))
            (outcome,) = yield [task.proposal(pool.architectures[done[-1]])]
            tell(power, t, outcome.value)

    return searcher


def overhead(table: Table, seeds: int) -> Iterator[tuple[str, str]]:
    """Seconds that a searcher itself takes for 20 evaluations, without the table's look-ups."""
    pool = pool_of("nasbench201", "cifar10")
    objective = TableObjective(table, "cifar10", epochs=[12])
    contenders: dict[str, tuple[Any, dict[str, Any]]] = {
        "hnas": ("hnas", {}),
        "hnas-paper": ("hnas-paper", {}),
        "hnas-paper, official": ("hnas-paper", OFFICIAL),
        "robot": ("robot", {}),
        "bayesian-optimization": (two_weights(by_bayes_opt), {}),
        "optuna, TPE": (two_weights(lambda seed: by_optuna(seed, "TPESampler")), {}),
        "optuna, GP": (two_weights(lambda seed: by_optuna(seed, "GPSampler")), {}),
    }
    for label, (searcher, settings) in contenders.items():
        own, cores, reached = [], [], []
        try:
            for seed in range(seeds + 1):  # the first one imports, and is told apart
                start = time.process_time()
                result = run(searcher, objective, Budget(20), seed=seed, scores=pool, settings=settings)
                cores.append(time.process_time() - start)
                own.append(result.own_seconds)
                reached.append(float(table.test("cifar10", 200, table.row(result.chosen))))
        except ModuleNotFoundError as error:
            yield f"overhead: {label}", f"not measured: {error}"
            continue
        used, clock = f"{np.mean(cores[1:]):.2f} s of a core, at most {max(cores[1:]):.2f}", float(np.mean(own[1:]))
        numbers = f"{used}; {clock:.2f} s by the clock"
        yield f"overhead: {label}", f"{numbers}; {cores[0]:.2f} s with imports; CIFAR-10 {np.mean(reached[1:]):.2f}"


def main() -> None:
    """The parts that are asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nasbench201", required=True)
    options.add_argument("--nasbench101", required=True)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--part", choices=["all", "protocol", "rivals", "halves", "overhead"], default="all")
    given = options.parse_args()
    table, other = tables.load(given.nasbench201), tables.load(given.nasbench101)
    parts: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
        "protocol": lambda: protocol(table, given.seeds, given.processes),
        "rivals": lambda: rivals(table, given.seeds, given.processes),
        "halves": lambda: halves(table, other, min(given.seeds, 8)),
        "overhead": lambda: overhead(table, min(given.seeds, 10)),
    }
    for name, made in parts.items():
        if given.part in (name, "all"):
            figures = {}
            for label, value in made():
                print(f"{label}: {value}", file=sys.stderr, flush=True)  # hours lie between the first and the last
                figures[label] = value
            save(f"searchers-{name}", figures)


if __name__ == "__main__":
    main()
