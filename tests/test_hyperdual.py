"""Hyper-dual passes against the double backward pass, in float64, and what they refuse."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.networks import NETWORKS, batch, network
from theta0 import hyperdual
from theta0.evidence import Evidence, cross_entropy
from theta0.initialize import initialize


def both_ways(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """theta . H g by hyper-dual numbers, and by two backward passes."""
    with Evidence(model, x, y) as e:
        directions = {id(weight.value): e.gradient[id(weight.value)] for weight in e.weights}
        found = hyperdual.mixed_derivative(model, x, lambda out: cross_entropy(out, y), directions, e.logits.detach())
        pairs = zip(e.weights, e.hessian_gradient, strict=True)
        return found, sum(float((weight.value.detach() * product).sum()) for weight, product in pairs)


@pytest.mark.parametrize("name", ["cell", "mlp", "plain", "residual"])
def test_it_equals_two_backward_passes(name: str) -> None:
    found, exact = both_ways(network(name), *batch())
    assert found == pytest.approx(exact, rel=1e-11)


class Every(nn.Module):
    """Every function that has a rule and that the other networks leave out."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Conv1d(3, 4, 3, stride=2)
        self.convolution = nn.Conv2d(3, 4, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        nn.init.uniform_(self.norm.weight)
        nn.init.uniform_(self.norm.bias)
        self.register_buffer("mean", torch.rand(8))
        self.register_buffer("variance", torch.rand(8))
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8 * 4 + 4 * 31, 5)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        side = torch.tanh(self.rows(x.reshape(len(x), 3, -1))).flatten(1)
        x = F.pad(self.convolution(x), (1, 1, 1, 1))[:, :, 1:, 1:].contiguous()
        x = self.norm(torch.cat([F.leaky_relu(x, 0.1), F.max_pool2d(x, 3, stride=1, padding=1)], dim=1))
        x = F.silu(self.pointwise(x)) * torch.sigmoid(x) - 0.5 * x + 0.25
        x += torch.zeros_like(x) + x.new_zeros(x.size(0), *x.shape[1:])
        x = self.last(F.batch_norm(x, self.mean, self.variance, self.norm.weight))
        x = F.adaptive_avg_pool2d(F.avg_pool2d(x, 2), 2)
        return self.head(torch.cat([torch.flatten(self.dropout(x), 1), side], dim=1))


def test_every_rule() -> None:
    torch.manual_seed(0)
    found, exact = both_ways(Every().double(), *batch())
    assert found == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("name", ["shared", "vit", "lstm"])
def test_what_has_no_rule_takes_the_other_way(name: str) -> None:
    with pytest.raises(hyperdual.UnsupportedError):
        both_ways(network(name), *batch())
    with Evidence(network(name), *batch()) as e:
        pairs = zip(e.weights, e.hessian_gradient, strict=True)
        exact = sum(float((weight.value.detach() * product).sum()) for weight, product in pairs)
        assert e.curvature == pytest.approx(exact, rel=1e-12)


def changed(forward: str) -> nn.Module:
    model = network("mlp")
    first, head = model[1], model[3]
    ways = {
        "weight computed from another": lambda x: head(F.linear(x.flatten(1), first.weight * 2, first.bias).relu()),
        "weight added to the values": lambda x: head(first(x.flatten(1)) + first.weight[:, 0]),
        "picks samples": lambda x: head(first(x.flatten(1)))[[0, 1, 2, 3, 4, 5]],
        "mean over samples": lambda x: head(first(x.flatten(1) - x.flatten(1).mean(dim=0))),
        "goes around": lambda x: head(first(x.parts[: len(x)].flatten(1) if hasattr(x, "parts") else x.flatten(1))),
    }
    model.forward = ways[forward]
    return model


@pytest.mark.parametrize(
    "forward",
    ["weight computed from another", "weight added to the values", "picks samples", "mean over samples", "goes around"],
)
def test_what_would_be_wrong_is_refused(forward: str) -> None:
    with pytest.raises(hyperdual.UnsupportedError):
        both_ways(changed(forward), *batch())


def test_values_that_differ_are_refused() -> None:
    model, (x, y) = network("mlp"), batch()
    calls = []

    def forward(x: Tensor) -> Tensor:
        calls.append(1)
        return nn.Sequential.forward(model, x) * len(calls)

    model.forward = forward
    with pytest.raises(hyperdual.UnsupportedError, match="not those"):
        both_ways(model, x, y)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_scaled_weights_have_the_same_curvature_as_two_backward_passes(name: str) -> None:
    """Under the NTK parametrization the layers see other tensors than the parameters."""
    model = network(name)
    initialize(model, "ntk", seed=0)
    model.double()
    with Evidence(model, *batch()) as e:
        assert len(e.weights) > 0
        pairs = zip(e.weights, e.hessian_gradient, strict=True)
        exact = sum(float((weight.value.detach() * product).sum()) for weight, product in pairs)
        assert e.curvature == pytest.approx(exact, rel=1e-10)
