from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from theta0.errors import Theta0Error
from theta0.papers import Given, eigen, known, reproduce
from theta0.spaces.mlp import Layers
from theta0.theory.finite import finite
from theta0.theory.mlp import infinite, unit


def test_the_parts_are_known() -> None:
    assert set(known()["eigen"]) == {
        "table 2",
        "table 2b",
        "table 2c",
        "table 5.2",
        "table F.5",
        "table F.6",
        "figure 1",
        "figure F.4",
    }


def test_figure_1_is_drawn(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    paths = eigen.draw_figure_1(generator.dirichlet(np.ones(5), (3, 9)), generator.random((3, 8)), tmp_path / "figure")
    assert [path.stat().st_size > 0 for path in paths] == [True, True]
    text = paths[0].read_text()
    assert all(name in text for name in ("relu", "swish", "(b) skip connections"))


def test_figure_f4_is_of_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two depths and small widths; the bounds that are proved enclose each eigenvalue."""
    monkeypatch.setattr(eigen, "DEPTHS", (3, 6))
    monkeypatch.setattr(eigen, "WIDTHS", (8, 16))
    found = {row.label: row.ours for row in reproduce("eigen", "figure F.4", Given(seeds=1, folder=tmp_path)).rows}
    for name in ("relu", "tanh, skips", "swish", "sigmoid"):
        for depth in (3, 6):
            least = found[f"{name}, L = {depth}: lambda_min"]
            assert found[f"{name}, L = {depth}: proved lower bound"] <= least
            assert least <= found[f"{name}, L = {depth}: mean of the diagonal"]
    assert found["relu, L = 6: mean of the diagonal"] == pytest.approx(6)
    assert (tmp_path / "eigen-figure-F.4.png").exists()


@pytest.mark.parametrize("parametrization", ["lemma", "ntk", "paper"])
def test_finite_networks_are_those_of_the_kernel(parametrization: str) -> None:
    x = unit(torch.randn(5, 12, generator=torch.Generator().manual_seed(0)))
    x = x * 12**0.5 if parametrization == "ntk" else x
    architecture = Layers(("relu", "tanh"), (True,))
    exact = infinite(architecture, x, parametrization=parametrization, sphere=False).ntk  # type: ignore[arg-type]
    grams = [
        finite(architecture, x, width=512, seed=seed, parametrization=parametrization)  # type: ignore[arg-type]
        for seed in range(8)
    ]
    assert float((torch.stack(grams).mean(dim=0) - exact).norm() / exact.norm()) < 0.08


def test_without_what_a_part_needs() -> None:
    with pytest.raises(Theta0Error, match="needs a table of NAS-Bench-101"):
        reproduce("eigen", "table F.5", Given())
    with pytest.raises(Theta0Error, match="a figure needs a place"):
        eigen._folder(Given())


@pytest.mark.slow
def test_tables_from_the_real_ones(shared: Path) -> None:
    given = Given(str(shared / "nb201.parquet"), str(shared / "nb101.parquet"), seeds=2)
    two = {row.label: row for row in reproduce("eigen", "table 2", given).rows}
    assert two["eigen k=20, C10"].ours == pytest.approx(93.4, abs=0.6)
    assert two["eigen k=20, whole space, C10"].spread == 0
    bound = {row.label: row.ours for row in reproduce("eigen", "table 5.2", given).rows}
    assert 0.3 < bound["eigen_bound and test accuracy, Spearman"] < 0.7
    assert reproduce("eigen", "table F.5", given).rows
    assert len(reproduce("eigen", "table F.6", given).rows) == 9


def test_rows_of_nasi(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigen, "_NASI", {"NASI": (4, (93.08, 69.51, 40.87))})
    given = Given(nasbench201=str(shared / "nb201.parquet"), images="digits", seeds=1)
    *accuracies, seconds = reproduce("eigen", "table 2c", given).rows
    assert [row.label for row in accuracies] == ["NASI, C10", "NASI, C100", "NASI, IN-16"]
    assert all(0 < row.ours < row.paper + 5 for row in accuracies if row.paper)
    assert seconds.ours > 0
