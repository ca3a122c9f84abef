from __future__ import annotations

import pytest
import torch

import theta0
from theta0.errors import Theta0Error
from theta0.spaces.mlp import ACTIVATIONS
from theta0.theory.mlp import infinite, unit
from theta0.theory.transfer import diagonal, transfer


def pool() -> torch.Tensor:
    """Twenty digits and twenty inputs of random lengths, on and in the unit ball."""
    x, _ = theta0.load("digits").train.batch(20, seed=0)
    generator = torch.Generator().manual_seed(0)
    other = unit(torch.randn(20, 64, generator=generator)) * torch.rand(20, 1, generator=generator, dtype=torch.float64)
    return torch.cat([unit(x), other])


@pytest.mark.parametrize("depth", [2, 4])
def test_proposition_2_for_every_activation(depth: int) -> None:
    x = pool()
    digits = torch.cat([torch.full((20,), 1 / 20), torch.zeros(20)]).double()
    digits /= digits.sum()
    for share in (0.1, 0.5, 1.0):
        other = (1 - share) * digits + share * digits.flip(0)
        for name in ACTIVATIONS:
            found = transfer((name,) * (depth - 1), x, (digits, other))
            assert 0 < found.difference <= found.bound * (1 + 1e-12)
    same = transfer(("relu",), x, (digits, digits))
    assert same.difference == same.bound == 0


def test_the_bound_by_hand() -> None:
    """Z = 2 and D = L for ReLU; (1 - g^(2 L)) / (1 - g^2) for Sigmoid, g = 1/4."""
    x = pool()
    weights = tuple(torch.eye(40, dtype=torch.float64)[:2])
    assert transfer(("relu", "relu"), x, weights).bound == pytest.approx(2 * 3 / 64)  # type: ignore[arg-type]
    expected = 2 / 64 * (1 - 0.25**6) / (1 - 0.25**2)
    assert transfer(("sigmoid", "sigmoid"), x, weights).bound == pytest.approx(expected, rel=1e-6)  # type: ignore[arg-type]


def test_diagonal_is_that_of_the_kernel() -> None:
    x = pool()
    whole = infinite((("tanh", "swish"), (False,)), x, parametrization="ntk", sphere=False).ntk
    torch.testing.assert_close(diagonal(("tanh", "swish"), x), whole.diagonal(), rtol=1e-9, atol=0)


def test_what_cannot_be_computed() -> None:
    x, even = pool(), torch.full((40,), 1 / 40, dtype=torch.float64)
    with pytest.raises(Theta0Error, match="at most of length 1 here; the longest has 2"):
        transfer(("relu",), 2 * x, (even, even))
    with pytest.raises(Theta0Error, match="a probability for each of 40 inputs, and they sum to one"):
        transfer(("relu",), x, (even, 2 * even))
    with pytest.raises(Theta0Error, match=r"\|s\(x\)\| <= \|x\|, which erf is not"):
        transfer(("erf",), x, (even, even))
