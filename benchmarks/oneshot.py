"""Searchers that train a supernet on NAS-Bench-201, with and without a start from NASI's distribution.

    python benchmarks/oneshot.py --nasbench201 FILE --images PATH --part nasi --count 5000 --steps 100 --seeds 4
    python benchmarks/oneshot.py --nasbench201 FILE --images PATH --part trained --epochs 4 --count 1000 --seeds 3

Images are brought to ``--side`` pixels. Test accuracies of what is chosen are looked up; random architectures and NASI
alone stand beside. The sizes of a CPU say what this costs and whether a start helps a short search, not how good a
method is with its hundreds of epochs: for that, take more of all on a GPU (``--device cuda --channels 16 --cells 5``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from theta0 import tables
from theta0.data import ImageDataset, load
from theta0.objective import TableObjective
from theta0.searchers import Budget
from theta0.searching import run

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save

MODES: dict[str, dict[str, Any]] = {
    "nasi": {},
    "nasi, random labels": {"labels": "random"},
    "nasi, random data": {"data": "random"},
    "nasi, nu fixed at the mean": {"constraint": "fixed", "nu": 0.0},
}
METHODS = ("darts", "gdas", "snas", "setn", "random-shared", "enas")


def smaller(images: ImageDataset, side: int) -> ImageDataset:
    """Means of squares of pixels."""
    pixels = torch.nn.functional.adaptive_avg_pool2d(images.images.float(), side)
    return replace(images, images=pixels.round().to(torch.uint8))


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nasbench201", required=True)
    parser.add_argument("--images", required=True)
    parser.add_argument("--part", choices=("nasi", "trained"), required=True)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--cells", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50, help="of NASI, and of the start")
    parser.add_argument("--batch", type=int, default=32, help="of NASI")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = tables.load(arguments.nasbench201)
    images = load(arguments.images).train
    images = smaller(images.subset(range(min(arguments.count, len(images)))), arguments.side).to(arguments.device)
    objective = TableObjective(table, "cifar10", epochs=[12])
    skeleton = (f"channels={arguments.channels}", f"cells={arguments.cells}")
    trained: dict[str, Any] = {"search_epochs": arguments.epochs, "skeleton": skeleton, "augment": False}
    rows: dict[str, tuple[str, dict[str, Any]]] = {
        "random": ("random", {}),
    }
    common = {"steps": arguments.steps, "batch": arguments.batch, "skeleton": skeleton}
    for label, mode in MODES.items():
        if arguments.part == "nasi" or not mode:
            rows[label] = ("nasi", {**common, **mode})
    for method in arguments.methods.split(",") if arguments.part == "trained" else ():
        rows[method] = (method, trained)
        rows[f"{method}, begun by NASI"] = (method, {**trained, "warm": arguments.steps})
    figures: dict[str, Any] = {name: value for name, value in vars(arguments).items() if isinstance(value, int)}
    for label, (name, settings) in rows.items():
        found = []
        for seed in range(arguments.seeds):
            result = run(name, objective, Budget(1), seed=seed, images=images, settings=settings)
            row = table.row(result.chosen)
            accuracies = [float(table.test(data, 200, row)) for data in table.datasets]
            skips = sum(edge.op == "skip_connect" for edge in result.chosen.edges)
            found.append((*accuracies, result.own_seconds, float(skips)))
            print(label, seed, [round(value, 2) for value in found[-1]], flush=True)
        titles = (*table.datasets, "seconds", "skip connections")
        for title, values in zip(titles, zip(*found, strict=True), strict=True):
            figures[f"{label}: {title}"] = round(statistics.mean(values), 2)
            figures[f"{label}: {title}, deviation"] = round(statistics.pstdev(values), 2)
    save(f"oneshot-{arguments.part}-{torch.device(arguments.device).type}", figures, arguments.out)


if __name__ == "__main__":
    main()
