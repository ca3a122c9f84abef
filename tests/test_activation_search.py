from __future__ import annotations

import numpy as np
import pytest
import torch

import theta0
from theta0.activation_search import MixedMLP, search
from theta0.errors import DivergedError, Theta0Error
from theta0.spaces.mlp import ACTIVATIONS, Layers, MLPSpace


def test_a_corner_of_the_mixture_is_a_network_of_the_space() -> None:
    """All weight on one activation and alphas of 0 or 1."""
    architecture = Layers(("tanh", "swish", "relu"), (True, False))
    model = MLPSpace(layers=4).build(architecture, seed=0, width=8, shape=(1, 2, 3), classes=5)
    mixed = MixedMLP(4, 6, 8, 5)
    with torch.no_grad():
        for own, other in zip(mixed.layers, model.layers, strict=True):  # type: ignore[arg-type]
            own.weight.copy_(other.weight)
        mixed.head.weight.copy_(model.head.weight)  # type: ignore[union-attr, operator]
        for place, name in enumerate(architecture.activations):
            mixed.logits[place, ACTIVATIONS.index(name)] = 200.0
        mixed.skips.copy_(torch.tensor(architecture.skips).float())
    x = torch.randn(7, 1, 2, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(mixed(x), model(x))
    assert mixed.architecture() == architecture


def test_it_begins_in_the_middle_with_the_papers_weights() -> None:
    torch.manual_seed(0)
    model = MixedMLP(10, 784, 256, 10)
    assert torch.equal(model.skips.detach(), torch.full((8,), 0.5))
    assert torch.equal(torch.softmax(model.logits.detach(), dim=1), torch.full((9, 5), 0.2))
    for layer in (*model.layers, model.head):
        assert float(layer.weight.detach().var()) * 256 == pytest.approx(1, abs=0.1)  # type: ignore[operator, union-attr]


def test_a_search_on_digits() -> None:
    images = theta0.load("digits").train
    seen: list[int] = []
    settings = {"epochs": 3, "layers": 4, "width": 24, "batch": 32, "architecture_rate": 0.02}
    state = torch.get_rng_state()
    found = search(images, seed=0, progress=lambda epoch, _: seen.append(epoch), **settings)  # type: ignore[arg-type]
    assert torch.equal(torch.get_rng_state(), state)
    assert seen == [1, 2, 3]
    assert found.loss[-1] < found.loss[0]
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(3))
    assert np.abs(found.probabilities - 0.2).max() > 0.02
    assert ((found.skips >= 0) & (found.skips <= 1)).all()
    assert found.architecture.activations == tuple(ACTIVATIONS[i] for i in found.probabilities.argmax(axis=1))
    assert found.architecture.skips == tuple(found.skips > 0.5)
    again, other = (search(images, seed=seed, **settings) for seed in (0, 1))  # type: ignore[arg-type]
    assert np.array_equal(again.probabilities, found.probabilities)
    assert not np.array_equal(other.probabilities, found.probabilities)


def test_what_cannot_be_searched() -> None:
    images = theta0.load("digits").train
    with pytest.raises(Theta0Error, match="epochs, width and batch are 1 or more, not 0, 8 and 64"):
        search(images, epochs=0, width=8)
    with pytest.raises(Theta0Error, match="begins at 3 layers, not 2"):
        search(images, layers=2, width=8)
    with pytest.raises(DivergedError, match="the loss is nan in epoch 0; lower the learning rate"):
        search(images, epochs=1, width=8, layers=3, learning_rate=float("nan"))
