from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from theta0.errors import Theta0Error
from theta0.theory.duals import FUNCTIONS, dual, moments
from theta0.theory.hermite import hermite


def test_relu_in_closed_form() -> None:
    found = hermite("relu", 13).tolist()
    expected = [1 / math.sqrt(2 * math.pi), 0.5]
    for k in range(2, 13):
        odd = math.prod(range(k - 3, 0, -2))
        expected.append(0.0 if k % 2 else (-1) ** (k // 2 - 1) * odd / math.sqrt(2 * math.pi * math.factorial(k)))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "sigmoid", "tanh", "swish", "erf", "identity"])
def test_they_are_the_dual_at_variance_one(name: str) -> None:
    """sum_k mu_k^2 r^k = E[s(u) s(v)]; and Parseval."""
    found, one = hermite(name, 200), torch.ones(1, dtype=torch.float64)
    for r in (-0.7, 0.2, 0.8):
        series = float((found.square() * r ** torch.arange(200, dtype=torch.float64)).sum())
        assert series == pytest.approx(
            float(dual(name, torch.tensor([[r]], dtype=torch.float64), one, one).value), abs=1e-10
        )
    assert float(found.square().sum()) <= float(moments(name, one).square) + 1e-12


def test_what_cannot_be_computed() -> None:
    with pytest.raises(Theta0Error, match="1 to 200 coefficients"):
        hermite("relu", 0)
    bent = dataclasses.replace(FUNCTIONS["relu"], name="bent", function=lambda x: (x - 0.123).clamp(min=0))
    with pytest.raises(Theta0Error, match=r"bent are off by .*; it has a corner besides zero"):
        hermite(bent, 3)
