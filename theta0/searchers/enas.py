"""ENAS (Pham et al., ICML 2018): a recurrent controller writes architectures, and is rewarded by their accuracy.

    log p(choices) <- log p + (accuracy - baseline) grad log p, and a bonus for entropy, by Adam

An epoch trains the shared weights with what the controller writes; then its steps follow, each on one validation batch.
At the end it writes ``candidates_count`` architectures, of which the most accurate one is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error
from theta0.initialize import seeded
from theta0.oneshot import Run, accuracy, searcher
from theta0.oneshot.method import Batch
from theta0.searchers import searchers
from theta0.searchers.codes import allowed_of
from theta0.searchers.shared import SharedWeights
from theta0.seeding import derived

_TRIES = 1000
_COUNTED = 2000
"""Draws of NASI's distribution that a controller is biased by."""


@dataclass(frozen=True)
class ENAS(SharedWeights):
    """The controller's settings are those of the official code; its learning rate is ``alpha_rate``."""

    search_epochs: int = 150
    alpha_rate: float = 3.5e-4
    hidden: int = 64
    controller_steps: int = 50
    temperature: float = 5.0
    tanh: float = 2.5
    entropy: float = 1e-4
    decay: float = 0.99
    """Of the baseline."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden < 1 or self.controller_steps < 1 or not 0 <= self.decay < 1:
            raise Theta0Error(
                f"hidden and controller_steps are 1 or more and decay lies from 0 to below 1; they are {self.hidden}, "
                f"{self.controller_steps} and {self.decay}"
            )
        if not (self.temperature > 0 and self.tanh > 0 and self.entropy >= 0):
            raise Theta0Error(
                f"temperature and tanh are more than 0 and entropy is 0 or more; they are {self.temperature}, "
                f"{self.tanh} and {self.entropy}"
            )

    def learner(self, run: Run) -> Writer:
        """The controller, its optimizer and the baseline."""
        return Writer(run, self)

    def drawn(self, run: Run, generator: np.random.Generator) -> Any:
        """What the controller writes."""
        assert isinstance(run.learner, Writer)
        with torch.no_grad():
            return run.learner.write(generator)[0]

    def extra_steps(self) -> int:
        """Those of the controller."""
        return self.controller_steps

    def extra(self, run: Run, validation: Batch, generator: np.random.Generator) -> None:
        """REINFORCE with a moving baseline."""
        assert isinstance(run.learner, Writer)
        architecture, log_probability, entropy = run.learner.write(generator)
        reward = accuracy(run, architecture, validation)
        run.learner.learn(reward, log_probability, entropy)

    def current(self, run: Run) -> Any:
        """A draw."""
        return self.drawn(run, run.generator("current", run.done))


class Writer:
    """The controller under way."""

    def __init__(self, run: Run, settings: ENAS) -> None:
        self.run, self.settings = run, settings
        self.sizes = [len(choice.candidates) for choice in run.space.choices]
        with seeded(derived(run.seed, "controller")):
            self.controller = Controller(self.sizes, settings.hidden, settings.temperature, settings.tanh)
        if run.warmed is not None:
            self.controller.bias = _frequencies(run, self.sizes)
        self.adam = torch.optim.Adam(self.controller.parameters(), lr=settings.alpha_rate)
        self.baseline: float | None = None

    def write(self, generator: np.random.Generator) -> tuple[Any, Tensor, Tensor]:
        """An architecture that may be evaluated, its log-probability and the entropy of what it was drawn from."""
        for _ in range(_TRIES):
            codes, log_probability, entropy = self.controller.write(generator)
            architecture = allowed_of(self.run.task, codes)
            if architecture is not None:
                return architecture, log_probability, entropy
        architecture = self.run.task.sample(generator)
        _, log_probability, entropy = self.controller.write(generator, self.run.space.encode(architecture))
        return architecture, log_probability, entropy

    def learn(self, reward: float, log_probability: Tensor, entropy: Tensor) -> None:
        """A step of Adam."""
        start = reward if self.baseline is None else self.baseline
        self.baseline = self.settings.decay * start + (1 - self.settings.decay) * reward
        loss = -(reward - self.baseline) * log_probability - self.settings.entropy * entropy
        self.adam.zero_grad()
        torch.autograd.backward(loss)
        self.adam.step()

    def state(self) -> dict[str, Any]:
        """Tensors and plain values."""
        return {
            "controller": self.controller.state_dict(),
            "adam": self.adam.state_dict(),
            "baseline": self.baseline,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state."""
        self.controller.load_state_dict(state["controller"])
        self.adam.load_state_dict(state["adam"])
        self.baseline = state["baseline"]


class Controller(nn.Module):
    """An LSTM that is fed each decision and says the next one; logits are tanh * tanh(h / temperature)."""

    def __init__(self, sizes: list[int], hidden: int, temperature: float, tanh: float) -> None:
        super().__init__()
        self.sizes, self.temperature, self.tanh = sizes, temperature, tanh
        self.cell = nn.LSTMCell(hidden, hidden)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.embeddings = nn.ModuleList(nn.Embedding(size, hidden) for size in sizes)
        self.heads = nn.ModuleList(nn.Linear(hidden, size) for size in sizes)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        self.bias: list[Tensor] = [torch.zeros(size) for size in sizes]

    def write(
        self, generator: np.random.Generator, given: tuple[int, ...] | None = None
    ) -> tuple[list[int], Tensor, Tensor]:
        """A code for each choice (those that are ``given``), the sum of log-probabilities, and that of entropies."""
        x, state = self.start[None], None
        codes, logs, entropies = [], [], []
        for place, (embedding, head) in enumerate(zip(self.embeddings, self.heads, strict=True)):
            state = self.cell(x, state)
            logits = self.tanh * torch.tanh(head(state[0])[0] / self.temperature) + self.bias[place]
            log = logits.log_softmax(dim=0)
            if given is None:
                noise = torch.from_numpy(generator.gumbel(size=self.sizes[place])).to(log)
                code = int((log.detach() + noise).argmax())
            else:
                code = given[place]
            codes.append(code)
            logs.append(log[code])
            entropies.append(-(log.exp() * log).sum())
            x = embedding(torch.tensor([code]))
        return codes, torch.stack(logs).sum(), torch.stack(entropies).sum()


def _frequencies(run: Run, sizes: list[int]) -> list[Tensor]:
    """The logarithms of how often NASI's distribution takes each candidate of each choice, none of them never."""
    assert run.warmed is not None
    counts = [torch.ones(size) for size in sizes]
    generator = run.generator("frequencies")
    for _ in range(_COUNTED):
        for count, code in zip(counts, run.space.encode(run.warmed.draw(generator)), strict=True):
            count[code] += 1
    return [(count / count.sum()).log() for count in counts]


enas: Any = searchers.register("enas")(searcher(ENAS))
