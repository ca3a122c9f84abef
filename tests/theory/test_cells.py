from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.errors import Theta0Error
from theta0.graph import Cell, Edge, live
from theta0.initialize import initialize, seeded
from theta0.kernel import Recording, frozen, weights
from theta0.network.cells import EdgeCell
from theta0.network.nasbench import nasbench201
from theta0.spaces.nasbench201 import NASBench201
from theta0.theory.cells import CellKernel, Field, _convolved

REFERENCE = Path(__file__).with_name("neural_tangents.npz")
SPACE = NASBench201()
MEETING = "|nor_conv_3x3~0|+|skip_connect~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|skip_connect~2|"
"""Paths that meet again: node 2 is the input and the pooled node 1, and the output has both of them once more."""


def images(count: int = 3, side: int = 4) -> Tensor:
    return torch.randn(count, 3, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def empirical(cell: Cell, x: Tensor, channels: int, seed: int, norm: ops.Norm) -> Tensor:
    """The NTK of the benchmark's network with one cell in a stage, in the NTK parametrization; one logit."""
    graph = live(cell, {"none"})

    def make(width: int) -> nn.Module:
        return EdgeCell(graph, lambda edge: ops.build(edge.op, width, norm=norm), concat=False)

    with seeded(seed):
        model = nasbench201(make, 3, 1, channels, 1, norm)
    initialize(model, "ntk", seed)
    model.double()
    with Recording(model) as recording:
        logits = model(x)
    return recording.gram(logits.sum(), weights)


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize(
    "text", [MEETING, "|nor_conv_1x1~0|+|none~0|nor_conv_3x3~1|+|avg_pool_3x3~0|none~1|skip_connect~2|"]
)
def test_wide_networks_converge(text: str) -> None:
    """Without normalisation the kernel is exact, and the error falls as the root of the channels."""
    x, cell = images(), SPACE.parse(text)
    exact = CellKernel(x, norm="none").of(cell).ntk
    errors = []
    for channels in (8, 32):
        grams = torch.stack([empirical(cell, x, channels, seed, lambda _: nn.Identity()) for seed in range(24)])
        errors.append(float(np.mean([distance(gram, exact) for gram in grams])))
    assert distance(grams.mean(dim=0), exact) < 0.13
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.35)


def test_batch_normalisation_is_close_in_a_large_batch() -> None:
    """``mean`` leaves out that the statistics are random, which a larger batch makes small."""
    cell, traces = SPACE.parse(MEETING), []
    for count in (12, 48):
        x = images(count)
        exact, grams = CellKernel(x).of(cell).ntk, []
        for seed in range(4):
            model = SPACE.build(
                cell, seed=seed, initialization="ntk", channels=32, cells=1, classes=1, shape=(3, 4, 4), live=True
            ).double()
            with frozen(model), Recording(model) as recording:
                logits = model(x)
            grams.append(recording.gram(logits.sum(), weights))
        gram = torch.stack(grams).mean(dim=0)
        traces.append(float(gram.trace() / exact.trace()))
        assert distance(gram / gram.trace(), exact / exact.trace()) < 0.25
    assert 1 < traces[1] < traces[0] < 2.5
    assert traces[1] < 1.35


@pytest.mark.parametrize("name", [name for name in np.load(REFERENCE).files if name.startswith("cell")])
def test_against_neural_tangents(name: str) -> None:
    """One cell between a convolution and the head; theirs has channels last."""
    reference = np.load(REFERENCE)
    x = torch.from_numpy(reference["images"]).permute(0, 3, 1, 2)
    _, first, second, beside, which = name.split()
    cell = Cell(1, 3, (Edge(0, 1, first), Edge(1, 2, second), Edge(0, 2, beside)))
    kernel = CellKernel(x, norm="none")
    field = kernel._relu(kernel._cell(cell, kernel.stem))
    K, T = (kernel._matrix(v.mean(dim=(1, 2, 3, 4))) for v in field)
    found = K + T if which == "ntk" else K
    assert float(np.abs(found.numpy() - reference[name]).max()) < 1e-7 * float(reference[name].max())


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2)])
def test_convolution_against_its_matrix(kernel: int, stride: int) -> None:
    """The mean over the window's shifts, from the matrix of each shift."""
    generator = torch.Generator().manual_seed(0)
    K = torch.randn(2, 5, 4, 5, 4, dtype=torch.float64, generator=generator)
    eye = torch.eye(20, dtype=torch.float64).reshape(20, 1, 5, 4)
    expected = 0
    for i in range(kernel):
        for j in range(kernel):
            weight = torch.zeros(1, 1, kernel, kernel, dtype=torch.float64)
            weight[0, 0, i, j] = 1
            shift = nn.functional.conv2d(eye, weight, stride=stride, padding=kernel // 2).flatten(1).T
            expected = expected + shift @ K.reshape(2, 20, 20) @ shift.T / kernel**2
    found = _convolved(Field(K, torch.zeros_like(K)), kernel, stride)
    torch.testing.assert_close(found.K.flatten(3).flatten(1, 2), expected)
    assert torch.equal(found.T, found.K)


@pytest.mark.parametrize("norm", ["mean", "none"])
def test_symmetric_positive_and_of_the_images_alone(norm: str) -> None:
    x, generator = images(5), np.random.default_rng(0)
    kernel, turned = (CellKernel(z, norm=norm) for z in (x, x.flip(0)))  # type: ignore[arg-type]
    for _ in range(5):
        cell = SPACE.sample(generator)
        for gram, other in zip(kernel.of(cell), turned.of(cell), strict=True):
            torch.testing.assert_close(gram, gram.T)
            torch.testing.assert_close(gram, other.flip(0, 1), rtol=1e-9, atol=1e-9)
            values = torch.linalg.eigvalsh(gram)
            assert float(values[0]) >= -1e-12 * float(values[-1])


def test_equal_networks_have_equal_kernels() -> None:
    """Cells of one canonical form, among them dead ones."""
    generator, kernel = np.random.default_rng(1), CellKernel(images(3, 3))
    known: dict[object, Tensor] = {}
    for _ in range(60):
        cell = SPACE.sample(generator)
        found = kernel.of(cell).ntk
        first = known.setdefault(SPACE.canonical(cell), found)
        torch.testing.assert_close(found, first, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CellKernel(images(1)), r"two images or more \(N, C, H, W\); found \(1, 3, 4, 4\)"),
        (lambda: CellKernel(images()[0]), "two images or more"),
        (lambda: CellKernel(images() * float("inf")), "images must be finite"),
        (lambda: CellKernel(images(), norm="batch"), "'batch' is not one of mean, none"),  # type: ignore[arg-type]
        (lambda: CellKernel(images(), cells=-1), "no fewer than 0 cells; found -1"),
        (lambda: CellKernel(torch.zeros(64, 3, 32, 32)), "needs arrays of 16 GiB; take fewer or smaller images"),
        (lambda: CellKernel(images()).of(Cell(1, 2, (Edge(0, 1, "max_pool_3x3"),))), "operation 'max_pool_3x3'"),
    ],
)
def test_what_cannot_be_computed(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Theta0Error, match=message):
        call()
