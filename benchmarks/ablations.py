"""Scores of a random sample of NAS-Bench-201 under other initializations, batch sizes and channels: HNAS's ablations.

    python benchmarks/ablations.py --data PATH/cifar-10-batches-bin --processes 2

Writes one file for each setting to theta0/scores; those that are there are left alone, so that it can be stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import theta0
from theta0.memory import keep_blocks

FOLDER = Path(theta0.__file__).parent / "scores"
SCORES = ["grad", "snip", "grasp", "trace", "kappa"]
SETTINGS: dict[str, dict[str, Any]] = {
    "batch4": {"batch": 4},
    "batch8": {"batch": 8},
    "batch16": {"batch": 16},
    "batch32": {"batch": 32},
    "channels4": {"channels": 4},
    "channels8": {"channels": 8},
    "lecun": {"initialization": "lecun"},
    "xavier": {"initialization": "xavier"},
    "he": {"initialization": "he"},
    "channels32": {"channels": 32},
}
"""What is changed from 64 images, 16 channels and torch's own initialization, of which the main scores are."""


def main() -> None:
    """Scores what is missing."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default="cifar10")
    options.add_argument("--cells", type=int, default=500)
    options.add_argument("--processes", type=int, default=2)
    given = options.parse_args()
    keep_blocks()
    train = theta0.load(given.data).train
    space = theta0.get_space("nasbench201")
    generator = np.random.default_rng(0)
    cells = [space.sample(generator) for _ in range(given.cells)]
    for name, changes in SETTINGS.items():
        path = FOLDER / f"nasbench201-cifar10-{name}.npz"
        if path.exists():
            continue
        settings = dict(changes)
        x, y = train.batch(settings.pop("batch", 64), seed=0)
        print(name, file=sys.stderr)
        table = theta0.score_pool(
            space, cells, x, y, SCORES, processes=given.processes, progress=sys.stderr, classes=10, **settings
        )
        if table.facts["scored"] < table.facts["networks"]:
            return  # stopped by the keyboard
        table.facts["data"] = train.fingerprint()
        table.save(path)


if __name__ == "__main__":
    main()
