from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from theta0.errors import Theta0Error
from theta0.initialize import SCHEMES, initialize, seeded


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(64, 128, 3, groups=2), nn.BatchNorm2d(128), nn.Flatten(), nn.Linear(256, 512))


VARIANCE = {
    "lecun": lambda fan_in, fan_out: 1 / fan_in,
    "xavier": lambda fan_in, fan_out: 2 / (fan_in + fan_out),
    "he": lambda fan_in, fan_out: 2 / fan_in,
    "he_out": lambda fan_in, fan_out: 2 / fan_out,
    "ntk": lambda fan_in, fan_out: 1 / fan_in,  # of the weight that the layer uses
}


@pytest.mark.parametrize("scheme", VARIANCE)
def test_variance(scheme: str) -> None:
    model = network()
    initialize(model, scheme, seed=0)
    for layer, fan_in, fan_out in ((model[0], 32 * 9, 128 * 9), (model[3], 256, 512)):
        weight = layer.weight.detach()
        assert weight.var().item() / VARIANCE[scheme](fan_in, fan_out) == pytest.approx(1, abs=0.03)
        assert abs(weight.mean().item()) < 4 * weight.std().item() / math.sqrt(weight.numel())
        assert not layer.bias.detach().any()
    assert (model[1].weight == 1).all()


def test_ntk_parameterization_scales_gradients() -> None:
    """The parameters have variance one; the layer multiplies, so their gradients are scaled as well."""
    model = nn.Linear(256, 16, bias=False)
    initialize(nn.Sequential(model), "ntk", seed=0)
    (parameter,) = model.parameters()
    assert parameter.detach().var().item() == pytest.approx(1, abs=0.05)
    x = torch.randn(1, 256)
    torch.testing.assert_close(model(x), x @ (parameter / 16).T)
    model(x).sum().backward()
    torch.testing.assert_close(parameter.grad, (x / 16).expand(16, 256))
    with pytest.raises(Theta0Error, match="parametrized already"):
        initialize(model, "ntk", seed=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_seed_and_global_state(scheme: str) -> None:
    def drawn(seed: int) -> torch.Tensor:
        model = network()
        before = torch.get_rng_state()
        initialize(model, scheme, seed)
        assert torch.equal(torch.get_rng_state(), before)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    assert torch.equal(drawn(0), drawn(0))
    assert not torch.equal(drawn(0), drawn(1))


def test_torch_scheme_is_the_layer_s_own() -> None:
    model = network()
    initialize(model, "torch", seed=5)
    with seeded(5):
        expected = network()
    torch.testing.assert_close(model.state_dict(), expected.state_dict())


def test_state_comes_back_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="boom"), seeded(1):
        raise RuntimeError("boom")
    assert torch.equal(torch.get_rng_state(), before)
