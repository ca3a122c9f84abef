"""The macro skeletons of NAS-Bench-201 and NAS-Bench-101."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from theta0.ops import Norm, conv_norm_relu, relu_conv_norm


class GlobalAveragePool(nn.Module):
    """Mean over the pixels."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C)."""
        return x.mean(dim=(2, 3))


class ResidualReduction(nn.Module):
    """The block between the stages of NAS-Bench-201: two 3x3 convolutions beside an average pool and a 1x1 one."""

    def __init__(self, c_in: int, c_out: int, norm: Norm) -> None:
        super().__init__()
        self.first = relu_conv_norm(c_in, c_out, 3, norm, stride=2)
        self.second = relu_conv_norm(c_out, c_out, 3, norm)
        # Rounded up, so that it fits the strided convolution on odd sizes too.
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(2, stride=2, ceil_mode=True, count_include_pad=False), nn.Conv2d(c_in, c_out, 1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_in, H, W) to (N, C_out, ceil(H / 2), ceil(W / 2))."""
        result: Tensor = self.shortcut(x) + self.second(self.first(x))
        return result


def nasbench201(
    make_cell: Callable[[int], nn.Module], in_channels: int, classes: int, channels: int, cells: int, norm: Norm
) -> nn.Sequential:
    """Stem, three stages of ``cells`` cells at C, 2C and 4C channels, reductions between them, and the classifier.

    ``make_cell`` gives a cell for a number of channels; cells keep their shape.
    """
    stem = nn.Sequential(nn.Conv2d(in_channels, channels, 3, padding=1, bias=False), norm(channels))
    stages: list[nn.Module] = []
    for stage in range(3):
        width = channels * 2**stage
        if stage:
            stages.append(ResidualReduction(width // 2, width, norm))
        stages += [make_cell(width) for _ in range(cells)]
    last = channels * 4
    head = nn.Sequential(norm(last), nn.ReLU(), GlobalAveragePool(), nn.Linear(last, classes))
    return nn.Sequential(stem, *stages, head)


def nasbench101(
    make_cell: Callable[[int, int], nn.Module],
    in_channels: int,
    classes: int,
    channels: int,
    stacks: int,
    cells: int,
    norm: Norm,
) -> nn.Sequential:
    """Stem, ``stacks`` stacks of ``cells`` cells, max-pooling and twice the channels between them, and the classifier.

    ``make_cell`` gives a cell for its numbers of input and output channels.
    """
    layers: list[nn.Module] = [conv_norm_relu(in_channels, channels, 3, norm)]
    width = channels
    for stack in range(stacks):
        if stack:
            layers.append(nn.MaxPool2d(2, stride=2))
        for cell in range(cells):
            wider = channels * 2**stack
            layers.append(make_cell(width if cell == 0 else wider, wider))
        width = channels * 2**stack
    return nn.Sequential(*layers, GlobalAveragePool(), nn.Linear(width, classes))
