"""NNGP and NTK of NAS-Bench-201's networks at infinitely many channels: a cell has a kernel without a network.

    kernels = CellKernel(images, cells=1).of(cell)       # .ntk (N, N), .nngp (N, N)

Channels are independent normal fields over images and pixels, K (pairs of images, pixels, pixels). ReLU acts by its
dual, a convolution averages K over the shifts of its window, and its output is independent of everything before it: so
a node is a sum of independent sources (the cell's input and the convolutions), each seen through what skip connections
and average pools make of it, one matrix of pixels by pixels, and that sum is exact also where paths meet again.
The NTK goes along: T behind a convolution is its K plus the average of T times the dual of the step.

Batch normalisation has no simple limit, because the statistics of a channel over a finite batch are random. ``norm``:

``mean``   the limit of a large batch: each field is divided by its mean variance over the batch's images and pixels,
           and loses its batch mean, which is exact; the statistics are constants in T, as in ``frozen`` scores
``none``   networks without it, for which the kernels are exact
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.graph import Cell, live

Norm = Literal["mean", "none"]


class Field(NamedTuple):
    """Covariance and tangent kernel of a channel's values: (pairs, H, W, H, W), pixels of the first image first."""

    K: Tensor
    T: Tensor


class Kernels(NamedTuple):
    """Of the logits, (N, N), float64; both are zero for a cell that joins nothing to its output."""

    ntk: Tensor
    nngp: Tensor


class CellKernel:
    """The kernels of cells on some images (N, C, H, W), in the skeleton of NAS-Bench-201 with ``cells`` in a stage.

    Memory and time grow as N^2 (H W)^2: 16 images of 8 x 8 take some 20 MB and a tenth of a second for a convolution.
    """

    def __init__(self, images: Tensor, *, cells: int = 1, norm: Norm = "mean") -> None:
        if images.dim() != 4 or len(images) < 2:
            raise Theta0Error(f"a kernel is of two images or more (N, C, H, W); found {tuple(images.shape)}")
        if not bool(torch.isfinite(images).all()):
            raise Theta0Error("images must be finite")
        if norm not in get_args(Norm):
            raise Theta0Error(f"{norm!r} is not one of {', '.join(get_args(Norm))}")
        if cells < 0:
            raise Theta0Error(f"a stage has no fewer than 0 cells; found {cells}")
        size = images[0].numel() // images.shape[1]
        if len(images) ** 2 * size**2 * 8 > 2**31:
            raise Theta0Error(
                f"the kernel of {len(images)} images of {images.shape[2]} x {images.shape[3]} needs arrays of "
                f"{len(images) ** 2 * size**2 / 2**28:.0f} GiB; take fewer or smaller images (theta0.data.resize)"
            )
        self.cells, self.norm, self.count = cells, norm, len(images)
        self.first, self.second = torch.triu_indices(self.count, self.count)
        self.own = (self.first == self.second).nonzero().flatten()
        flat = images.double()
        start = torch.einsum("pcij,pckl->pijkl", flat[self.first], flat[self.second]) / images.shape[1]
        self.stem = self._normalised(_convolved(Field(start, torch.zeros_like(start)), 3))

    def of(self, cell: Cell) -> Kernels:
        """The kernels of a cell."""
        graph = live(cell, {"none"})
        field = self.stem
        for stage in range(3):
            if stage:
                field = self._reduced(field)
            for _ in range(self.cells):
                field = self._cell(graph, field)
        if self.norm == "mean":
            field = self._normalised(field)
        field = self._relu(field)
        K, T = (value.mean(dim=(1, 2, 3, 4)) for value in field)
        return Kernels(self._matrix(K + T), self._matrix(K))

    def _matrix(self, values: Tensor) -> Tensor:
        whole = torch.zeros(self.count, self.count, dtype=torch.float64)
        whole[self.first, self.second] = values
        whole[self.second, self.first] = values
        return whole

    def _variances(self, covariance: Tensor) -> Tensor:
        """(N, H, W)."""
        shape = covariance.shape[1:3]
        own = covariance[self.own].reshape(self.count, shape.numel(), shape.numel())
        return own.diagonal(dim1=1, dim2=2).reshape(self.count, *shape)

    def _relu(self, field: Field) -> Field:
        """E[relu relu], and T times the dual of the step."""
        K, T = field
        deviations = self._variances(K).clamp(min=0).sqrt()
        scale = deviations[self.first][:, :, :, None, None] * deviations[self.second][:, None, None]
        r = (K / torch.where(scale > 0, scale, 1.0)).clamp_(-1, 1)
        size = K.shape[1] * K.shape[2]
        same = torch.eye(size, dtype=torch.bool).reshape(K.shape[1:])
        r[self.own] = torch.where(same, 1.0, r[self.own])  # the angle of rounding would be 1e-8
        angle = torch.acos(r)
        step = (math.pi - angle) / (2 * math.pi)
        value = torch.sqrt((1 - r.square()).clamp_(min=0)).div_(2 * math.pi).addcmul_(step, r).mul_(scale)
        return Field(value, step.mul_(T))

    def _normalised(self, field: Field) -> Field:
        if self.norm == "none":
            return field
        K, T = field
        # The mean over a batch's images and pixels of each field, subtracted on both sides.
        rows = torch.zeros(self.count, *K.shape[1:3], dtype=torch.float64)
        rows.index_add_(0, self.first, K.mean(dim=(3, 4)))
        other = self.first != self.second
        rows.index_add_(0, self.second[other], K[other].mean(dim=(1, 2)))
        rows /= self.count
        K = K - rows[self.first][:, :, :, None, None] - rows[self.second][:, None, None] + rows.mean()
        variance = self._variances(K).mean()
        scale = torch.where(variance > 1e-12, 1 / variance, 0.0)  # what is constant, or zero, stays zero
        return Field(K * scale, T * scale)

    def _operation(self, name: str, node: Field) -> Field:
        return self._normalised(_convolved(self._relu(node), 3 if name == "nor_conv_3x3" else 1))

    def _cell(self, graph: Cell, start: Field) -> Field:
        """The output's field; nodes are sums of sources behind matrices of pixels by pixels."""
        shape = start.K.shape[1:3]
        eye = torch.eye(shape.numel(), dtype=torch.float64)
        pool = _pooling(*shape)
        sources, nodes = [start], [{0: eye}]
        for node in range(1, graph.nodes):
            parts: dict[int, Tensor] = {}
            for source, _, name in graph.into(node):
                if name in ("nor_conv_1x1", "nor_conv_3x3"):
                    sources.append(self._operation(name, _mixed(nodes[source], sources)))
                    seen = {len(sources) - 1: eye}
                elif name in ("skip_connect", "avg_pool_3x3"):
                    seen = {s: m if name == "skip_connect" else pool @ m for s, m in nodes[source].items()}
                else:
                    raise Theta0Error(f"no kernel is known for the operation {name!r}; those of NAS-Bench-201 are")
                for s, m in seen.items():
                    parts[s] = parts[s] + m if s in parts else m
            nodes.append(parts)
        return _mixed(nodes[-1], sources)

    def _reduced(self, field: Field) -> Field:
        """The residual reduction between stages."""
        first = self._normalised(_convolved(self._relu(field), 3, stride=2))
        second = self._normalised(_convolved(self._relu(first), 3))
        shortcut = _convolved(_seen(field, _halving(*field.K.shape[1:3]), first.K.shape[1:3]), 1)
        return Field(second.K + shortcut.K, second.T + shortcut.T)


