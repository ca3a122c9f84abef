"""Statements of HNAS about scores, on sampled networks: Theorem 1 with its explicit constants, and Theorem 4."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from tests.networks import batch, network
from theta0.evidence import Evidence
from theta0.kernel import Recording, all_parameters
from theta0.scoring import score

BETA = math.sqrt(2)
"""The Lipschitz constant of the cross-entropy in the logits: its gradient is p - e_y."""


@pytest.mark.parametrize("name", ["mlp", "plain", "shared", "lstm"])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_1(name: str, seed: int) -> None:
    """grad <= beta trace, snip <= ||theta|| grad, knas^2 <= ||K||_F / m <= trace^2 (D.12), if samples do not meet."""
    model, (x, y) = network(name), batch(seed=seed)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    with Evidence(model, x, y) as e:
        gram = e.gram("contribution", "logits", "all")
        trace = math.sqrt(float(gram.diagonal().sum()) / len(x))
        theta = math.sqrt(sum(float(w.value.detach().square().sum()) for w in e.parameters))
    values = {f"{r.name}:{r.variant}": r.value for r in score(model, x, y, "all")}
    assert values["grad:paper"] <= BETA * trace
    assert values["snip:paper"] <= theta * values["grad:paper"] <= theta * BETA * trace
    assert values["trace_estimate:sum"] <= len(x) * BETA * trace
    assert values["grad:paper"] <= values["trace_estimate:sum"] / len(x)
    for kind in ("official", "logits", "loss"):
        knas, frobenius, one = (values[f"{n}:{kind}"] for n in ("knas", "frobenius", "trace"))
        assert knas**2 <= frobenius / len(x) * (1 + 1e-12)
        assert frobenius / len(x) <= one**2 * (1 + 1e-12)


def test_theorem_1_for_grasp() -> None:
    """grasp <= ||theta|| mean_i ||H_i|| ||g_i|| (D.9), with the Hessians themselves."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2), nn.Tanh(), nn.Linear(2, 5)).double()
    x, y = batch(3)
    shapes = {n: p.shape for n, p in model.named_parameters()}
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])

    def loss(theta: Tensor, i: int) -> Tensor:
        parts = torch.split(theta, [math.prod(s) for s in shapes.values()])
        named = {n: v.reshape(s) for (n, s), v in zip(shapes.items(), parts, strict=True)}
        return nn.functional.cross_entropy(torch.func.functional_call(model, named, (x[i : i + 1],)), y[i : i + 1])

    bound = 0.0
    for i in range(3):
        hessian = torch.autograd.functional.hessian(lambda theta, i=i: loss(theta, i), flat)
        gradient = torch.autograd.functional.jacobian(lambda theta, i=i: loss(theta, i), flat)
        bound += float(torch.linalg.matrix_norm(hessian, 2) * gradient.norm()) / 3
    assert 0 < score(model, x, y, ["grasp:paper"]).value("grasp") <= float(flat.norm()) * bound


class Topology(nn.Module):
    """The linear networks of equation 7.5: a sum of L matrices, or their product, and the sum of the outputs."""

    def __init__(self, layers: int, width: int, *, deep: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.deep = deep

    def forward(self, x: Tensor) -> Tensor:
        if not self.deep:
            return torch.stack([layer(x) for layer in self.layers]).sum(dim=(0, 2))
        for layer in self.layers:
            x = layer(x)
        return x.sum(dim=1)


def ntk(model: Topology, x: Tensor) -> Tensor:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    with Recording(model) as recording:
        return recording.gram(model(x).sum(), all_parameters)


@pytest.mark.parametrize(("layers", "width", "samples"), [(1, 4, 4), (3, 5, 4), (8, 16, 10)])
def test_theorem_4_wide(layers: int, width: int, samples: int) -> None:
    """K = L n I exactly, whatever the weights, on images with X^T X = I."""
    torch.manual_seed(0)
    x = torch.linalg.qr(torch.randn(width, samples, dtype=torch.float64))[0].T
    gram = ntk(Topology(layers, width, deep=False).double(), x)
    torch.testing.assert_close(gram, layers * width * torch.eye(samples, dtype=torch.float64), rtol=1e-12, atol=1e-11)


def test_theorem_4_deep() -> None:
    """E[K] = L n^L I, by Monte Carlo within five standard errors; a single draw is far from a multiple of I."""
    torch.manual_seed(0)
    layers, width, draws = 3, 3, 4000
    x = torch.linalg.qr(torch.randn(width, width, dtype=torch.float64))[0].T
    model = Topology(layers, width, deep=True).double()
    grams = torch.stack([ntk(model, x) for _ in range(draws)])
    error = grams.std(dim=0) / math.sqrt(draws)
    expected = layers * width**layers * torch.eye(width, dtype=torch.float64)
    assert bool(((grams.mean(dim=0) - expected).abs() < 5 * error).all())
    values = torch.linalg.eigvalsh(grams)
    assert float((values[:, -1] / values[:, 0]).median()) > 3
