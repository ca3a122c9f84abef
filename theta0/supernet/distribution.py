"""A distribution over architectures: independent logits over the candidates of each decision of a supernet.

alphas = Distribution.uniform(space.form("nodes"))
mix(model, alphas.mixtures(alphas.gumbel(generator)))
alphas.derive()                         # the most probable architecture
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theta0.errors import Theta0Error
from theta0.forms import Decision, Form, Mixtures, Weights

_NOISES = (0.0, *(2.0**power for power in range(-4, 9)))
_EACH = 400
"""Draws for each amount of noise."""


class Distribution:
    """Logits by the name of the decision; random numbers come from a generator of numpy's."""

    def __init__(self, form: Form[Any], logits: Mapping[str, Tensor]) -> None:
        for decision in form.decisions:
            found = logits.get(decision.name)
            if found is None or found.shape != (len(decision.candidates),):
                shape = "nothing" if found is None else tuple(found.shape)
                raise Theta0Error(
                    f"the decision {decision.name!r} needs {len(decision.candidates)} logits, one for each of "
                    f"{', '.join(decision.candidates)}; found {shape}: these logits are of another space or form"
                )
        self.form = form
        self.logits = {decision.name: logits[decision.name] for decision in form.decisions}

    @classmethod
    def uniform(
        cls, form: Form[Any], *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Distribution:
        """Logits of zero that gradients reach."""
        return cls(
            form,
            {
                decision.name: torch.zeros(len(decision.candidates), device=device, dtype=dtype, requires_grad=True)
                for decision in form.decisions
            },
        )

    def parameters(self) -> list[Tensor]:
        """All logits."""
        return list(self.logits.values())

    def state(self) -> dict[str, Tensor]:
        """A copy by the names of decisions."""
        return {name: value.detach().clone() for name, value in self.logits.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Takes the values of another one of the same form."""
        other = Distribution(self.form, state)
        with torch.no_grad():
            for name, value in self.logits.items():
                value.copy_(other.logits[name])

    def mixtures(self, weights: Weights) -> Mixtures:
        """What :func:`theta0.supernet.mix` takes."""
        return self.form.mixtures(weights)

    # Four ways to weigh.

    def softmax(self) -> Weights:
        """All candidates, by their probabilities."""
        return {d.name: _named(d, self.logits[d.name].softmax(dim=0)) for d in self.form.decisions}

    def relaxed(self, generator: np.random.Generator, temperature: float = 1.0) -> Weights:
        """All candidates, by the softmax of logits and Gumbel noise: the concrete distribution."""
        return {d.name: _named(d, self._noisy(d, generator, temperature)) for d in self.form.decisions}

    def gumbel(self, generator: np.random.Generator, temperature: float = 1.0, *, whole: bool = False) -> Weights:
        """The candidates that are drawn, with weight one, whose gradient is that of the soft weight (straight-through).

        With ``whole`` the others run too, with weight zero: gradients then come through all of them.
        """
        if whole and self.form.on_nodes:
            raise Theta0Error("operations on nodes are as wide as a single path makes them; take whole=False")
        return {d.name: self._hard(d, generator, temperature, whole) for d in self.form.decisions}

    def drawn(self, generator: np.random.Generator) -> Weights:
        """The same without gradients: nothing is multiplied."""
        with torch.no_grad():
            return {d.name: dict.fromkeys(self._hard(d, generator, 1.0, False), 1.0) for d in self.form.decisions}

    def _noisy(self, decision: Decision, generator: np.random.Generator, temperature: float) -> Tensor:
        if not (temperature > 0 and math.isfinite(temperature)):
            raise Theta0Error(f"a temperature is finite and more than 0, not {temperature}")
        logits = self.logits[decision.name]
        noise = torch.from_numpy(generator.gumbel(size=len(decision.candidates))).to(logits)
        return ((logits.log_softmax(dim=0) + noise) / temperature).softmax(dim=0)

    def _hard(
        self, decision: Decision, generator: np.random.Generator, temperature: float, whole: bool
    ) -> dict[str, Tensor]:
        soft = self._noisy(decision, generator, temperature)
        taken = set(soft.detach().topk(decision.draw).indices.tolist())
        return {
            name: float(place in taken) + (soft[place] - soft[place].detach())
            for place, name in enumerate(decision.candidates)
            if whole or place in taken
        }

    # Architectures.

    def strengths(self) -> dict[str, list[float]]:
        """Probabilities, as numbers."""
        return {name: value.detach().double().softmax(dim=0).tolist() for name, value in self.logits.items()}

    def derive(self) -> Any:
        """The most probable architecture."""
        return self.form.derive(self.strengths())

    def draw(self, generator: np.random.Generator, noise: float = 1.0) -> Any:
        """An architecture: the strongest candidates after Gumbel noise, which for ``noise`` 1 is a draw."""
        strengths = {}
        for name, value in self.logits.items():
            found = value.detach().double().log_softmax(dim=0).cpu().numpy()
            found = found + noise * generator.gumbel(size=len(found))
            strengths[name] = np.exp(found - found.max()).tolist()
        return self.form.derive(strengths)

    def near(self, generator: np.random.Generator) -> Iterator[Any]:
        """The most probable architecture, then others, with more and more noise; each comes once."""
        seen = set()
        for noise in _NOISES:
            for _ in range(_EACH if noise else 1):
                found = self.draw(generator, noise) if noise else self.derive()
                if found not in seen:
                    seen.add(found)
                    yield found

    def share(self, operations: frozenset[str]) -> float:
        """The mean probability of some operations, over the decisions that have them."""
        strengths, found = self.strengths(), []
        for name, candidates, *_ in self.form.decisions:
            if operations & set(candidates):
                pairs = zip(strengths[name], candidates, strict=True)
                found.append(math.fsum(probability for probability, op in pairs if op in operations))
        return math.fsum(found) / len(found) if found else 0.0


def _named(decision: Decision, values: Tensor) -> dict[str, Tensor]:
    return dict(zip(decision.candidates, values.unbind(), strict=True))
