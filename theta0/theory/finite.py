"""The NTK of a network of finite width in a parametrization of :mod:`theta0.theory.mlp`, to set beside its limit."""

from __future__ import annotations

import math

from torch import Tensor, nn

from theta0.kernel import Recording, all_parameters
from theta0.spaces.mlp import Layers, MLPSpace
from theta0.theory.mlp import Parametrization


class _Gain(nn.Module):
    """sqrt(2) s(h): the factor 2 of Lemma 1."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = math.sqrt(2) * self.activation(x)
        return result


def finite(
    architecture: Layers, x: Tensor, *, width: int, seed: int, parametrization: Parametrization = "lemma"
) -> Tensor:
    """(N, N) float64 of inputs ``x`` (N, d): one network of one output, built by the space."""
    model = MLPSpace(layers=len(architecture.activations) + 1).build(
        architecture,
        seed=seed,
        shape=(1, 1, x.shape[1]),
        classes=1,
        width=width,
        initialization="torch" if parametrization == "paper" else "ntk",
    )
    model.double()
    if parametrization == "lemma":
        model.activations = nn.ModuleList(_Gain(one) for one in model.activations)  # type: ignore[union-attr]
        x = x * math.sqrt(x.shape[1])  # the NTK parametrization divides by it in the first layer
    with Recording(model) as recording:
        logits = model(x)
    return recording.gram(logits.sum(), all_parameters)
