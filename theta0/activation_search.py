"""DARTS on the Eigen-NAS space: activations by a softmax, skip connections by numbers in [0, 1] (Zhu et al., 5.1).

    found = search(data.train, epochs=2, seed=0)
    found.probabilities, found.skips, found.architecture

Every layer runs all five activations and adds what comes in times alpha, which starts at 1/2 and is kept in [0, 1]; the
connection stays where alpha ends above 1/2. Half of the images train the weights, the other half the architecture, in
turns (first-order DARTS: Liu et al., ICLR 2019, whose optimizers and numbers these are).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from theta0.data.dataset import ImageDataset
from theta0.data.splitting import split
from theta0.errors import DivergedError, Theta0Error
from theta0.initialize import seeded
from theta0.ops import ACTIVATIONS
from theta0.seeding import derived
from theta0.spaces.mlp import ACTIVATIONS as NAMES
from theta0.spaces.mlp import Layers

Floats = NDArray[np.float64]


class MixedMLP(nn.Module):
    """All networks of the space at once; weights of N(0, 1 / width) as in the space's own networks."""

    def __init__(self, layers: int, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        if layers < 3:
            raise Theta0Error(f"the Eigen-NAS space begins at 3 layers, not {layers}")
        sizes = [inputs] + [width] * (layers - 1)
        self.layers = nn.ModuleList(nn.Linear(size, width, bias=False) for size in sizes[:-1])
        self.head = nn.Linear(width, classes, bias=False)
        for layer in (*self.layers, self.head):
            nn.init.normal_(layer.weight, std=1 / math.sqrt(width))
        self.choices = nn.ModuleList(ACTIVATIONS[name]() for name in NAMES)
        self.logits = nn.Parameter(torch.zeros(layers - 1, len(NAMES)))
        self.skips = nn.Parameter(torch.full((layers - 2,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W), or vectors (N, D), to logits (N, classes)."""
        x = torch.flatten(x, 1)
        shares = torch.softmax(self.logits, dim=1)
        for place, layer in enumerate(self.layers):
            h = layer(x)
            value = sum(share * choice(h) for share, choice in zip(shares[place], self.choices, strict=True))
            x = value if place == 0 else value + self.skips[place - 1] * x
        result: Tensor = self.head(x)
        return result

    def architecture(self) -> Layers:
        """The most probable activations, and the connections whose alpha is above 1/2."""
        chosen = self.logits.detach().argmax(dim=1).tolist()
        return Layers(tuple(NAMES[i] for i in chosen), tuple((self.skips.detach() > 0.5).tolist()))


@dataclass(frozen=True)
class Found:
    """What a search ended with."""

    architecture: Layers
    probabilities: Floats
    """(layers - 1, 5), in the order of the space's activations."""
    skips: Floats
    """(layers - 2,) alphas."""
    loss: list[float]
    """Mean loss of the weights' batches, epoch by epoch."""
    steps: int
    seconds: float

    def facts(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "probabilities": np.round(self.probabilities, 4).tolist(),
            "skips": np.round(self.skips, 4).tolist(),
            "loss": [round(value, 4) for value in self.loss],
            "steps": self.steps,
            "seconds": round(self.seconds, 1),
        }


def search(
    images: ImageDataset,
    *,
    epochs: int = 50,
    seed: int = 0,
    layers: int = 10,
    width: int = 1024,
    batch: int = 64,
    learning_rate: float = 0.025,
    architecture_rate: float = 3e-4,
    device: torch.device | str = "cpu",
    progress: Callable[[int, Found], None] | None = None,
) -> Found:
    """Searches on ``images``, of which a half trains the weights; ``progress`` gets each epoch's state."""
    if epochs < 1 or width < 1 or batch < 1:
        raise Theta0Error(f"epochs, width and batch are 1 or more, not {epochs}, {width} and {batch}")
    started, device = time.perf_counter(), torch.device(device)
    weights_set, own_set = (part.to(device) for part in split(images, (0.5, 0.5), seed=derived(seed, "halves")))
    with seeded(seed):
        model = MixedMLP(layers, math.prod(images.shape), width, len(images.classes)).to(device)
    own = [model.logits, model.skips]
    rest = [p for name, p in model.named_parameters() if name not in ("logits", "skips")]
    sgd = torch.optim.SGD(rest, lr=learning_rate, momentum=0.9, weight_decay=3e-4)
    adam = torch.optim.Adam(own, lr=architecture_rate, betas=(0.5, 0.999))
    losses: list[float] = []
    steps = 0

    def state() -> Found:
        return Found(
            model.architecture(),
            torch.softmax(model.logits.detach().double(), dim=1).cpu().numpy(),
            model.skips.detach().double().cpu().numpy(),
            list(losses),
            steps,
            time.perf_counter() - started,
        )

    normalization = images.mean_std()
    for epoch in range(epochs):
        for group in sgd.param_groups:
            group["lr"] = learning_rate * (1 + math.cos(math.pi * epoch / epochs)) / 2
        parts = [
            part.batches(batch, seed=derived(seed, name, epoch), normalization=normalization)
            for name, part in (("weights", weights_set), ("own", own_set))
        ]
        seen = []
        for (x, y), (own_x, own_y) in zip(*parts, strict=False):
            for parameters, others, optimizer, inputs, labels in (
                (own, rest, adam, own_x, own_y),
                (rest, own, sgd, x, y),
            ):
                for parameter in others:
                    parameter.requires_grad_(False)
                loss = F.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                for parameter in others:
                    parameter.requires_grad_(True)
                if parameters is rest:
                    nn.utils.clip_grad_norm_(rest, 5.0)
                optimizer.step()
            with torch.no_grad():
                model.skips.clamp_(0, 1)
            seen.append(loss.detach())
            steps += 1
        losses.append(float(torch.stack(seen).mean()))
        if not math.isfinite(losses[-1]):
            raise DivergedError(f"the loss is {losses[-1]} in epoch {epoch}; lower the learning rate")
        if progress is not None:
            progress(epoch + 1, state())
    return state()
