"""One step of stochastic gradient descent by a recipe, on one process or several.

Nothing in a step waits for a GPU, and nothing is drawn at random but from the seed that the step is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.averaging import Average
from theta0.compiling import compiled
from theta0.errors import Theta0Error
from theta0.evaluation import autocast, check_logits
from theta0.processes import Processes
from theta0.recipe import Recipe
from theta0.seeding import derived


class Step:
    """``loss = step(x, y, rate=..., seed=...)`` moves the weights of a network; :meth:`state` is all that it remembers.

    The network is moved to the device, and brought to the layout that the recipe asks for.
    """

    def __init__(
        self, model: nn.Module, recipe: Recipe, classes: int, device: torch.device, processes: Processes
    ) -> None:
        self.recipe, self.classes, self.device, self.processes = recipe, classes, device, processes
        self.model = model.to(device)
        self.layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        set_layout(model, self.layout)
        processes.copy([*model.parameters(), *model.buffers()])
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.SGD(
            self.parameters,
            lr=recipe.learning_rate,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
            weight_decay=recipe.weight_decay,
            fused=device.type in ("cpu", "cuda"),
        )
        self.average = Average(model, recipe.ema) if recipe.ema else None
        self.network = _network(model, recipe)

    def __call__(self, x: Tensor, y: Tensor, *, rate: float, seed: int) -> Tensor:
        """Takes the whole batch, of which each process uses its share.

        Gives the loss of the batch.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        # Processes drop different paths.
        _seed(self.device, derived(seed, self.processes.rank))
        share = slice(self.processes.rank, None, self.processes.count)
        loss = self._loss(x[share].contiguous(memory_format=self.layout), y[share]) / len(y)
        torch.autograd.backward(loss)
        loss = loss.detach()
        self.processes.add([loss, *(p.grad for p in self.parameters if p.grad is not None)])
        if self.recipe.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update()
        return loss

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over images."""
        if self.recipe.compile is not None:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        with autocast(self.device, self.recipe.precision):
            outputs = self.network(x)
        losses = [
            F.cross_entropy(
                check_logits(logits, len(y), self.classes).float(),
                y,
                reduction="sum",
                label_smoothing=self.recipe.label_smoothing,
            )
            for logits in (outputs if isinstance(outputs, tuple) else (outputs,))
        ]
        return losses[0] if len(losses) == 1 else losses[0] + self.recipe.auxiliary * losses[1]

    def kept(self) -> nn.Module:
        """The network that is evaluated: that of the averaged weights, where the recipe averages."""
        model = self.model if self.average is None else self.average.model
        self.processes.copy(list(model.buffers()))
        return model

    def finish(self) -> None:
        """Gives the network the weights that are kept."""
        kept = self.kept()
        if kept is not self.model:
            self.model.load_state_dict(kept.state_dict())

    def state(self) -> dict[str, Any]:
        """Tensors and plain values, from which :meth:`load` goes on."""
        average = None if self.average is None else [self.average.steps, self.average.model.state_dict()]
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "average": average}

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from ``state``."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.steps, weights = state["average"]
            self.average.model.load_state_dict(weights)


def set_layout(model: nn.Module, layout: torch.memory_format) -> None:
    """Lays the weights of convolutions out in memory, each as it is or channels last."""
    model.to(memory_format=layout)  # type: ignore[call-overload]


def _network(model: nn.Module, recipe: Recipe) -> Callable[[Tensor], Any]:
    """From images to logits, or to those of the network and the auxiliary classifier."""
    network: Callable[[Tensor], Any] = model
    if recipe.auxiliary:
        if getattr(model, "auxiliary", None) is None:
            raise Theta0Error(
                f"the recipe gives an auxiliary classifier the weight {recipe.auxiliary:g}, but this network has none; "
                f"build it with auxiliary=True, or use dataclasses.replace(recipe, auxiliary=0.0)"
            )
        network = model.with_auxiliary  # type: ignore[assignment]
    return network if recipe.compile is None else compiled(network, recipe.compile)


def _seed(device: torch.device, seed: int) -> None:
    """Sets the generators that layers draw from; those of other devices keep their state."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)
