from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import theta0
from theta0.errors import Theta0Error
from theta0.spaces.mlp import Layers, MLPSpace
from theta0.theory.linearized import Linearized, bound, closed_form, descend, linearized

STEPS = [0, 1, 2, 5, 20, 100]


def on_digits(samples: int = 24, width: int = 32) -> tuple[Linearized, torch.Tensor]:
    """A network of the space on real images, and the residuals of one-hot labels."""
    x, y = theta0.load("digits").train.batch(samples, seed=0)
    space = MLPSpace(layers=3)
    model = space.build(Layers(("tanh", "relu"), (True,)), seed=0, width=width, shape=(1, 8, 8), initialization="ntk")
    found = linearized(model.double(), x.double())
    return found, F.one_hot(y, 10).double().flatten() - found.outputs


def test_closed_form_is_gradient_descent_on_digits() -> None:
    found, residual = on_digits()
    rate = 0.9 / float(torch.linalg.eigvalsh(found.gram)[-1])
    exact = closed_form(found.gram, residual, rate, STEPS, samples=24)
    followed = descend(found.jacobian, residual, rate, STEPS, samples=24)
    torch.testing.assert_close(exact, followed, rtol=1e-9, atol=0)
    assert (exact[1:] < exact[:-1]).all()


def test_a_wide_network_trains_as_its_linearization() -> None:
    """The network's own gradient descent comes nearer with the width."""
    distances = []
    for width in (16, 1024):
        x, y = theta0.load("digits").train.batch(8, seed=0)
        model = MLPSpace(layers=3).build(
            Layers(("tanh", "tanh"), (False,)), seed=0, width=width, shape=(1, 8, 8), initialization="ntk"
        )
        model.double()
        x, target = x.double(), F.one_hot(y, 10).double()
        found = linearized(model, x)
        rate = 0.5 / float(torch.linalg.eigvalsh(found.gram)[-1])
        for _ in range(40):
            loss = (model(x) - target).square().sum() / 2
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter.sub_(rate * gradient)
        exact = float(closed_form(found.gram, target.flatten() - found.outputs, rate, [40], samples=8))
        distances.append(abs(float((model(x).detach() - target).square().sum() / 8) - exact) / exact)
    assert distances[1] < distances[0] / 2
    assert distances[1] < 0.1


def test_proposition_1() -> None:
    """For residuals in [0, 1], all steps, and rates up to 1 / lambda_max."""
    found, _ = on_digits()
    generator = torch.Generator().manual_seed(0)
    top = float(torch.linalg.eigvalsh(found.gram)[-1])
    for rate in (0.1 / top, 0.99 / top):
        for residual in (torch.ones(240).double(), torch.rand(240, generator=generator, dtype=torch.float64)):
            losses = closed_form(found.gram, residual, rate, [1, 2, 50], samples=24)
            assert bool((losses <= bound(found.gram, rate, [1, 2, 50], samples=24, classes=10)).all())
    assert bound(found.gram, 0.5 / top, [0.0, 0.25], samples=24, classes=10)[0] == 2400


def test_what_cannot_be_computed() -> None:
    found, residual = on_digits()
    top = float(torch.linalg.eigvalsh(found.gram)[-1])
    with pytest.raises(Theta0Error, match="less than 2 / lambda_max"):
        closed_form(found.gram, residual, 2.1 / top, [1], samples=24)
    with pytest.raises(Theta0Error, match="less than 1 / lambda_max"):
        bound(found.gram, 1.1 / top, [1], samples=24, classes=10)
    with pytest.raises(Theta0Error, match="have a kernel of 230 rows"):
        bound(found.gram, 0.1 / top, [1], samples=23, classes=10)
