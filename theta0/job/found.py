"""What a search found: the numbers of its run, and the trained network."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from theta0.errors import DataError
from theta0.model import Model, load
from theta0.report import NAME as REPORT
from theta0.runs import Run


@dataclass(frozen=True)
class Found:
    """The end of a run that is finished."""

    path: Path
    """The run's folder."""
    facts: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> Found:
        """Reads a run."""
        with Run.open(path) as run:
            for event in reversed(run.events()):
                if event.kind == "finished":
                    return cls(path, dict(event.facts))
        raise DataError(f"the run {path.name} is not finished; go on with it: theta0 resume {path.name}")

    @property
    def architecture(self) -> str:
        """In the notation of its space."""
        return str(self.facts["chosen"])

    @property
    def accuracy(self) -> float:
        """Percent of the test images."""
        return float(self.facts["test"]["accuracy"])

    @property
    def random(self) -> list[float]:
        """What random architectures reached on the test images after the same training."""
        return [float(one) for one in self.facts["random"]["accuracies"]]

    @property
    def gain(self) -> float:
        """Points above the mean of the random ones; NaN without any."""
        return float(self.facts.get("gain", math.nan))

    @cached_property
    def model(self) -> Model:
        """The trained network."""
        return load(self.path / str(self.facts["model"]))

    def __str__(self) -> str:
        test, random = self.facts["test"], self.random
        rows = [
            ("architecture", self.architecture),
            ("test accuracy", f"{self.accuracy:.2f} % of {test['images']:,} images"),
            ("", f"nll {test['nll']:.3f}, ece {test['ece']:.1f} %"),
        ]
        if random:
            spread = f" ± {statistics.stdev(random):.2f}" if len(random) > 1 else ""
            rows.append(
                (
                    "random ones",
                    f"{statistics.mean(random):.2f}{spread} % ({len(random)} architectures, the same training); "
                    f"the search is {abs(self.gain):.2f} points {'above' if self.gain >= 0 else 'below'} their mean",
                )
            )
        rows += [
            ("parameters", f"{self.facts['parameters']:,}"),
            ("multiply-adds", f"{self.facts['flops']:,}"),
            ("latency", f"{self.facts['latency_ms']:.2f} ms for one image"),
            ("run", f"{self.path} ({self.facts['seconds']:.0f} s)"),
            ("report", str(self.path / REPORT)),
            ("export", f"theta0 export {self.path.name} --to onnx"),
        ]
        return "\n".join(f"{title:<14} {value}" for title, value in rows)
