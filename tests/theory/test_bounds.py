from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.spaces.mlp import ACTIVATIONS, Layers
from theta0.theory.bounds import constants, proved, smallest, theorem_1, theorem_2, theorem_3
from theta0.theory.mlp import infinite, unit


def inputs(samples: int, size: int, seed: int = 0) -> Tensor:
    return unit(torch.randn(samples, size, generator=torch.Generator().manual_seed(seed)))


def test_table_1() -> None:
    """Its entries for ReLU, LeakyReLU, Sigmoid and Tanh; Swish's 1.22 is an upper bound of 1.017, the supremum."""
    eta = 1 + 0.01**2
    for name, beta in (("relu", 1.0), ("leaky_relu", eta), ("sigmoid", 1 / 8), ("tanh", 2.0)):
        found = constants(name)
        assert found.beta_1 == pytest.approx(beta, rel=1e-6)
        assert found.beta_2 == pytest.approx(beta, rel=1e-6)
    assert (constants("relu").beta_3, constants("leaky_relu").beta_3) == pytest.approx((1, eta))
    swish = constants("swish")
    assert (swish.beta_1, swish.beta_3) == pytest.approx((1, 1 / 2), rel=1e-6)
    assert swish.beta_2 == pytest.approx(1.0168, abs=1e-4)
    assert swish.beta_2 < 1.22
    # f_S and f_T at t = 3 (1 + eta^2) (2 + eta^2)^(L - 3), by a plain sum.
    for layers, name in itertools.product((3, 5), ("sigmoid", "tanh")):
        t = 3 * eta * (1 + eta) ** (layers - 3)
        x = torch.linspace(-12, 12, 48_001, dtype=torch.float64) * math.sqrt(t)
        slope = torch.sigmoid(x) * torch.sigmoid(-x) if name == "sigmoid" else 1 - torch.tanh(x) ** 2
        value = float((2 / math.sqrt(2 * math.pi * t) * torch.exp(-(x**2) / (2 * t)) * slope**2).sum() * (x[1] - x[0]))
        assert constants(name, layers).beta_3 == pytest.approx(value, rel=1e-6)
    lipschitz = {name: constants(name).lipschitz for name in ACTIVATIONS}
    assert lipschitz == pytest.approx(
        {"relu": 1, "leaky_relu": 1, "sigmoid": 1 / 4, "tanh": 1, "swish": 1.09984}, abs=1e-5
    )


