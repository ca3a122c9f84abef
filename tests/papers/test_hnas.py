"""Every table and figure of HNAS on a few cells, and published numbers on all of them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from theta0.bench import Bench, bench
from theta0.cli import main
from theta0.errors import Theta0Error
from theta0.papers import Given, Report, Row, known, reproduce
from theta0.papers import hnas as paper
from theta0.papers.bounds import spearman
from theta0.pool import PoolScores, is_shipped, shipped
from theta0.searchers import Budget
from theta0.tables.table import Table

ASKED = [*(f"table {n}" for n in (1, 2, 4, 5, 6, 9, 10, 11, 12, 13)), *(f"figure {n}" for n in (2, 3, 4, 7.5))]
FEW = 400


@pytest.fixture(scope="module")
def given(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Given:
    figures = tmp_path_factory.mktemp("figures")
    return Given(str(shared / "nb201.parquet"), str(shared / "nb101.parquet"), seeds=1, folder=figures)


def few(space: str, data: str) -> PoolScores:
    """The first cells of the smallest score file of a space, so that all files have them in common."""
    small = shipped(space, f"{data}-batch4" if is_shipped(space, f"{data}-batch4") else data)
    wanted = list(dict.fromkeys(small.architectures))[:FEW]
    whole = shipped(space, data)
    places = {text: place for place, text in enumerate(whole.architectures)}
    if not set(wanted) <= set(places):
        wanted = whole.architectures[:FEW]
    rows = np.array([places[text] for text in wanted])
    return replace(whole, architectures=wanted, values=whole.values[rows], validity=whole.validity[rows])


def test_all_that_was_asked_for_is_there() -> None:
    assert set(ASKED) <= set(known()["hnas"])


@pytest.mark.parametrize("what", ASKED)
def test_it_is_made(what: str, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(table: Table, dataset: str, names: list[str], budget: Budget, **more: Any) -> Bench:
        return bench(table, dataset, names, Budget(3), **more)

    monkeypatch.setattr(paper, "shipped", few)
    monkeypatch.setattr(paper, "bench", short)
    report = reproduce("hnas", what, given)
    assert report.rows or "Left out" in report.notes[-1]
    assert all(np.isfinite(row.ours) for row in report.rows)
    assert len({row.label for row in report.rows}) == len(report.rows)
    if what.startswith("figure"):
        assert {path.suffix for path in report.figures} == {".svg", ".png"}
        assert all(path.stat().st_size > 3000 for path in report.figures)
    else:
        assert any(row.paper is not None for row in report.rows) or not report.rows


def test_published_correlations(given: Given) -> None:
    """Where the form of a score is known to be the paper's, Table 6's numbers come out on all cells."""
    pool = paper._Pool(given)
    errors = pool.errors("cifar10")
    for score, number in {"grad": 0.637, "snip": 0.639, "grasp": 0.566, "trace": 0.538}.items():
        assert spearman(paper.Metric(pool.candidates, score).realizable(), errors) == pytest.approx(number, abs=0.03)
    for row in reproduce("hnas", "figure 2", given).rows:
        assert row.difference is not None
        assert abs(row.difference) < 0.06


def test_a_part_that_needs_another_table(given: Given) -> None:
    with pytest.raises(Theta0Error, match="needs a table of NAS-Bench-101: --nasbench101 FILE"):
        paper._Pool(replace(given, nasbench101=None), space="nasbench101")


def test_settings_without_scores_are_named(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "shipped", few)
    monkeypatch.setattr(paper, "is_shipped", lambda space, data: data in ("cifar10", "cifar10-batch8"))
    report = reproduce("hnas", "table 10", given)
    assert {row.label.split(" for ")[0] for row in report.rows} == {"batch 8", "batch 64"}
    assert "Left out, as their scores do not come with theta0: batch16, batch32, batch4;" in report.notes[-1]


def test_a_report_as_text_and_files(tmp_path: Path) -> None:
    report = Report("A table", [Row("x", 0.5, 0.25), Row("y", None, 94.1, 0.3)], ["a note"])
    assert "| x | 0.500 | 0.250 | -0.250 |" in report.text()
    assert "| y |  | 94.10 ± 0.30 |  |" in report.text()
    assert report.text().endswith("a note")
    report.save(tmp_path / "a.md")
    report.save(tmp_path / "a.csv")
    assert (tmp_path / "a.md").read_text() == report.text() + "\n"
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["what"], row["paper"], row["difference"]) for row in rows] == [("x", "0.5", "-0.25"), ("y", "", "")]


def test_the_command(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert "    table 6" in capsys.readouterr().out
    out = tmp_path / "new"
    assert main(["reproduce", "hnas", "--figure", "2", "--out", str(out)]) == 0
    assert "trace against other scores" in capsys.readouterr().out
    assert {path.suffix for path in out.iterdir()} == {".md", ".csv", ".svg", ".png"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hnass"], "no paper is called 'hnass'; did you mean hnas"),
        (["hnas", "--table", "99"], "of hnas there is no 'table 99'"),
        (["hnas", "--figure", "2"], "figures need a place: --out FOLDER"),
        (["hnas", "--table", "1", "--seeds", "0"], "at least one seed and one process are needed, not 0 and 1"),
        (["hnas", "--table", "1", "--nasbench201", "nothere.npz"], "nothere.npz: expected a table"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.startswith("theta0: error: ")
    assert err.count("\n") == 1
    assert not out
