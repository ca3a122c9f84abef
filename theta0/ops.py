"""Every candidate operation, defined once, under the name that its benchmark gives it.

    build("sep_conv_3x3", 16, 16, stride=2, norm=batch_norm(affine=False))

An operation takes (N, C_in, H, W) to (N, C_out, H / stride, W / stride). ReLU stands before the convolution in the
cells of NAS-Bench-201 and DARTS and behind it in those of NAS-Bench-101, as in the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error, nearest

Norm = Callable[[int], nn.Module]


def batch_norm(*, affine: bool = True, track: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Norm:
    """A maker of batch normalisation layers with these settings."""
    return lambda channels: nn.BatchNorm2d(
        channels, eps=eps, momentum=momentum, affine=affine, track_running_stats=track
    )


class Maker(Protocol):
    """Makes one operation."""

    def __call__(self, c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module: ...  # noqa: D102


_MAKERS: dict[str, Maker] = {}


def operation(name: str) -> Callable[[Maker], Maker]:
    """Decorator: makes an operation known as ``name``."""

    def add(make: Maker) -> Maker:
        _MAKERS[name] = make
        return make

    return add


def names() -> list[str]:
    """The names of all operations, sorted."""
    return sorted(_MAKERS)


def build(name: str, c_in: int, c_out: int | None = None, *, stride: int = 1, norm: Norm | None = None) -> nn.Module:
    """The operation called ``name`` from ``c_in`` to ``c_out`` channels (the same number if not given)."""
    if name not in _MAKERS:
        raise Theta0Error(f"no operation is called {name!r}; {nearest(name, _MAKERS)}")
    return _MAKERS[name](c_in, c_in if c_out is None else c_out, stride, norm or batch_norm())


class Zero(nn.Module):
    """Gives zeros of the right shape."""

    def __init__(self, c_out: int, stride: int) -> None:
        super().__init__()
        self.c_out, self.stride = c_out, stride

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) to zeros (N, C_out, ceil(H / stride), ceil(W / stride))."""
        height, width = (-(-side // self.stride) for side in x.shape[2:])
        return x.new_zeros(x.shape[0], self.c_out, height, width)


class FactorizedReduce(nn.Module):
    """Halves the resolution by two pointwise convolutions, the second one shifted by a pixel, so that none is lost."""

    def __init__(self, c_in: int, c_out: int, norm: Norm) -> None:
        super().__init__()
        if c_out % 2:
            raise Theta0Error(f"a factorized reduction needs an even number of output channels, not {c_out}")
        self.even = nn.Conv2d(c_in, c_out // 2, 1, stride=2, bias=False)
        self.odd = nn.Conv2d(c_in, c_out // 2, 1, stride=2, bias=False)
        self.norm = norm(c_out)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) with even H and W to (N, C_out, H / 2, W / 2)."""
        if x.shape[2] % 2 or x.shape[3] % 2:
            raise Theta0Error(
                f"a factorized reduction needs even height and width, not {x.shape[2]} x {x.shape[3]}; "
                f"pad the images or use fewer reductions"
            )
        x = torch.relu(x)
        result: Tensor = self.norm(torch.cat([self.even(x), self.odd(x[:, :, 1:, 1:])], dim=1))
        return result


def relu_conv_norm(c_in: int, c_out: int, kernel: int, norm: Norm, stride: int = 1) -> nn.Sequential:
    """ReLU, a dense convolution, normalisation."""
    return nn.Sequential(
        nn.ReLU(), nn.Conv2d(c_in, c_out, kernel, stride, padding=kernel // 2, bias=False), norm(c_out)
    )


def conv_norm_relu(c_in: int, c_out: int, kernel: int, norm: Norm) -> nn.Sequential:
    """A dense convolution, normalisation, ReLU: the order of NAS-Bench-101."""
    return nn.Sequential(nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2, bias=False), norm(c_out), nn.ReLU())


def _same_channels(name: str, c_in: int, c_out: int) -> None:
    if c_in != c_out:
        raise Theta0Error(f"{name} keeps the number of channels; it cannot take {c_in} to {c_out}")


@operation("none")
def _none(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return Zero(c_out, stride)


@operation("skip_connect")
def _skip(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return nn.Identity() if stride == 1 and c_in == c_out else FactorizedReduce(c_in, c_out, norm)


@operation("avg_pool_3x3")
def _avg_pool(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    _same_channels("avg_pool_3x3", c_in, c_out)
    return nn.AvgPool2d(3, stride, padding=1, count_include_pad=False)


@operation("max_pool_3x3")
@operation("maxpool3x3")
def _max_pool(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    _same_channels("max_pool_3x3", c_in, c_out)
    return nn.MaxPool2d(3, stride, padding=1)


@operation("nor_conv_1x1")
def _nor_conv_1(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return relu_conv_norm(c_in, c_out, 1, norm, stride)


@operation("nor_conv_3x3")
def _nor_conv_3(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return relu_conv_norm(c_in, c_out, 3, norm, stride)


@operation("conv1x1-bn-relu")
def _conv_1(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return conv_norm_relu(c_in, c_out, 1, norm)


@operation("conv3x3-bn-relu")
def _conv_3(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return conv_norm_relu(c_in, c_out, 3, norm)


def _depthwise(c_in: int, c_out: int, kernel: int, stride: int, norm: Norm, dilation: int = 1) -> list[nn.Module]:
    """ReLU, depthwise convolution, pointwise convolution, normalisation."""
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False),
        nn.Conv2d(c_in, c_out, 1, bias=False),
        norm(c_out),
    ]


def _separable(kernel: int) -> Maker:
    def make(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
        return nn.Sequential(*_depthwise(c_in, c_in, kernel, stride, norm), *_depthwise(c_in, c_out, kernel, 1, norm))

    return make


def _dilated(kernel: int) -> Maker:
    def make(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
        return nn.Sequential(*_depthwise(c_in, c_out, kernel, stride, norm, dilation=2))

    return make


for _kernel in (3, 5, 7):
    operation(f"sep_conv_{_kernel}x{_kernel}")(_separable(_kernel))
for _kernel in (3, 5):
    operation(f"dil_conv_{_kernel}x{_kernel}")(_dilated(_kernel))


@operation("conv_7x1_1x7")
def _conv_7(c_in: int, c_out: int, stride: int, norm: Norm) -> nn.Module:
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(c_in, c_out, (1, 7), (1, stride), (0, 3), bias=False),
        nn.Conv2d(c_out, c_out, (7, 1), (stride, 1), (3, 0), bias=False),
        norm(c_out),
    )


class ShiftedSigmoid(nn.Module):
    """The sigmoid minus 1/2, zero at zero (Eigen-NAS, Table 1)."""

    def forward(self, x: Tensor) -> Tensor:
        """Element by element."""
        return torch.sigmoid(x) - 0.5


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,  # slope 0.01; Eigen-NAS leaves its eta in (0, 1) open
    "sigmoid": ShiftedSigmoid,
    "tanh": nn.Tanh,
    "swish": nn.SiLU,
}
"""The activations of the Eigen-NAS space; each gives zero at zero."""
