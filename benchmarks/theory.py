"""Measurements of the theory: one part at a time, each to a JSON file of its own.

python benchmarks/theory.py darts --data FASHION_MNIST --width 1024 --epochs 1 --runs 5
python benchmarks/theory.py kernel --peer PYTHON          # one that has neural-tangents: docs/theory.md
python benchmarks/theory.py cells --table nb201.parquet --data CIFAR10 --sample 200
python benchmarks/theory.py depth
python benchmarks/theory.py factorial --data FASHION_MNIST
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import theta0
from theta0.spaces.mlp import ACTIVATIONS

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save


def darts(arguments: argparse.Namespace) -> dict[str, Any]:
    """DARTS on the Eigen-NAS space, every run for itself and their means."""
    from theta0.activation_search import search

    images = theta0.load(arguments.data).train
    if arguments.images:
        images = images.subset(list(range(arguments.images)))
    runs = []
    for seed in range(arguments.runs):
        found = search(images, epochs=arguments.epochs, width=arguments.width, layers=arguments.layers, seed=seed)
        runs.append(found)
        print(seed, found.facts(), file=sys.stderr, flush=True)
    probabilities = np.stack([found.probabilities for found in runs])
    skips = np.stack([found.skips for found in runs])
    figures: dict[str, Any] = {
        "layers, width, epochs, images": [arguments.layers, arguments.width, arguments.epochs, len(images)],
        "runs": [found.facts() for found in runs],
    }
    for layer in range(probabilities.shape[1]):
        for place, name in enumerate(ACTIVATIONS):
            values = probabilities[:, layer, place]
            figures[f"layer {layer + 1}: {name}"] = [round(float(values.mean()), 4), round(float(values.std()), 4)]
    for place in range(skips.shape[1]):
        values = skips[:, place]
        figures[f"skip {place + 2}"] = [round(float(values.mean()), 4), round(float(values.std()), 4)]
    return figures


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {"darts": darts}


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("--data", help="a data set by name or folder")
    parser.add_argument("--table", type=Path, help="a table of NAS-Bench-201")
    parser.add_argument("--peer", help="a Python that has neural-tangents")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--images", type=int, default=0, help="so many training images instead of all")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--name", help="of the result's file")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    save(arguments.name or f"theory-{arguments.part}", PARTS[arguments.part](arguments), arguments.out)


if __name__ == "__main__":
    main()
