from __future__ import annotations

import pytest
import torch
from torch import nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.spaces import darts, nasbench101, nasbench201

STRIDED = [name for name in ops.names() if not name.endswith("bn-relu")]


@pytest.mark.parametrize("name", ops.names())
def test_keeps_the_shape(name: str) -> None:
    x = torch.randn(2, 8, 6, 6)
    assert ops.build(name, 8)(x).shape == (2, 8, 6, 6)


@pytest.mark.parametrize("name", STRIDED)
def test_stride_halves(name: str) -> None:
    assert ops.build(name, 8, stride=2)(torch.randn(2, 8, 6, 6)).shape == (2, 8, 3, 3)


@pytest.mark.parametrize(
    "name", ["none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "sep_conv_3x3", "dil_conv_5x5"]
)
def test_changes_channels(name: str) -> None:
    stride = 2 if name == "skip_connect" else 1
    assert ops.build(name, 8, 6, stride=stride)(torch.randn(2, 8, 6, 6)).shape[:2] == (2, 6)


def test_all_candidates_are_defined_once() -> None:
    used = {*darts.PUBLISHED, *nasbench101.OPERATIONS, *nasbench201.OPERATIONS}
    assert used == set(ops.names())


def test_names_of_spaces_are_right_about_weights() -> None:
    """The spaces tell identities, zeros and operations without weights by name; here is what those names build."""
    assert isinstance(ops.build("skip_connect", 8), nn.Identity)
    assert not ops.build("none", 8)(torch.ones(1, 8, 2, 2)).any()
    weightless = {name for name in ops.names() if not list(ops.build(name, 8).parameters())}
    assert weightless == {"none", "skip_connect", "avg_pool_3x3", "max_pool_3x3", "maxpool3x3"}


def test_average_pool_leaves_the_border_out() -> None:
    torch.testing.assert_close(ops.build("avg_pool_3x3", 1)(torch.ones(1, 1, 4, 4)), torch.ones(1, 1, 4, 4))


def test_factorized_reduction_sees_every_pixel() -> None:
    module = ops.build("skip_connect", 2, stride=2, norm=lambda channels: nn.Identity())
    x = torch.rand(1, 2, 6, 6, requires_grad=True)
    module(x).sum().backward()
    seen = (x.grad != 0).any(dim=1)[0] if x.grad is not None else torch.zeros(6, 6)
    assert seen[::2, ::2].all()
    assert seen[1::2, 1::2].all()
    with pytest.raises(Theta0Error, match="even number of output channels, not 3"):
        ops.build("skip_connect", 3, stride=2)
    with pytest.raises(Theta0Error, match="not 5 x 6"):
        module(torch.rand(1, 2, 5, 6))


def test_parameters_of_a_separable_convolution() -> None:
    """Two depthwise and two pointwise convolutions and two normalisations."""
    c, k = 8, 5
    expected = 2 * (c * k * k + c * c) + 2 * 2 * c
    assert sum(p.numel() for p in ops.build("sep_conv_5x5", c).parameters()) == expected


def test_settings_of_the_normalisation() -> None:
    norm = ops.batch_norm(affine=False, track=False, momentum=0.5, eps=1e-3)(4)
    assert isinstance(norm, nn.BatchNorm2d)
    assert (norm.affine, norm.track_running_stats, norm.momentum, norm.eps) == (False, False, 0.5, 1e-3)


def test_unknown_and_impossible() -> None:
    with pytest.raises(Theta0Error, match="no operation is called 'sep_conv_9x9'; did you mean sep_conv"):
        ops.build("sep_conv_9x9", 8)
    with pytest.raises(Theta0Error, match="avg_pool_3x3 keeps the number of channels; it cannot take 8 to 4"):
        ops.build("avg_pool_3x3", 8, 4)