def test_theorem_1_by_hand() -> None:
    """L = 4, skip into layer 3 alone: sums and products written out."""
    found = theorem_1((("relu", "tanh", "swish"), (False, True)), 300, 4)
    b3 = constants("tanh", 4).beta_3
    assert found.lower == pytest.approx(2 * 0.25 * 75 * (b3 + 0) * (0.5 + 1))
    swish = constants("swish").beta_2
    first = 1 * 1 * (2 + 0) * (swish + 1)  # l = 1: beta_2 of layers 1 to 3
    second = 1 * 1 * 2 * (swish + 1)
    third = 2 * 1 * (swish + 1)
    fourth = 1 * (1 * (2 + 0)) * 1
    assert found.upper == pytest.approx(75 * (first + second + third + fourth), rel=1e-6)
    assert found.assumed
    assert not theorem_1((("relu", "relu"), (False,)), 80, 3).assumed
    other = theorem_2((("relu", "tanh", "swish"), (False, True)), 300, 4)
    assert other.lower == pytest.approx(75 * b3 * (0.5 + 1))
    assert other.upper == pytest.approx(75 * (2 * (swish + 1) + (swish + 1) + 1 + 1), rel=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_theorems_1_and_2_cannot_hold_as_printed(dimension: int) -> None:
    """With the d^4 samples that they ask for the lower bound is above the mean of the diagonal, L for ReLU."""
    samples = max(dimension**4, 16 * dimension)
    architecture = Layers(("relu", "relu"), (False,))
    gram = infinite(architecture, inputs(samples, dimension)).ntk
    assert torch.allclose(gram.diagonal(), torch.tensor(3.0).double())
    assert float(torch.linalg.eigvalsh(gram)[0]) <= 3
    for theorem in (theorem_1, theorem_2):
        printed = theorem(architecture, 64 * samples, dimension)
        assert printed.assumed
        assert printed.lower > 3  # and the diagonal does not know how many samples there are


def test_the_trace_bounds_of_section_5_are_for_n_beyond_d_and_below_its_square() -> None:
    """lambda_min <= tr / d <= the Frobenius norm: the first asks for N >= d, the second for N <= d^2."""
    few, many = torch.eye(8), torch.eye(100)
    assert float(torch.linalg.eigvalsh(few)[0]) > float(few.trace()) / 16
    assert float(many.trace()) / 8 > float(many.norm())


@pytest.mark.parametrize("depth", [3, 5])
def test_proved_bounds_enclose(depth: int) -> None:
    """Over activations and skips, few and many samples: the lower bound, lambda_min, the trace, the closed form."""
    for seed, (samples, dimension) in enumerate(((6, 12), (20, 8))):
        x = inputs(samples, dimension, seed)
        for first, other in itertools.product(ACTIVATIONS, repeat=2):
            for skip in (False, True):
                architecture = Layers((first, *(other, first) * 2)[: depth - 1], ((skip, not skip) * 2)[: depth - 2])
                gram = infinite(architecture, x).ntk
                bound = proved(architecture, x)
                assert 0 < bound.lower <= smallest(gram) <= bound.trace * (1 + 1e-9)
                assert bound.trace == pytest.approx(float(gram.trace()) / samples, rel=1e-9)
                assert bound.trace <= bound.upper * (1 + 1e-9)


def test_the_first_layers_coefficient_decides_for_few_samples() -> None:
    """In the order of mu_1: Tanh, LeakyReLU, then ReLU and Swish, Sigmoid; what the paper says of the first layer."""
    x = inputs(5, 40)
    lower = {name: proved(Layers((name, "relu"), (False,)), x).lower for name in ACTIVATIONS}
    assert lower["tanh"] > lower["relu"] > lower["sigmoid"]


def test_theorem_3() -> None:
    x, architecture = inputs(30, 10), Layers(("relu", "relu"), (False,))
    gram = infinite(architecture, x).ntk
    y = torch.where(x[:, 0] > 0, 1.0, -1.0).double()
    expected = math.sqrt(3) * 4**2 / math.sqrt(smallest(gram)) + math.sqrt(math.log(10) / 30)
    assert theorem_3(gram, y, architecture) == pytest.approx(expected)
    assert expected > 1  # an error is never more: as a number it says nothing here


def test_what_cannot_be_bounded() -> None:
    x, architecture = inputs(6, 10), Layers(("relu", "relu"), (False,))
    gram, y = infinite(architecture, x).ntk, torch.ones(6).double()
    twice = torch.cat([x, x[:1]])
    for call, message in (
        (lambda: proved(architecture, 3 * x), "needs inputs on the unit sphere"),
        (lambda: smallest(infinite(architecture, twice).ntk), "not positive definite within rounding"),
        (lambda: smallest(gram[:3]), r"a square matrix of finite numbers; found \(3, 6\)"),
        (lambda: smallest(gram * math.nan), "a square matrix of finite numbers"),
        (lambda: smallest(gram + torch.triu(gram)), "a kernel is symmetric"),
        (lambda: theorem_1((("relu",), ()), 10, 2), "begin at 3 layers; found 2"),
        (lambda: theorem_1((("relu", "gelu"), (True,)), 10, 2), "no dual activation is known for 'gelu'"),
        (lambda: theorem_2(architecture, 1, 2), "two samples or more"),
        (lambda: theorem_3(gram, y, architecture, delta=0.5), "at most 1 / e, not 0.5"),
        (lambda: theorem_3(gram, 2 * y, architecture), r"labels are -1 and 1; found \[2.0\]"),
    ):
        with pytest.raises(Theta0Error, match=message):
            call()


def test_a_duplicate_is_flagged_by_the_bound() -> None:
    x = inputs(5, 8)
    assert proved(Layers(("relu", "relu"), (False,)), torch.cat([x, x[:1]])).lower == pytest.approx(0, abs=1e-10)