def _mixed(parts: dict[int, Tensor], sources: list[Field]) -> Field:
    if not parts:
        return Field(torch.zeros_like(sources[0].K), torch.zeros_like(sources[0].T))
    found = [_seen(sources[s], m, sources[s].K.shape[1:3]) for s, m in parts.items()]
    return Field(sum((f.K for f in found[1:]), found[0].K), sum((f.T for f in found[1:]), found[0].T))


def _seen(field: Field, matrix: Tensor, shape: Sequence[int]) -> Field:
    """Both kernels with a matrix of pixels on either side."""
    if matrix.shape[0] == matrix.shape[1] and torch.equal(matrix, torch.eye(len(matrix), dtype=matrix.dtype)):
        return field
    size = matrix.shape[1]
    return Field(*((matrix @ v.reshape(-1, size, size) @ matrix.T).reshape(-1, *shape, *shape) for v in field))


def _convolved(field: Field, kernel: int, stride: int = 1) -> Field:
    """Behind a convolution with weights of N(0, 1 / fan_in): the window's average, zeros around the images."""

    def average(v: Tensor) -> Tensor:
        if kernel == 1:
            return v
        height, width = (-(-side // stride) for side in v.shape[1:3])
        edge = kernel // 2
        wide = F.pad(v, (edge,) * 8)
        total = torch.zeros(len(v), height, width, height, width, dtype=v.dtype)
        for i in range(kernel):
            for j in range(kernel):
                rows = slice(i, i + (height - 1) * stride + 1, stride)
                columns = slice(j, j + (width - 1) * stride + 1, stride)
                total += wide[:, rows, columns, rows, columns]
        return total / kernel**2

    K = average(field.K)
    return Field(K, K + average(field.T))


def _pooling(height: int, width: int) -> Tensor:
    """Average pooling 3 x 3 as a matrix; what is around the image does not count."""
    images = torch.eye(height * width, dtype=torch.float64).reshape(-1, 1, height, width)
    return F.avg_pool2d(images, 3, 1, 1, count_include_pad=False).flatten(1).T.contiguous()


def _halving(height: int, width: int) -> Tensor:
    images = torch.eye(height * width, dtype=torch.float64).reshape(-1, 1, height, width)
    return F.avg_pool2d(images, 2, 2, ceil_mode=True, count_include_pad=False).flatten(1).T.contiguous()
