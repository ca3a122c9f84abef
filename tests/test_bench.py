from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.searchers.small import scores, table
from theta0.bench import Bench, bench
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.objective import TableObjective
from theta0.searchers import Budget
from theta0.searching import incumbent, run
from theta0.spaces.nasbench201 import NASBench201

POOL = Candidates.of(scores(), NASBench201())


SIX, ALONE = Budget(6), TableObjective(table(), "cifar10", epochs=[12])


def compared(names: list[str] | None = None, budget: Budget = SIX, seeds: int = 3, **more: Any) -> Bench:
    more.setdefault("epochs", [12])
    return bench(table(), "cifar10", names or ["hnas", "evolution"], budget, seeds=seeds, scores=POOL, **more)


def test_each_run_is_that_of_the_searcher_alone() -> None:
    found = compared()
    assert found.names == ["hnas", "evolution", "random"]
    for one in found.runs:
        alone = run(one.searcher, ALONE, SIX, seed=one.seed, scores=POOL)
        assert table().row(alone.chosen) == one.row
        assert (alone.seconds, len(alone.trials)) == (one.seconds, one.evaluations)


def test_accuracies_are_those_of_the_longest_training() -> None:
    found = compared()
    for dataset in ("cifar10", "cifar100"):
        expected = [float(table().test(dataset, 200, one.row)) for one in found.of("evolution")]
        np.testing.assert_allclose(found.accuracies("evolution", dataset), expected)
        assert found.optimum(dataset) == table().test(dataset, 200).max()
    line = found.rows()[1]
    assert line["cifar100 mean"] == pytest.approx(np.mean(expected))
    assert line["cifar100 deviation"] == pytest.approx(np.std(expected))
    assert found.rows()[-1]["searcher"] == "optimum"


def test_a_table_without_test_accuracies_is_read_by_validation() -> None:
    found = bench(table().search_view(), "cifar10", ["random"], Budget(3), seeds=2, epochs=[12])
    assert found.measure == "validation accuracy after 200 epochs"
    expected = [float(table().validation("cifar10", 200, one.row)) for one in found.runs]
    np.testing.assert_allclose(found.accuracies("random", "cifar10"), expected)


def test_the_curve_is_the_incumbent_at_each_cost() -> None:
    found = compared(budget=Budget(8))
    grid = np.linspace(0, max(one.seconds for one in found.runs), 17)
    mean, deviation = found.curve("random", grid)
    results = [run("random", ALONE, Budget(8), seed=seed, scores=POOL) for seed in range(3)]
    for place, cost in enumerate(grid):
        best = [incumbent([trial for trial in one.trials if trial.spent <= cost]) for one in results]
        if any(one is None for one in best):
            assert np.isnan(mean[place])
            continue
        expected = [float(table().test("cifar10", 200, table().row(one))) for one in best]
        assert mean[place] == pytest.approx(np.mean(expected))
        assert deviation[place] == pytest.approx(np.std(expected))


def test_the_curve_of_a_searcher_with_a_choice_of_its_own() -> None:
    """At each cost it is at what a search would choose that ended there, though that is not the best accuracy."""
    settings = {"gain": 50.0}
    (one, *_) = compared(["hnas"], Budget(9), settings={"hnas": settings}).runs
    chosen, best = [], []
    for count in range(1, 10):
        alone = run("hnas", ALONE, Budget(count), scores=POOL, settings=settings)
        chosen.append(table().row(alone.chosen))
        best.append(table().row(incumbent(alone.trials)))
        assert [row for cost, row in one.steps if cost <= alone.seconds][-1] == chosen[-1]
    assert chosen != best


def test_limits_hold_for_the_optimum_too() -> None:
    most = float(np.quantile(table().parameters(), 0.2))
    found = compared(limits={"parameters": most})
    rows = table().within({"parameters": most})
    assert {one.row for one in found.runs} <= set(np.arange(len(table()))[rows].tolist())
    assert found.optimum("cifar10") == table().test("cifar10", 200)[rows].max()


def test_what_draws_nothing_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0 import bench as module

    asked: list[tuple[str, int]] = []

    def counted(name: str, *arguments: Any, seed: int, **more: Any) -> Any:
        asked.append((name, seed))
        return run(name, *arguments, seed=seed, **more)

    monkeypatch.setattr(module, "run", counted)
    found = compared(["hnas", "zerocost"])
    assert sorted(asked) == [("hnas", 0), ("random", 0), ("random", 1), ("random", 2), ("zerocost", 0)]
    assert [one.seed for one in found.of("hnas")] == [0, 1, 2]


def test_processes_change_nothing() -> None:
    alone, shared = compared(seeds=2), compared(seeds=2, processes=2)
    for one, other in zip(alone.runs, shared.runs, strict=True):
        assert (one.searcher, one.seed, one.row, one.steps) == (other.searcher, other.seed, other.row, other.steps)


def test_files(tmp_path: Path) -> None:
    found = compared(["hnas", "zerocost"])
    paths = found.save(tmp_path / "new")
    assert [path.name for path in paths] == ["bench.csv", "bench.svg", "bench.png"]
    with paths[0].open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 9
    assert rows[0]["architecture"] == table().cells[found.runs[0].row]
    assert float(rows[0]["cifar10"]) == pytest.approx(float(table().test("cifar10", 200, found.runs[0].row)), abs=1e-4)
    picture = paths[1].read_text()
    for word in ("hnas", "random", "optimum", "cost of training (s)", "test accuracy after 200 epochs"):
        assert word in picture
    value = float(found.accuracies("zerocost", "cifar10").mean())
    assert f"zerocost, untrained: {value:.2f}" in picture


def test_the_text_has_a_line_for_each_and_the_optimum() -> None:
    text = compared().text()
    assert [line.split()[0] for line in text.splitlines()[1:-1]] == ["hnas", "evolution", "random", "optimum"]
    assert "test accuracy after 200 epochs" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": 0}, "at least one seed and one process, not 0 and 1"),
        ({"processes": 0}, "not 3 and 0"),
        ({"names": ["hnass"]}, "no searcher is called 'hnass'; did you mean hnas"),
        ({"settings": {"robot": {}}}, "settings for 'robot', which is not compared"),
        ({"settings": {"hnas": {"gian": 1.0}}}, "the searcher hnas has no option 'gian'; did you mean gain"),
        ({"epochs": [13]}, "no budget of 13 epochs"),
        ({"limits": {"parameters": 1.0}}, "no row of small has parameters of at most 1"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        compared(**change)
