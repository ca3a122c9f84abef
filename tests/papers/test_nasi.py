from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from theta0 import papers
from theta0.errors import Theta0Error
from theta0.kernel import frozen
from theta0.papers import Given, reproduce
from theta0.papers import nasi as paper
from theta0.recipe import Recipe

TINY = replace(
    paper.SMALL,
    architectures=4,
    exact=8,
    shot={"channels": 5, "stacks": 2, "cells": 1},
    darts={"channels": 2, "layers": 3},
    nasbench201={"channels": 2, "cells": 1},
    batch=4,
    steps=2,
    images=40,
    recipe=Recipe(epochs=1, batch=20, learning_rate=0.05, augment=False),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Given:
    monkeypatch.setattr(paper, "SMALL", TINY)
    return Given(images="digits", seeds=2, folder=tmp_path)


def small() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 9, 4)
    ).double()  # fmt: skip
    return model, torch.randn(6, 1, 5, 5, dtype=torch.float64), torch.arange(6) % 4


def test_the_exact_trace_and_the_sum_by_one_gradient_after_the_other() -> None:
    model, x, y = small()

    def square(value: torch.Tensor) -> float:
        found = torch.autograd.grad(value, list(model.parameters()), retain_graph=True)
        return sum(float(g.square().sum()) for g in found)

    with frozen(model):
        logits = model(x)
        losses = torch.nn.functional.cross_entropy(logits, y, reduction="none")
        trace = sum(square(logit) for logit in logits.flatten())
        total = sum(square(loss) for loss in losses)
    assert paper.exact_trace(model, x) == pytest.approx(trace, rel=1e-9)
    assert paper.sum_of_squares(model, x, y) == pytest.approx(total, rel=1e-9)
    wanted = square(torch.nn.functional.cross_entropy(model.train()(x), y))
    assert paper.batch_norm_squared(model, x, y) == pytest.approx(wanted, rel=1e-9)


def test_known() -> None:
    found = papers.known()["nasi"]
    assert set(found) == {
        *(f"figure {i}" for i in (1, 2, 3, 4, 6)),
        *(f"table {i}" for i in (2, 3, 4, 6, 7, 8)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("what", "rows"),
    [
        ("figure 1", 6),
        ("table 7", 21),
        pytest.param("table 2", 16, marks=pytest.mark.slow),
        pytest.param("table 8", 15, marks=pytest.mark.slow),
        pytest.param("figure 4", 18, marks=pytest.mark.slow),
    ],
)
def test_reproductions_small(what: str, rows: int, tiny: Given) -> None:
    report = reproduce("nasi", what, tiny)
    assert len(report.rows) == rows
    assert all(row.ours == row.ours for row in report.rows)
    assert any("1 epochs" in note for note in report.notes) or what == "table 7"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["table 6", "figure 2", "figure 6"])
def test_reproductions_that_take_longer(what: str, tiny: Given) -> None:
    assert reproduce("nasi", what, tiny).rows


@pytest.mark.slow
def test_table_4(tiny: Given, shared: Path) -> None:
    tiny.nasbench201 = str(shared / "nb201.parquet")
    rows: dict[str, Any] = {row.label: row for row in reproduce("nasi", "table 4", tiny).rows}
    assert 80 < rows["hnas, cifar10"].ours < 95
    assert rows["nasi 4T, cifar10"].paper == 93.55


@pytest.mark.slow
@pytest.mark.parametrize("what", ["table 3", "figure 3"])
def test_with_nasbench101(what: str, tiny: Given, shared: Path) -> None:
    tiny.nasbench101 = str(shared / "nb101.parquet")
    assert reproduce("nasi", what, tiny).rows


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(Theta0Error, match=r"give the paper's CIFAR-10, or other images \(--images\)"):
        reproduce("nasi", "table 7", Given(seeds=1))
    with pytest.raises(Theta0Error, match="this part needs a table of NAS-Bench-101: --nasbench101 FILE"):
        reproduce("nasi", "table 3", Given(images="digits", seeds=1))
    with pytest.raises(Theta0Error, match="a figure needs a place: --out FOLDER"):
        reproduce("nasi", "figure 1", Given(images="digits", seeds=1))
