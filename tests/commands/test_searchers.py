from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.searchers.small import scores, table
from theta0.cli import main
from theta0.searchers import searchers
from theta0.tables.file import save

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A table and the scores of its space, as options."""
    folder = tmp_path_factory.mktemp("given")
    save(table(), folder / "table.npz")
    scores().save(folder / "scores.npz")
    return ["--table", str(folder / "table.npz"), "--scores", str(folder / "scores.npz"), "--seeds", "2"]


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_searchers(capsys: Output) -> None:
    assert main(["searchers"]) == 0
    out = capsys.readouterr().out
    for name in searchers.names():
        assert f"\n{name}  " in f"\n{out}"
    assert "    population = 10" in out


def test_bench(given: list[str], capsys: Output, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    arguments = ["--searchers", "hnas,evolution", "--evaluations", "5", "--epochs", "12", "--out", str(folder)]
    arguments += ["--options", "hnas.scores=snip+flops,evolution.population=3,evolution.tournament=2"]
    assert main(["bench", "nasbench201", *given, *arguments]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["hnas", "evolution", "random", "optimum"]
    assert "6 of 6 searches" in err
    assert {path.name for path in folder.iterdir()} == {"bench.csv", "bench.svg", "bench.png"}
    assert len(lines(folder / "bench.csv")) == 6


def test_twenty_evaluations_are_the_default(given: list[str], capsys: Output, tmp_path: Path) -> None:
    assert main(["bench", "nasbench201", *given, "--searchers", "random", "--out", str(tmp_path)]) == 0
    assert [line["evaluations"] for line in lines(tmp_path / "bench.csv")] == ["20", "20"]


def test_scores_are_those_of_the_data_set(given: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0 import pool

    asked: list[tuple[str, str]] = []

    def shipped(space: str, data: str) -> object:
        asked.append((space, data))
        return scores()

    monkeypatch.setattr(pool, "shipped", shipped)
    without = [part for part in given if "scores" not in part]
    assert main(["bench", "nasbench201", *without, "--data", "cifar100", "--evaluations", "2"]) == 0
    assert asked == [("nasbench201", "cifar100")]


def test_a_space_without_scores_is_searched_without_a_pool(
    given: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    from theta0 import pool

    monkeypatch.setattr(pool, "is_shipped", lambda space, data: False)
    without = ["bench", "nasbench201", *(part for part in given if "scores" not in part), "--evaluations", "2"]
    assert main([*without, "--searchers", "evolution"]) == 0
    assert "no scores of nasbench201 on cifar10 come with theta0: searchers that" in capsys.readouterr().err
    assert main([*without, "--searchers", "hnas"]) == 2
    assert "this searcher chooses from a scored pool" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--evaluations", "0"], "a budget must be more than zero; evaluations is 0"),
        (["--seconds", "-1"], "a budget must be more than zero; seconds is -1.0"),
        (["--seconds", "1"], "0 of 1 seconds are spent, and a training of 3 epochs takes"),
        (["--seeds", "0"], "at least one seed"),
        (["--limits", "parameters=1"], "no row of small has parameters of at most 1"),
        (["--limits", "parameters"], "--limits are cost=number, not 'parameters'"),
        (["--limits", "latency=3"], "has no 'latency' on cifar10; known: parameters"),
        (["--options", "evolution.population=3"], "of the searchers asked for, not 'evolution.population=3'"),
        (["--options", "hnas.gian=1"], "not 'gian=1'; did you mean gain"),
        (["--epochs", "twelve"], "--epochs are numbers with commas between, not 'twelve'"),
        (["--data", "cifar1"], "has no data set 'cifar1'; did you mean"),
        (["--searchers", "hnass"], "no searcher is called 'hnass'"),
        (["--scores", "none"], "chooses from a scored pool"),
        (["--table", "nothere.npz"], "nothere.npz: expected a table, found nothing there"),
    ],
)
def test_what_is_wrong_is_one_line(given: list[str], arguments: list[str], words: str, capsys: Output) -> None:
    assert main(["bench", "nasbench201", *given, *arguments]) == 2
    out, err = capsys.readouterr()
    last = err.replace("\r", "\n").strip().splitlines()[-1]
    assert words in last
    assert last.startswith("theta0: error: ")
    assert not out


def test_scores_of_another_space(given: list[str], capsys: Output) -> None:
    from theta0 import pool

    other = Path(pool.__file__).parent / "scores" / "nasbench101-cifar10.npz"
    assert main(["bench", "nasbench201", *given, "--scores", str(other)]) == 2
    assert "these scores are of nasbench101, and the search is in nasbench201" in capsys.readouterr().err
