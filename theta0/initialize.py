"""Initial parameters theta_0 by name.

``torch`` leaves what each layer draws for itself. The others draw the weights of convolutions and linear layers from a
normal distribution of mean zero, and set biases to zero:

========  ===========================================================================================
lecun     variance 1 / fan_in
xavier    variance 2 / (fan_in + fan_out)
he        variance 2 / fan_in
he_out    variance 2 / fan_out, which keeps gradients where he keeps activations
ntk       variance 1, and the layer multiplies its weight by 1 / sqrt(fan_in): the NTK parameterization
========  ===========================================================================================

Normalisation layers keep their constant start in all of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from theta0.errors import Theta0Error, nearest

_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


class Scaled(nn.Module):
    """The parametrization ``weight = scale * original``."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, original: Tensor) -> Tensor:
        """Any shape."""
        return self.scale * original


def _normal(deviation: Callable[[int, int], float]) -> Callable[[nn.Module], None]:
    def draw(layer: nn.Module) -> None:
        weight: Tensor = layer.weight  # type: ignore[assignment]
        fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(weight)
        nn.init.normal_(weight, std=deviation(fan_in, fan_out))

    return draw


def _ntk(layer: nn.Module) -> None:
    if parametrize.is_parametrized(layer, "weight"):
        raise Theta0Error(f"the weight of {layer} is parametrized already; build the network anew")
    weight: Tensor = layer.weight  # type: ignore[assignment]
    fan_in, _ = nn.init._calculate_fan_in_and_fan_out(weight)
    nn.init.normal_(weight)
    parametrize.register_parametrization(layer, "weight", Scaled(1 / math.sqrt(fan_in)), unsafe=True)


_SCHEMES: dict[str, Callable[[nn.Module], None] | None] = {
    "torch": None,
    "lecun": _normal(lambda fan_in, fan_out: math.sqrt(1 / fan_in)),
    "xavier": _normal(lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out))),
    "he": _normal(lambda fan_in, fan_out: math.sqrt(2 / fan_in)),
    "he_out": _normal(lambda fan_in, fan_out: math.sqrt(2 / fan_out)),
    "ntk": _ntk,
}
SCHEMES = tuple(_SCHEMES)
"""The names of the initializations."""


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Runs a block with the global random state set by ``seed``, and puts the old state back.

    Layers draw their start from the CPU's global generator; there is no other way in.
    """
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


def check_scheme(scheme: str) -> None:
    """An error for a name that is no initialization."""
    if scheme not in _SCHEMES:
        raise Theta0Error(f"no initialization is called {scheme!r}; {nearest(scheme, _SCHEMES)}")


def initialize(model: nn.Module, scheme: str, seed: int) -> None:
    """Draws the parameters of ``model`` anew by ``scheme``; the same seed gives the same parameters."""
    check_scheme(scheme)
    draw = _SCHEMES[scheme]
    with seeded(seed):
        for module in model.modules():
            if draw is None:
                if callable(reset := getattr(module, "reset_parameters", None)):
                    reset()
            elif isinstance(module, _LAYERS):
                draw(module)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
