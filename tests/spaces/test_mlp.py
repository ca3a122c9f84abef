from __future__ import annotations

import numpy as np
import pytest
import torch

from theta0.errors import ParseError, Theta0Error
from theta0.spaces.mlp import ACTIVATIONS, Layers, MLPSpace

FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.maximum(0.01 * x, x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)) - 0.5,
    "tanh": np.tanh,
    "swish": lambda x: x / (1 + np.exp(-x)),
}


def test_equation_1_against_numpy() -> None:
    space, generator = MLPSpace(), np.random.default_rng(0)
    for _ in range(20):
        architecture = space.sample(generator)
        model = space.build(architecture, seed=0, width=16, shape=(1, 4, 4)).double()
        x = np.random.default_rng(1).standard_normal((3, 1, 4, 4))
        values = x.reshape(3, 16)
        weights = [p.detach().numpy() for p in model.parameters()]
        for i, (name, weight) in enumerate(zip(architecture.activations, weights[:-1], strict=True)):
            skip = values if i and architecture.skips[i - 1] else 0
            values = FUNCTIONS[name](values @ weight.T) + skip
        expected = torch.from_numpy(values @ weights[-1].T)
        torch.testing.assert_close(model(torch.from_numpy(x)), expected, rtol=1e-12, atol=1e-12)


def test_weights_have_the_variance_of_the_paper() -> None:
    """N(0, 1/m) for every layer, the first included."""
    space = MLPSpace()
    model = space.build(space.parse(space.notation), seed=0)
    for weight in model.parameters():
        assert float(weight.detach().var()) * 1024 == pytest.approx(1, abs=0.1)


def test_depth_of_the_space() -> None:
    space = MLPSpace(layers=3)
    assert space.size == 5**2 * 2
    assert space.parse("relu tanh+") == Layers(("relu", "tanh"), (True,))
    assert [str(cell) for cell in space.cells(space.parse("relu tanh+")).values()] == [
        "1 in; 1 = relu(0); 2 = skip_connect(1) + tanh(1); out = 2"
    ]
    with pytest.raises(Theta0Error, match="3 layers, not 2"):
        MLPSpace(layers=2)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("relu tanf", 5, "one of relu"),
        ("relu+ tanh", 4, "no skip connection in the first layer"),
        ("relu", 4, "2 activations (there are 1)"),
    ],
)
def test_parse_errors(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        MLPSpace(layers=3).parse(text)
    assert caught.value.position == position
    assert expected in caught.value.expected


def test_activations_vanish_at_zero() -> None:
    from theta0.ops import ACTIVATIONS as MODULES

    assert set(MODULES) == set(ACTIVATIONS) == set(FUNCTIONS)
    x = torch.linspace(-4, 4, 101, dtype=torch.float64)
    for name, module in MODULES.items():
        assert float(module()(torch.zeros(()))) == 0
        torch.testing.assert_close(module()(x), torch.from_numpy(FUNCTIONS[name](x.numpy())))
