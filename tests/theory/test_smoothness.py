from __future__ import annotations

import pytest
import torch
from torch import Tensor

import theta0
from theta0.errors import Theta0Error
from theta0.theory.mlp import unit
from theta0.theory.smoothness import Cells


def cells(n: int = 3, size: int = 5, scale: float = 1.0, plane: bool = False, samples: int = 30) -> Cells:
    g = torch.Generator().manual_seed(n)
    weights = [scale * torch.randn(size, size, generator=g, dtype=torch.float64) / size**0.5 for _ in range(n)]
    x = torch.randn(samples, size, generator=g, dtype=torch.float64)
    if plane:
        return Cells(weights, x, torch.randn(samples, n * size, generator=g, dtype=torch.float64))
    readout = torch.randn(4, n * size, generator=g, dtype=torch.float64)
    return Cells(weights, x, readout, torch.randn(samples, 4, generator=g, dtype=torch.float64))


def objective(c: Cells, kind: str, weights: list[Tensor]) -> Tensor:
    """The loss of each sample, straight from the definition of the cells."""
    nodes, y = [], c.x
    for w in weights:
        y = (c.x if kind == "wide" else y) @ w.T
        nodes.append(y)
    z = torch.cat(nodes, dim=1)
    readout = torch.cat(c.parts, dim=1)
    if c.y is None:
        return (z * readout).sum(dim=1)
    return (z @ readout.T - c.y).square().sum(dim=1) / 2


@pytest.mark.parametrize("kind", ["wide", "narrow"])
@pytest.mark.parametrize("plane", [False, True])
def test_gradients_against_autograd(kind: str, plane: bool) -> None:
    c = cells(plane=plane)
    weights = [w.clone().requires_grad_() for w in c.weights]
    found = c.gradients(kind)  # type: ignore[arg-type]
    for i, loss in enumerate(objective(c, kind, weights)[:4]):
        for block, gradient in zip(found, torch.autograd.grad(loss, weights, retain_graph=True), strict=True):
            torch.testing.assert_close(block[i], gradient)


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_constants_against_the_hessian(kind: str) -> None:
    c = cells(size=3)
    for block in range(3):

        def loss(w: Tensor, block: int = block) -> Tensor:
            changed = [*c.weights[:block], w, *c.weights[block + 1 :]]
            return objective(c, kind, changed).mean()

        hessian = torch.autograd.functional.hessian(loss, c.weights[block]).reshape(9, 9)
        assert c.lipschitz(kind)[block] == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_what_is_proved_holds_on_digits(scale: float) -> None:
    x, y = theta0.load("digits").train.batch(100, seed=0)
    for n in (2, 4):
        g = torch.Generator().manual_seed(n)
        weights = [scale * torch.randn(64, 64, generator=g, dtype=torch.float64) / 8 for _ in range(n)]
        readout = torch.randn(10, n * 64, generator=g, dtype=torch.float64) / 8
        c = Cells(weights, unit(x), readout, torch.nn.functional.one_hot(y, 10).double())
        for own, bound in zip(c.lipschitz("narrow"), c.proved(), strict=True):
            assert own <= bound * (1 + 1e-9)


def test_theorem_4_4_where_its_proof_holds() -> None:
    """For a plane the gradient of the output is the same in both cells."""
    for n, scale in ((2, 0.5), (3, 1.0), (5, 2.0)):
        c = cells(n, scale=scale, plane=True)
        for own, bound in zip(c.variance("narrow"), c.printed_variance(), strict=True):
            assert own <= bound * (1 + 1e-9)


def test_theorem_4_3_cannot_hold_as_printed() -> None:
    """One sample, f = |z|^2 / 2, two nodes: the narrow cell's first block has (1 + lambda_2^2) |x|^2."""
    x = torch.tensor([[1.0, 0.0]]).double()
    weights = [torch.eye(2).double(), 3 * torch.eye(2).double()]
    c = Cells(weights, x, torch.eye(4).double(), torch.zeros(1, 4).double())
    assert c.lipschitz("wide") == pytest.approx([1, 1])
    assert c.lipschitz("narrow") == pytest.approx([1 + 9, 1])
    assert c.printed_lipschitz() == pytest.approx([1, 1])
    assert c.proved()[0] >= 10


def test_theorem_4_4_cannot_hold_as_printed() -> None:
    """One dimension, weights a > sqrt(2), f = |z|^2 / 2: a^6 V against 2 a^4 V in the second block."""
    x = torch.tensor([[1.0], [2.0], [4.0]]).double()
    weights = [2 * torch.ones(1, 1).double()] * 2
    c = Cells(weights, x, torch.eye(2).double(), torch.zeros(3, 2).double())
    V = float(x.square().var(correction=0))
    assert c.variance("narrow")[1] == pytest.approx(2**6 * V)
    assert c.printed_variance()[1] == pytest.approx(2 * 2**4 * V)
    assert c.variance("narrow")[1] > c.printed_variance()[1]


def test_sizes_that_do_not_fit() -> None:
    x = torch.zeros(4, 3).double()
    with pytest.raises(Theta0Error, match="square matrices of 3 x 3"):
        Cells([torch.zeros(2, 3).double()], x, torch.zeros(1, 3))
    with pytest.raises(Theta0Error, match=r"the readout is 4 x 6 here, not \(4, 3\)"):
        Cells([torch.zeros(3, 3).double()] * 2, x, torch.zeros(4, 3))
