"""Zen-score: how far features move when the images do, with Gaussian weights and images, undone for normalisation.

The paper removes shortcuts first; a module does not tell which of its sums are shortcuts, so here they stay.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from theta0.errors import Theta0Error
from theta0.evidence import Evidence
from theta0.metrics import Metric, Value, Variant, register

_STEP = 0.01
_REPEATS = 4
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)


def gaussian(e: Evidence, generator: torch.Generator) -> dict[str, Tensor]:
    """Parameters by name: dense weights from N(0, 1), normalisation at its start, biases zero, others as they are."""
    dense = {id(weight.value) for weight in e.weights}
    ones = {id(m.weight) for m in e.model.modules() if isinstance(m, _NORMS) and m.weight is not None}
    drawn = {}
    for name, parameter in e.model.named_parameters():
        value = parameter.detach()
        if id(parameter) in dense:
            value = torch.randn(value.shape, generator=generator, dtype=value.dtype).to(value.device)
        elif id(parameter) in ones:
            value = torch.ones_like(value)
        elif name.endswith("bias"):
            value = torch.zeros_like(value)
        drawn[name] = value
    return drawn


def _zen(e: Evidence) -> Value:
    generator = torch.Generator().manual_seed(0)
    weights = gaussian(e, generator)
    last: list[Tensor] = []
    spreads: dict[nn.Module, Tensor] = {}

    def note(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(output, Tensor) and output.dim() == 4 and output[0, 0].numel() > 1:
            last[:] = [output.clone()]  # before something changes it in place
        if isinstance(module, nn.BatchNorm2d):
            spreads[module] = inputs[0].var(dim=(0, 2, 3), correction=0).double().mean() + module.eps

    def features(x: Tensor) -> Tensor:
        last.clear()
        functional_call(e.model, weights, (x,))
        if not last:
            raise Theta0Error("Zen-score is of feature maps (N, C, H, W), and no layer of this network gives any")
        return last[0].double()

    def noise() -> Tensor:
        return torch.randn(e.x.shape, generator=generator, dtype=e.x.dtype).to(e.x.device)

    leaves = [module for module in e.model.modules() if not list(module.children())]
    handles = [module.register_forward_hook(note) for module in leaves]
    try:
        with torch.no_grad():
            total = 0.0
            for _ in range(_REPEATS):
                x = noise()
                moved = features(x + _STEP * noise())
                total += float((features(x) - moved).flatten(1).norm(dim=1).mean()) / _REPEATS
            scale = float(torch.stack(list(spreads.values())).log().sum()) / 2 if spreads else 0.0
    finally:
        for handle in handles:
            handle.remove()
    return (float("-inf"), "dead") if total == 0 else float(torch.tensor(total, dtype=torch.float64).log()) + scale


register(
    Metric(
        "zen",
        "Lin et al., ICCV 2021",
        "higher",
        {"paper": Variant(_zen, "log E ||f(x) - f(x + 0.01 e)|| + sum over batch normalisations of log deviation")},
    )
)
