from __future__ import annotations

import numpy as np
import pytest
import torch

import theta0
from theta0.errors import Theta0Error
from theta0.spaces.mlp import MLPSpace
from theta0.theory.generalization import chain, gap
from theta0.theory.mlp import infinite, unit


def digits(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = theta0.load("digits").train.batch(samples, seed=0)
    return unit(x), y


def test_every_step_of_the_proof_on_digits() -> None:
    """Over architectures; the kernel is scaled so that lambda_min is in [0, 1], as the theorem asks."""
    x, y = digits(40)
    space, generator = MLPSpace(layers=4), np.random.default_rng(0)
    for _ in range(8):
        gram = infinite(space.sample(generator), x).ntk
        found = chain(gram / torch.linalg.eigvalsh(gram)[-1], (y < 5).double())
        assert found.assumed
        steps = found[:5]
        assert list(steps) == sorted(steps)


def test_the_last_step_needs_a_small_eigenvalue() -> None:
    x, y = digits(20)
    gram = infinite((("relu", "relu"), (False,)), x).ntk
    found = chain(100 * gram / torch.linalg.eigvalsh(gram)[0], (y < 5).double())
    assert not found.assumed
    assert found.by_kappa > found.printed


def test_signs_of_two_samples_by_hand() -> None:
    """E|e_1 phi_1 + e_2 phi_2| for kernel [[2, 1], [1, 2]]: sqrt(6) or sqrt(2), each half of the time."""
    gram, y = torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double(), torch.ones(2).double()
    found = chain(gram, y, draws=200_000)
    norm = (2 / 3) ** 0.5
    assert found.rademacher == pytest.approx(norm / 2 * (6**0.5 + 2**0.5) / 2, rel=5e-3)
    assert found.norm == pytest.approx(norm / 2 * 2)


def test_gap_of_a_kernel_that_interpolates() -> None:
    x, y = digits(60)
    kernel = infinite((("relu", "relu"), (False,)), x).ntk
    labels = torch.nn.functional.one_hot(y, 10).double()
    assert gap(kernel, kernel, labels, labels) < 1e-15
    other = gap(kernel[:40, :40], kernel[40:, :40], labels[:40], labels[40:])
    assert 0.05 < other < 0.5


def test_labels_beyond_one() -> None:
    with pytest.raises(Theta0Error, match="labels are 2 numbers from 0 to 1"):
        chain(torch.eye(2).double(), torch.tensor([0.0, 2.0]))
