"""BOHB (Falkner et al., ICML 2018): Hyperband says how long to train, two kernel densities say what.

Of the trainings on the largest budget that has enough of them, the best are the density l(x), the others g(x). The
next architecture is that of largest l(x) / g(x) among draws from l widened, or a random one. Hyperband starts many with
short trainings and keeps the best for longer ones; with one budget there is nothing to halve, and the densities choose
all alone, as in NAS-Bench-201 (whose settings are num_samples=4, random_fraction=0, min_bandwidth=0.3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.candidates import Floats
from theta0.errors import Theta0Error
from theta0.searchers import Search, Task, searchers
from theta0.searchers.codes import allowed_of

Codes = NDArray[np.int64]
Seen = Mapping[int, list[tuple[Sequence[int], float]]]
"""For each training budget the codes that were evaluated on it, and their values."""


@searchers.register("bohb")
def bohb(
    task: Task,
    generator: np.random.Generator,
    *,
    eta: float = 3.0,
    top: float = 0.15,
    num_samples: int = 64,
    random_fraction: float = 1 / 3,
    bandwidth_factor: float = 3.0,
    min_bandwidth: float = 1e-3,
) -> Search:
    """``eta`` is the smallest ratio of budgets in a bracket, ``top`` the share of evaluations that l is made of.

    ``bandwidth_factor`` widens l for the ``num_samples`` draws. A failed training counts among the worst.
    """
    for name, value, most in (("top", top, 1.0), ("min_bandwidth", min_bandwidth, 1.0)):
        if not 0 < value < most:
            raise Theta0Error(f"{name} lies between 0 and {most:g}, not at {value}")
    if not (eta > 1 and num_samples >= 1 and 0 <= random_fraction <= 1 and bandwidth_factor > 0):
        raise Theta0Error(
            f"eta is more than 1, num_samples at least 1, random_fraction 0 to 1 and bandwidth_factor more than 0; "
            f"they are {eta}, {num_samples}, {random_fraction} and {bandwidth_factor}"
        )
    sizes = np.array([len(choice.candidates) for choice in task.space.choices])
    seen: Seen = {epochs: [] for epochs in task.epochs}

    def proposed() -> tuple[Any, bool]:
        if generator.random() >= random_fraction:
            densities = fitted(seen, sizes, top, min_bandwidth)
            if densities is not None:
                drawn = densities[0].draw(num_samples, bandwidth_factor, generator)
                found = [(codes, allowed_of(task, codes)) for codes in drawn.tolist()]
                kept = [(codes, architecture) for codes, architecture in found if architecture is not None]
                if kept:
                    codes = np.array([codes for codes, _ in kept])
                    worth = densities[0].log(codes) - densities[1].log(codes)
                    return kept[int(np.argmax(worth))][1], True
        return task.sample(generator), False

    for bracket in itertools.cycle(brackets(task.epochs, eta)):
        results: list[tuple[Any, float]] = []
        for rung, (epochs, count) in enumerate(bracket):
            best = sorted((one for one in results if one[1] > -math.inf), key=lambda one: -one[1])[:count]
            results = []
            for place in range(count if rung == 0 else len(best)):
                architecture, modelled = proposed() if rung == 0 else (best[place][0], False)
                (outcome,) = yield [task.proposal(architecture, epochs, rung=rung, model=float(modelled))]
                results.append((architecture, outcome.ranked))
                seen[epochs].append((task.space.encode(architecture), outcome.ranked))


def brackets(budgets: Sequence[int], eta: float) -> list[list[tuple[int, int]]]:
    """Hyperband's brackets, the one of shortest trainings first: (epochs, number of architectures) for each rung.

    From the largest budget down, the next is the largest that is smaller by ``eta`` or more. Each rung costs about as
    much as the one before: where Hyperband has a power of eta, here is the ratio of the budgets that there are.
    """
    ladder = [max(budgets)]
    while lower := [budget for budget in budgets if budget * eta <= ladder[0]]:
        ladder.insert(0, max(lower))
    found = []
    for first in range(len(ladder)):
        rungs = ladder[first:]
        count = math.ceil(len(ladder) / len(rungs) * rungs[-1] / rungs[0])
        found.append([(epochs, max(1, count * rungs[0] // epochs)) for epochs in rungs])
    return found


def fitted(seen: Seen, sizes: Codes, top: float, min_bandwidth: float) -> tuple[Density, Density] | None:
    """The densities of good and bad codes on the largest budget with enough of them; None if there is none."""
    least = len(sizes) + 1
    for epochs in sorted(seen, reverse=True):
        ranked = sorted(seen[epochs], key=lambda one: -one[1])
        succeeded = sum(value > -math.inf for _, value in ranked)
        if succeeded >= least + 2:
            codes = np.array([codes for codes, _ in ranked])
            good = max(least, int(top * succeeded))
            bad = max(least, len(ranked) - good)  # with few evaluations the two overlap
            return Density(codes[:good], sizes, min_bandwidth), Density(codes[-bad:], sizes, min_bandwidth)
    return None


class Density:
    """A product of Aitchison-Aitken kernels: each choice keeps its code with probability 1 - h, or takes another.

    h = 1.06 s n^(-1 / (4 + d)), s the deviation of the codes as in the BOHB code; but at most (c - 1) / c for c
    candidates, where all of them are equally likely: beyond it the kernel would prefer the codes not seen.
    """

    def __init__(self, codes: Codes, sizes: Codes, min_bandwidth: float) -> None:
        self._codes, self._sizes = codes, sizes
        self._most = (sizes - 1) / sizes
        rule = 1.06 * codes.std(axis=0) * len(codes) ** (-1 / (4 + len(sizes)))
        self.bandwidth: Floats = np.minimum(np.maximum(rule, min_bandwidth), self._most)

    def log(self, codes: Codes) -> Floats:
        """The logarithm of the density (m,) at ``codes`` (m, choices)."""
        same = np.log1p(-self.bandwidth)
        # A choice of one candidate has h = 0 and nothing else to take.
        other = np.log(np.where(self._sizes > 1, self.bandwidth / np.maximum(self._sizes - 1, 1), 1.0))
        kernels = np.where(codes[:, None] == self._codes[None], same, other).sum(axis=2)
        return np.asarray(np.logaddexp.reduce(kernels, axis=1) - np.log(len(self._codes)))

    def draw(self, count: int, factor: float, generator: np.random.Generator) -> Codes:
        """``count`` draws (count, choices) with bandwidths ``factor`` times as wide."""
        width = np.minimum(self.bandwidth * factor, self._most)
        codes = self._codes[generator.integers(len(self._codes), size=count)]
        changed = generator.random(codes.shape) < width
        shift = generator.integers(1, np.maximum(self._sizes, 2), size=codes.shape)
        return np.where(changed, (codes + shift) % self._sizes, codes)
