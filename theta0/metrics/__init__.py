"""Training-free scores, a file for each family; each file registers its own and is found by scanning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from theta0.errors import Theta0Error, nearest
from theta0.evidence import Evidence, Need
from theta0.registry import Registry

Validity = Literal["ok", "dead", "singular", "overflow", "undefined", "refused"]
Value = float | tuple[float, Validity]
"""A score, and what is to be said of it if it is not ok."""


@dataclass(frozen=True)
class Variant:
    """One way to compute a score."""

    compute: Callable[[Evidence], Value]
    formula: str
    needs: frozenset[Need] = frozenset()
    """What the forward pass has to keep for it, beside the graph."""
    expensive: bool = False
    """Whether it takes a backward pass for each sample, and so is left out of ``all``."""


@dataclass(frozen=True)
class Metric:
    """A score with its variants; the first one is the default."""

    name: str
    citation: str
    direction: Literal["higher", "lower"]
    """What is taken for better."""
    variants: dict[str, Variant]

    def variant(self, name: str | None) -> tuple[str, Variant]:
        """A variant by name, or the default."""
        name = next(iter(self.variants)) if name is None else name
        if name not in self.variants:
            raise Theta0Error(f"the score {self.name} has no variant {name!r}; {nearest(name, self.variants)}")
        return name, self.variants[name]


metrics: Registry[Metric] = Registry("score", "theta0.metrics")


def register(metric: Metric) -> Metric:
    """Makes a score known by its name."""
    return metrics.register(metric.name)(metric)
