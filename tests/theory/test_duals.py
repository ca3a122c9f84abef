from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy import integrate
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.theory import duals
from theta0.theory.duals import FUNCTIONS, coefficients, dual, line, moments

NAMES = ["relu", "leaky_relu", "sigmoid", "tanh", "swish", "erf", "identity"]


def covariances(size: int, q: Tensor, seed: int = 0) -> Tensor:
    x = torch.randn(size, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x = x / x.norm(dim=1, keepdim=True) * q.sqrt()[:, None]
    return x @ x.T


def by_quadrature(name: str, q1: float, q2: float, c: float, derivative: bool) -> float:
    """The plain double integral, u by v given u."""
    s = FUNCTIONS[name]
    f = s.derivative if derivative else s.function
    rest = math.sqrt(max(q2 - c * c / q1, 0))
    z = np.linspace(-9, 9, 1801)
    w = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    u = torch.from_numpy(math.sqrt(q1) * z)
    v = c / q1 * u[:, None] + rest * torch.from_numpy(z)
    return float((torch.from_numpy(w) * f(u)) @ (f(v) @ torch.from_numpy(w)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("equal", [True, False])
def test_against_the_double_integral(name: str, equal: bool) -> None:
    q = torch.tensor([0.7, 0.7, 0.7] if equal else [0.3, 1.0, 4.0], dtype=torch.float64)
    c = covariances(3, q)
    found = dual(name, c, q, q)
    smooth = FUNCTIONS[name].kind not in ("rectifier",)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for derivative, value in ((False, found.value), (True, found.slope)):
            expected = by_quadrature(name, float(q[i]), float(q[j]), float(c[i, j]), derivative)
            # A grid is slow at a corner, and slower at a jump.
            tolerance = 1e-11 if smooth else (5e-3 if derivative else 1e-5)
            assert float(value[i, j]) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("q", [1e-4, 1.0, 50.0])
def test_moments_against_scipy(name: str, q: float) -> None:
    s = FUNCTIONS[name]
    found = moments(name, torch.tensor([q], dtype=torch.float64))
    for value, f in zip(found, (s.function, lambda x: s.function(x) ** 2, lambda x: s.derivative(x) ** 2), strict=True):

        def density(z: float, f=f) -> float:  # type: ignore[no-untyped-def]
            x = torch.tensor(math.sqrt(q) * z, dtype=torch.float64)
            return float(f(x)) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        expected = sum(integrate.quad(density, *part, epsabs=1e-13, limit=200)[0] for part in ((-12, 0), (0, 12)))
        assert float(value[0]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("q", [0.3, 1.0, 20.0, 1e3])
@pytest.mark.parametrize("equal", [True, False])
def test_the_series_of_a_closed_form_and_its_bound(q: float, equal: bool) -> None:
    """erf by Mehler's series; the error that is said bounds the one that is there."""
    variances = torch.full((40,), q, dtype=torch.float64)
    if not equal:
        variances = variances * torch.linspace(0.1, 1, 40, dtype=torch.float64)
    c = covariances(40, variances)
    exact = dual("erf", c, variances, variances)
    series = dual(dataclasses.replace(FUNCTIONS["erf"], kind="analytic"), c, variances, variances)
    other = ~torch.eye(40, dtype=torch.bool)
    diagonal = moments("erf", variances)
    assert series.error < 1e-7
    for one, two, scale in (
        (exact.value, series.value, diagonal.square),
        (exact.slope, series.slope, diagonal.slope),
    ):
        error = ((one - two).abs() / torch.sqrt(scale[:, None] * scale))[other].max()
        assert float(error) <= series.error + 1e-12


def test_hermite_coefficients_are_orthonormal_and_complete() -> None:
    q = torch.tensor([0.5, 2.0], dtype=torch.float64)
    for name in ("sigmoid", "tanh", "swish"):
        values, slopes, error = coefficients(name, q, 128)
        found = moments(name, q)
        torch.testing.assert_close(values.square().sum(dim=1), found.square, rtol=1e-9, atol=0)
        torch.testing.assert_close(slopes.square().sum(dim=1), found.slope, rtol=1e-6, atol=0)
        # Stein: sqrt(q) b_k = sqrt(k + 1) a_{k + 1}.
        k = torch.arange(127, dtype=torch.float64)
        torch.testing.assert_close(
            slopes[:, :-1] * q.sqrt()[:, None], (k + 1).sqrt() * values[:, 1:], rtol=1e-9, atol=1e-12
        )
        assert error < 1e-14


@pytest.mark.parametrize("name", NAMES)
def test_pieces_make_no_difference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q = torch.linspace(0.5, 2, 30, dtype=torch.float64)
    c = covariances(30, q)
    whole = dual(name, c, q, q)
    monkeypatch.setattr(duals, "_CHUNK", 64)
    pieces = dual(name, c, q, q)
    assert torch.equal(pieces.value, whole.value)
    assert torch.equal(pieces.slope, whole.slope)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str) -> None:
    q = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
    c = covariances(3, q)[:, :2].clone()
    c[0, 0] = c[1, 1] = 0.1

    def both(c: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        found = dual(name, c, first, second)
        return found.value, found.slope + 0 * c

    arguments = (c.requires_grad_(), q.clone().requires_grad_(), q[:2].clone().requires_grad_())
    assert torch.autograd.gradcheck(both, arguments)


@pytest.mark.parametrize("name", NAMES)
def test_an_input_of_zero(name: str) -> None:
    q = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = dual(name, torch.diag(q), q, q)
    assert float(found.value[0, 1]) == pytest.approx(0, abs=1e-15)
    assert torch.isfinite(found.value).all()
    assert torch.isfinite(found.slope).all()
    assert found.error < 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: dual("gelu", torch.eye(2).double(), q, q), "no dual activation is known for 'gelu'"),
        (lambda q: dual("relu", torch.eye(2), q, q), "float64; found torch.float32"),
        (lambda q: moments("tanh", q * math.inf), "the kernel's variances are not finite"),
        (
            lambda q: moments("tanh", q * 1e12),
            r"variances reach .*, where a series needs too fine a grid",
        ),
        (lambda q: coefficients("relu", q, 4), "relu has a corner"),
        (lambda q: coefficients("tanh", q, 1), "two terms or more, not 1"),
    ],
)
def test_what_cannot_be_computed(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Theta0Error, match=message):
        call(torch.ones(2, dtype=torch.float64))


def test_a_line() -> None:
    q = torch.ones(3, dtype=torch.float64)
    c = covariances(3, q)
    found = dual(line(0.25), c, q, q)
    torch.testing.assert_close(found.value, c / 16)
    assert float(found.slope[0, 0]) == 1 / 16
