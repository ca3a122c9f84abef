from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.kernel import Recording, all_parameters
from theta0.ops import ACTIVATIONS
from theta0.spaces.mlp import Layers, MLPSpace
from theta0.theory.mlp import at_zero, by_depth, infinite, unit

REFERENCE = Path(__file__).with_name("neural_tangents.npz")
MIXED = Layers(("relu", "swish", "tanh"), (True, True))


def inputs(samples: int = 6, size: int = 10) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return unit(torch.randn(samples, size, generator=generator) + 0.5)


def empirical(architecture: Layers, x: Tensor, width: int, seed: int, initialization: str) -> Tensor:
    """The NTK of a network of theta0's own space."""
    space = MLPSpace(layers=len(architecture.activations) + 1)
    model = space.build(
        architecture, seed=seed, width=width, shape=(1, 1, x.shape[1]), classes=1, initialization=initialization
    ).double()
    with Recording(model) as recording:
        logits = model(x)
    return recording.gram(logits.sum(), all_parameters)


def with_gain(architecture: Layers, x: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """The NTK of f_l = sqrt(2 / m) s(W f_{l-1}) + a f_{l-1}, W of N(0, 1): what Lemma 1 is of; plain autograd."""
    sizes = [x.shape[1], *([width] * len(architecture.activations))]
    weights = [
        torch.randn(b, a, dtype=torch.float64, generator=generator).requires_grad_()
        for a, b in itertools.pairwise(sizes)
    ]
    head = torch.randn(width, dtype=torch.float64, generator=generator).requires_grad_()
    f = x
    for weight, name, skip in zip(weights, architecture.activations, (False, *architecture.skips), strict=True):
        f = math.sqrt(2 / width) * ACTIVATIONS[name]()(f @ weight.T) + (f if skip else 0)
    rows = []
    for value in f @ head:
        gradients = torch.autograd.grad(value, [*weights, head], retain_graph=True)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
    jacobian = torch.stack(rows)
    return jacobian @ jacobian.T


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize(("initialization", "parametrization"), [("ntk", "ntk"), ("torch", "paper")])
@pytest.mark.parametrize(
    "architecture",
    [Layers(("relu", "leaky_relu"), (False,)), Layers(("tanh", "sigmoid"), (True,)), MIXED],
    ids=lambda one: "-".join(one.activations),
)
def test_networks_of_the_space_converge_as_the_root_of_the_width(
    architecture: Layers, initialization: str, parametrization: str
) -> None:
    x = inputs() * (math.sqrt(10) if initialization == "ntk" else 1)
    exact = infinite(architecture, x, parametrization=parametrization, sphere=False).ntk  # type: ignore[arg-type]
    widths, errors = (32, 128, 512), []
    for width in widths:
        grams = [empirical(architecture, x, width, seed, initialization) for seed in range(40)]
        errors.append(np.mean([distance(gram, exact) for gram in grams]))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)
    assert distance(torch.stack(grams).mean(dim=0), exact) < 0.06


def test_the_lemma_is_of_a_network_with_gain_two() -> None:
    x, generator = inputs(), torch.Generator().manual_seed(1)
    exact = infinite(MIXED, x).ntk
    mean = torch.stack([with_gain(MIXED, x, 400, generator) for _ in range(12)]).mean(dim=0)
    assert distance(mean, exact) < 0.06


def test_without_skips_the_printed_form_is_exact() -> None:
    x = inputs()
    architecture = Layers(("relu", "swish", "leaky_relu"), (False, False))
    printed, exact = (infinite(architecture, x, form=form).ntk for form in ("printed", "exact"))
    assert torch.equal(printed, exact)


@pytest.mark.parametrize("names", [("relu", "relu", "relu"), ("tanh", "tanh", "tanh")])
def test_with_skips_lemma_1_cannot_hold_as_printed(names: tuple[str, ...]) -> None:
    """Wide networks go to the exact form; what is printed stays away by a fixed share.

    With Tanh, whose mean is zero, the covariance that is printed is right, and G in place of A is what is wrong.
    """
    x, architecture = inputs(), Layers(names, (True, True))
    exact, printed = (infinite(architecture, x, form=form).ntk for form in ("exact", "printed"))
    generator = torch.Generator().manual_seed(2)
    for width in (100, 400):
        mean = torch.stack([with_gain(architecture, x, width, generator) for _ in range(10)]).mean(dim=0)
        assert distance(mean, exact) < 1.2 / math.sqrt(width)
        assert distance(printed, mean) > 0.25


def test_weights_as_printed_make_smooth_activations_linear() -> None:
    """With N(0, 1/m) a hidden layer sees arguments of size 1 / sqrt(m): a network of Tanh is a linear one."""
    assert [at_zero(name).slope for name in ("sigmoid", "tanh", "swish", "relu")] == [0.25, 1.0, 0.5, 0.0]
    x = inputs()
    kernel = infinite(Layers(("tanh", "tanh"), (False,)), x, parametrization="paper").ntk
    torch.testing.assert_close(kernel, 3 * x @ x.T)
    found = torch.stack([empirical(Layers(("tanh", "tanh"), (False,)), x, 512, s, "torch") for s in range(8)]).mean(0)
    assert distance(found, 3 * x @ x.T) < 0.05
    assert distance(found, infinite(Layers(("tanh", "tanh"), (False,)), x).ntk) > 0.2


