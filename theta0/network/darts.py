"""The macro skeletons of the DARTS space, for small images (CIFAR) and large ones (ImageNet), with auxiliary tower."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.graph import Cell, Edge
from theta0.network.cells import DropPath, EdgeCell
from theta0.network.nasbench import GlobalAveragePool
from theta0.ops import FactorizedReduce, Norm, relu_conv_norm

MakeCell = Callable[[int, int, bool], nn.Module]
"""Gives cell number i at a number of channels, normal or reducing; called with two inputs of those channels each."""


class TwoInputCell(nn.Module):
    """A cell behind the two layers that bring its inputs to one number of channels and one resolution.

    Both are max-pooled where ``pooled``.
    """

    def __init__(
        self, cell: nn.Module, widths: tuple[int, int], channels: int, reduced_before: bool, pooled: bool, norm: Norm
    ) -> None:
        super().__init__()
        c_before_last, c_last = widths
        self.before_last = (
            FactorizedReduce(c_before_last, channels, norm)
            if reduced_before
            else relu_conv_norm(c_before_last, channels, 1, norm)
        )
        self.last = relu_conv_norm(c_last, channels, 1, norm)
        self.pool = nn.MaxPool2d(2, ceil_mode=True) if pooled else nn.Identity()
        self.cell = cell

    def forward(self, before_last: Tensor, last: Tensor) -> Tensor:
        """The outputs of the last two cells to the output of this one."""
        result: Tensor = self.cell(self.pool(self.before_last(before_last)), self.pool(self.last(last)))
        return result


def make_edge_cell(cell: Cell, channels: int, reduction: bool, norm: Norm) -> EdgeCell:
    """The module of a DARTS cell: edges from the inputs halve the resolution in a reduction cell."""

    return EdgeCell(cell, edge_maker(cell.inputs, channels, reduction, norm), concat=True)


def edge_maker(inputs: int, channels: int, reduction: bool, norm: Norm) -> Callable[[Edge], nn.Module]:
    """Makes the operations of a cell with ``inputs`` inputs, each with a drop-path that is off until it is set."""

    def make(edge: Edge) -> nn.Module:
        stride = 2 if reduction and edge.source < inputs else 1
        module = ops.build(edge.op, channels, stride=stride, norm=norm)
        return module if isinstance(module, nn.Identity) else nn.Sequential(module, DropPath())

    return make


class DartsNetwork(nn.Module):
    """A stack of cells, each fed by the two before it; channels double and resolution halves at two of them.

    ``forward`` gives the logits; :meth:`with_auxiliary` also those of the auxiliary tower, for training.
    """

    def __init__(
        self,
        make_cell: MakeCell,
        multipliers: Sequence[int],
        shape: tuple[int, int, int],
        classes: int,
        channels: int,
        *,
        large: bool,
        auxiliary: bool,
        pooled: bool,
        norm: Norm,
    ) -> None:
        super().__init__()
        layers = len(multipliers)
        reductions = (layers // 3, 2 * layers // 3)
        self.stems = nn.ModuleList(
            _large_stems(shape[0], channels, norm) if large else _small_stem(shape[0], channels, norm)
        )
        widths = (channels, channels) if large else (3 * channels, 3 * channels)
        halvings, reduced_before = (3 if large else 0), large
        self.cells = nn.ModuleList()
        self.tower_after = reductions[1]
        self.auxiliary: nn.Module | None = None
        for i, multiplier in enumerate(multipliers):
            reduction = i in reductions
            channels *= 2 if reduction else 1
            halvings += reduction
            module = make_cell(i, channels, reduction)
            self.cells.append(TwoInputCell(module, widths, channels, reduced_before, pooled and reduction, norm))
            reduced_before, widths = reduction, (widths[1], multiplier * channels)
            if auxiliary and i == self.tower_after:
                self.auxiliary = _tower(widths[1], classes, shape, halvings, large, norm)
        self.head = nn.Sequential(GlobalAveragePool(), nn.Linear(widths[1], classes))

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) to logits (N, classes)."""
        logits: Tensor = self.head(self._features(x)[0])
        return logits

    def with_auxiliary(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Images (N, C, H, W) to two sets of logits (N, classes): the network's and the auxiliary tower's."""
        if self.auxiliary is None:
            raise Theta0Error("this network has no auxiliary tower; build it with auxiliary=True")
        last, inner = self._features(x)
        return self.head(last), self.auxiliary(inner)

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        before_last = last = self.stems[0](x)
        for stem in list(self.stems)[1:]:
            before_last, last = last, stem(last)
        inner = last
        for i, cell in enumerate(self.cells):
            before_last, last = last, cell(before_last, last)
            if i == self.tower_after:
                inner = last
        return last, inner


def _small_stem(in_channels: int, channels: int, norm: Norm) -> list[nn.Module]:
    return [nn.Sequential(nn.Conv2d(in_channels, 3 * channels, 3, padding=1, bias=False), norm(3 * channels))]


def _large_stems(in_channels: int, channels: int, norm: Norm) -> list[nn.Module]:
    def strided(c_in: int, c_out: int) -> list[nn.Module]:
        return [nn.Conv2d(c_in, c_out, 3, stride=2, padding=1, bias=False), norm(c_out)]

    half = channels // 2
    return [
        nn.Sequential(*strided(in_channels, half), nn.ReLU(), *strided(half, channels)),
        nn.Sequential(nn.ReLU(), *strided(channels, channels)),
    ]


def _tower(
    c_in: int, classes: int, shape: tuple[int, int, int], halvings: int, large: bool, norm: Norm
) -> nn.Sequential:
    """The auxiliary classifier: pooling, a 1x1 and a 2x2 convolution."""
    sides = [-(-side // 2**halvings) for side in shape[1:]]
    stride = 2 if large else 3
    if min((side - 5) // stride + 1 for side in sides) < 2:
        raise Theta0Error(
            f"the auxiliary tower pools windows of 5 x 5 and needs features of at least {5 + stride} x {5 + stride}; "
            f"images of {shape[1]} x {shape[2]} give {sides[0]} x {sides[1]} there; build with auxiliary=False"
        )
    # The published ImageNet tower has no normalisation before its last ReLU.
    last = [nn.ReLU()] if large else [norm(768), nn.ReLU()]
    return nn.Sequential(
        nn.ReLU(),
        nn.AvgPool2d(5, stride=stride, count_include_pad=False),
        nn.Conv2d(c_in, 128, 1, bias=False),
        norm(128),
        nn.ReLU(),
        nn.Conv2d(128, 768, 2, bias=False),
        *last,
        GlobalAveragePool(),
        nn.Linear(768, classes),
    )
