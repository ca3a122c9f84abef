"""How long the combinatorics of the spaces take, on one core: sampling, canonical forms, enumeration, hashes, costs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theta0.space import get_space
from theta0.spaces import nasbench101
from theta0.spaces.nasbench101 import NASBench101

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one run."""
    start = time.perf_counter()
    result = function()
    return round(time.perf_counter() - start, 3), result


def one_space(name: str, generator: np.random.Generator) -> dict[str, float]:
    """Sampling, canonical forms and costs of a space."""
    space = get_space(name)
    sampling, drawn = timed(lambda: [space.sample(generator) for _ in range(1000)])
    canonical, _ = timed(lambda: [space.canonical(architecture) for architecture in drawn])
    measuring, _ = timed(lambda: [space.measure(architecture) for architecture in drawn[:20]])
    return {
        f"{name}: sample 1,000, s": sampling,
        f"{name}: canonical form of them, s": canonical,
        f"{name}: parameters and FLOPs of one, ms": round(measuring * 50, 1),
    }


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, Any] = {}

    space = get_space("nasbench201")
    generator = np.random.default_rng(0)
    seconds, cells = timed(lambda: [space.sample(generator) for _ in range(15_625)])
    figures["NAS-Bench-201: sample 15,625 cells, s"] = seconds
    figures["NAS-Bench-201: canonical form of them, s"], _ = timed(lambda: {space.canonical(c) for c in cells})
    texts = [space.format(cell) for cell in cells]
    figures["NAS-Bench-201: parse their strings, s"], _ = timed(lambda: [space.parse(text) for text in texts])
    whole = [space.decode(codes) for codes in np.indices((5,) * 6).reshape(6, -1).T.tolist()]
    figures["NAS-Bench-201: all 15,625 cells, parameters and FLOPs, s"], _ = timed(
        lambda: [space.measure(cell) for cell in whole]
    )
    figures["NAS-Bench-201: distinct networks"] = len({space.canonical(cell) for cell in whole})

    nasbench101._classes.cache_clear()
    large = NASBench101()
    figures["NAS-Bench-101: list the classes of graphs, s"], size = timed(lambda: large.size)
    figures["NAS-Bench-101: cells"] = size
    figures["NAS-Bench-101: enumerate all cells, s"], listed = timed(lambda: list(large))
    figures["NAS-Bench-101: hash all cells, s"], hashes = timed(lambda: {large.hash(cell) for cell in listed})
    figures["NAS-Bench-101: distinct hashes"] = len(hashes)

    for name in ("nasbench101", "nasbench1shot1_3", "darts", "mlp"):
        figures |= one_space(name, generator)
    save("spaces", figures, arguments.out)


if __name__ == "__main__":
    main()