@pytest.mark.parametrize("name", [name for name in np.load(REFERENCE).files if name.startswith("mlp")])
def test_against_neural_tangents(name: str) -> None:
    reference = np.load(REFERENCE)
    _, *activations, which = name.split()
    kernel = infinite(
        (activations, (False,) * (len(activations) - 1)),
        torch.from_numpy(reference["x"]),
        parametrization="ntk",
        sphere=False,
    )
    found = kernel.ntk if which == "ntk" else kernel.covariance
    # Theirs has tanh by 100 nodes in each direction, and the angle of equal inputs by an arc cosine.
    tolerance = 1e-7 if "tanh tanh" in name else 1e-8
    assert float(np.abs(found.numpy() - reference[name]).max()) <= tolerance * float(reference[name].max())


@pytest.mark.parametrize("parametrization", ["lemma", "ntk", "paper"])
def test_symmetric_and_positive(parametrization: str) -> None:
    x, generator = inputs(30, 6), np.random.default_rng(0)
    space = MLPSpace(layers=7)
    for _ in range(6):
        kernel = infinite(space.sample(generator), x, parametrization=parametrization)  # type: ignore[arg-type]
        for gram in (kernel.ntk, kernel.covariance):
            torch.testing.assert_close(gram, gram.T, rtol=1e-12, atol=1e-14 * float(gram.max()))
            values = torch.linalg.eigvalsh(gram)
            assert float(values[0]) > -1e-12 * float(values[-1])
        assert kernel.error < 1e-6


def test_blocks_and_batches() -> None:
    """Two sets of inputs give the blocks of the kernel of both; leading dimensions are batches."""
    x = inputs(8)
    whole, block = infinite(MIXED, x).ntk, infinite(MIXED, x[:3], x[3:]).ntk
    torch.testing.assert_close(block, whole[:3, 3:], rtol=1e-9, atol=0)
    pair = torch.stack([x[:4], x[4:]])
    torch.testing.assert_close(infinite(MIXED, pair).ntk[1], infinite(MIXED, x[4:]).ntk, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["relu", "tanh", "swish"])
def test_equal_and_opposite_inputs(name: str) -> None:
    """Rows of a copy are those of the original to rounding; a correlation of -1 is like any other."""
    x = inputs()
    both = torch.cat([x, x[:1], -x[1:2]])
    gram = infinite(((name, name), (True,)), both).ntk
    torch.testing.assert_close(gram[6], gram[0][[0, 1, 2, 3, 4, 5, 0, 7]], rtol=1e-12, atol=1e-12)
    near = torch.cat([x, x[:1], -unit(x[1:2] + 1e-4 * x[:1])])
    torch.testing.assert_close(infinite(((name, name), (True,)), near).ntk[7], gram[7], rtol=0, atol=2e-3)
    values = torch.linalg.eigvalsh(gram)
    assert abs(float(values[0])) < 1e-13 * float(values[-1])


def test_depths_are_those_of_shorter_networks() -> None:
    x = inputs()
    architecture = Layers(("relu", "tanh", "swish", "relu"), (True, False, True))
    found = by_depth(architecture, x)
    assert found.layers == [2, 3, 4, 5]
    for layers, kernel in zip(found.layers, found.kernels, strict=True):
        shorter = Layers(architecture.activations[: layers - 1], architecture.skips[: layers - 2])
        assert torch.equal(kernel.ntk, infinite(shorter, x).ntk)


@pytest.mark.parametrize("name", ["relu", "tanh", "swish"])
def test_gradients_of_inputs(name: str) -> None:
    x = inputs(3, 4).requires_grad_()
    architecture = Layers((name, name), (True,))

    def kernel(x: Tensor) -> Tensor:
        return infinite(architecture, x, sphere=False).ntk

    assert torch.autograd.gradcheck(kernel, (x,), atol=1e-6)
    torch.testing.assert_close(kernel(x).detach(), kernel(x.detach()), rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: infinite(MIXED, 2 * x), r"inputs on the unit sphere; their lengths are 2 to 2: use .*unit"),
        (lambda x: infinite(MIXED, x.float()), "inputs are float64 rows"),
        (lambda x: infinite(MIXED, x[0]), "inputs are float64 rows"),
        (lambda x: infinite(MIXED, x * math.nan), "inputs must be finite"),
        (lambda x: infinite((("relu", "gelu"), (False,)), x), "no dual activation is known for 'gelu'"),
        (lambda x: infinite((("relu", "relu"), ()), x), "a skip for each but the first; found 2 and 0"),
        (lambda x: infinite(MIXED, x, form="right"), "'right' is not one of exact, printed"),
        (lambda x: infinite(MIXED, x, parametrization="he"), "'he' is not one of lemma, ntk, paper"),
        (lambda x: infinite((("relu",) * 1300, (True,) * 1299), x), r"the kernel overflows at layer \d+; use fewer"),
        (lambda x: infinite((("swish",) * 60, (True,) * 59), x), "needs too fine a grid; use fewer layers"),
        (lambda x: unit(torch.zeros(2, 3)), "an input of zeros has no place on the unit sphere"),
    ],
)
def test_what_cannot_be_computed(change, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Theta0Error, match=message):
        change(inputs())
