from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.spaces.darts import DARTS
from theta0.spaces.mlp import MLPSpace
from theta0.spaces.nasbench201 import NASBench201
from theta0.theory.cells import CellKernel
from theta0.theory.mlp import infinite, unit
from theta0.theory.pools import NAMES, scores, spectrum


def images(count: int = 4, side: int = 4) -> Tensor:
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(0))


def test_cells() -> None:
    space = NASBench201()
    cells = [space.parse(space.notation), space.decode([3, 1, 2, 0, 4, 1]), space.decode([0] * 6)]
    table = scores(space, cells, images())
    gram = CellKernel(images()).of(cells[0]).ntk
    values = torch.linalg.eigvalsh(gram)
    assert table["trace:infinite"][0] == pytest.approx(float(gram.trace() / 4) ** 0.5)
    assert table["kappa:infinite"][0] == pytest.approx(float(values[-1] / values[0]))
    assert table["eigen_bound:infinite"][0] == pytest.approx(float(gram.trace() / 48))
    assert table.valid("kappa:infinite")[2] in ("dead", "singular")
    pool = Candidates.of(table, space)
    better = int(np.argmin(np.where(pool.ok("kappa:infinite"), pool.column("kappa:infinite"), np.inf)))
    assert pool.ranks("kappa:infinite")[better] == 1  # the direction is that of the metric of that name


def test_the_space_of_activations() -> None:
    space = MLPSpace(layers=3)
    table = scores(space, list(map(space.decode, [(0, 0, 0), (3, 4, 1)])), images(), parametrization="paper")
    gram = infinite(space.decode((3, 4, 1)), unit(images()), parametrization="paper").ntk
    assert table["lambda_min:infinite"][1] == pytest.approx(float(torch.linalg.eigvalsh(gram)[0]))
    assert len(table.names) == 2 * len(NAMES)
    assert scores(space, [], images()).values.shape == (0, 12)


def test_flags() -> None:
    eye = torch.eye(3, dtype=torch.float64)
    assert spectrum(eye, 5)["kappa"] == (1.0, "ok")
    assert spectrum(torch.ones(3, 3, dtype=torch.float64), 5)["kappa"] == (float("inf"), "singular")
    assert spectrum(0 * eye, 5)["lambda_min"] == (0.0, "dead")
    assert {said for _, said in spectrum(eye * float("nan"), 5).values()} == {"overflow"}


def test_another_space() -> None:
    with pytest.raises(Theta0Error, match="known for nasbench201 and mlp, not for darts"):
        scores(DARTS(), [], images())
