from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from theta0 import count


def model() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv2d(8, 6, 3, dilation=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 5),
    )


def test_flops_by_hand_and_by_torch() -> None:
    by_hand = 8 * 8 * 8 * (2 * 9) + 6 * 4 * 4 * (8 * 9) + 6 * 5
    net = model()
    assert count.flops(net, (4, 16, 16)) == by_hand
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net.eval()(torch.zeros(1, 4, 16, 16))
    assert counter.get_total_flops() == 2 * by_hand


def test_meta_device_gives_the_same() -> None:
    with torch.device("meta"):
        net = model()
    assert count.flops(net, (4, 16, 16)) == count.flops(model(), (4, 16, 16))
    assert count.parameters(net) == count.parameters(model())


def test_comes_back_as_it_went_in() -> None:
    net = model()
    net[1].eval()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    modes = [module.training for module in net.modules()]
    count.flops(net, (4, 16, 16))
    with pytest.raises(RuntimeError):
        count.flops(net, (3, 16, 16))
    torch.testing.assert_close(net.state_dict(), state)
    assert [module.training for module in net.modules()] == modes
    assert not any(module._forward_hooks for module in net.modules())


def test_frozen_and_auxiliary_parameters_are_left_out() -> None:
    net = nn.Module()
    net.body, net.auxiliary = nn.Linear(2, 3), nn.Linear(2, 3)
    assert count.parameters(net) == 9
    net.body.bias.requires_grad_(False)
    assert count.parameters(net) == 6


def test_a_module_without_parameters() -> None:
    assert count.flops(nn.Identity(), (3, 4, 4)) == count.parameters(nn.Identity()) == 0
