from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tests.searchers.small import objective, scores, space, table
from theta0 import tables
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.objective import Outcome, TableObjective
from theta0.pool import shipped
from theta0.searchers import Budget, Task
from theta0.searchers.consensus import normal, one_hot
from theta0.searching import Result, run
from theta0.tables import Table

POOL = Candidates.of(scores(), space)
RANKING = ("flops", "synflow", "jacob_cov")


def searched(evaluations: int = 8, pool: Candidates = POOL, seed: int = 0, **options: Any) -> Result:
    return run("hnas", objective(), Budget(evaluations), seed=seed, scores=pool, settings=options)


def test_normal_scores_are_quantiles_of_ranks() -> None:
    """Ties share one, and lower is better where the score says so."""
    pool = POOL.select(np.arange(40))
    for name in ("snip", "kappa"):
        worth = np.where(pool.ok(name), pool.column(name) * (-1 if name == "kappa" else 1), -np.inf)
        for place in range(40):
            below, equal = np.sum(worth < worth[place]), np.sum(worth == worth[place])
            rank = below + (equal - 1) / 2
            assert normal(pool, name)[place] == pytest.approx(norm.ppf((rank + 0.5) / 40))


def test_codes_lie_sqrt_2_apart_where_nothing_is_alike() -> None:
    task = Task(objective(), Budget(1), POOL)
    codes = one_hot(POOL.architectures, task)
    given = np.array([space.encode(one) for one in POOL.architectures])
    for i, j in ((0, 1), (0, 728), (10, 500)):
        differing = np.mean(given[i] != given[j])
        assert np.linalg.norm(codes[i] - codes[j]) == pytest.approx(np.sqrt(2 * differing))


def test_the_first_is_the_best_of_the_ranking() -> None:
    prior = np.sum([normal(POOL, name) for name in RANKING], axis=0)
    assert table().row(searched(1).trials[0].architecture) == np.argmax(prior)


def test_nothing_comes_twice_and_one_of_each_canonical_form() -> None:
    trials = searched(40).trials
    forms = [space.canonical(one.architecture) for one in trials]
    assert len(set(forms)) == len(forms) == 40
    few = POOL.select(np.arange(12))
    assert len(searched(20, few).trials) == len({space.canonical(one) for one in few.architectures})


def test_values_change_what_comes_next() -> None:
    class Turned(type(objective())):  # type: ignore[misc]
        def evaluate(self, architecture: Any, epochs: int, seconds: float = float("inf")) -> Outcome:
            found = super().evaluate(architecture, epochs, seconds)
            return Outcome(100 - found.value, found.seconds)

    turned = run("hnas", Turned(table(), "cifar10"), Budget(8), scores=POOL)
    assert [one.architecture for one in turned.trials] != [one.architecture for one in searched().trials]


def test_the_choice_weighs_size_by_the_gain() -> None:
    """Without it the best validation accuracy is chosen."""
    plain = searched(12, gain=0.0)
    assert plain.chosen == max(plain.trials, key=lambda one: one.value).architecture
    large = searched(12, gain=1e3, capacity=("flops",))
    flops = [POOL.column("flops")[table().row(one.architecture)] for one in large.trials]
    assert POOL.column("flops")[table().row(large.chosen)] == max(flops)


def test_it_finds_better_cells_than_random_search() -> None:
    def final(name: str) -> float:
        found = []
        for seed in range(4):
            drawn = POOL.select(np.sort(np.random.default_rng(seed).permutation(len(POOL))[:500]))
            chosen = run(name, objective(epochs=[200]), Budget(12), seed=seed, scores=drawn).chosen
            found.append(table().validation("cifar10", 200, table().row(chosen)))
        return float(np.mean(found))

    assert final("hnas") > final("random") + 1


def test_without_the_architecture_s_own_choices() -> None:
    assert len(searched(6, encoding=0.0).trials) == 6


def test_scores_that_are_not_there() -> None:
    with pytest.raises(Theta0Error, match="the pool has no score 'sniip'; did you mean snip"):
        searched(scores=("sniip",))


@cache
def real(path: Path) -> Table:
    return tables.load(path)


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100", "imagenet16"])
@pytest.mark.parametrize("seconds", [1500.0, 3000.0])
def test_what_it_reaches_on_nasbench201(dataset: str, seconds: float, shared: Path) -> None:
    """docs/searchers.md says the same."""
    whole = real(shared / "nb201.parquet")
    pool = Candidates.of(shipped("nasbench201", dataset), space)
    result = run("hnas", TableObjective(whole, dataset, epochs=[12]), Budget(seconds=seconds), scores=pool)
    row = whole.row(result.chosen)
    reached = [round(float(whole.test(one, 200, row)), 2) for one in whole.datasets]
    # On ImageNet16-120 1,500 s are one training: nothing can be learned there.
    alone = (dataset, seconds) == ("imagenet16", 1500.0)
    assert reached == ([93.76, 71.11, 41.44] if alone else [94.36, 73.51, 46.34])


def test_what_can_be_reached_on_nasbench201(shared: Path) -> None:
    whole = real(shared / "nb201.parquet")
    tests = np.stack([whole.test(one, 200) for one in ("cifar10", "cifar100", "imagenet16")], axis=1)
    assert not (tests >= (94.36, 73.4, 46.4)).all(axis=1).any()
    assert (tests >= (94.30, 73.0, 46.3)).all(axis=1).sum() == 3
    assert whole.seconds("imagenet16", 12)[tests[:, 2] >= 46.3].min() > 1500 / 2
