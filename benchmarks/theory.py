"""Measurements of the theory: one part at a time, each to a JSON file of its own.

    python benchmarks/theory.py kernel --peer PYTHON
    python benchmarks/theory.py cells --table nb201.parquet --data CIFAR10 --sample 250
    python benchmarks/theory.py darts --data FASHION_MNIST --width 1024 --epochs 50 --runs 5
    python benchmarks/theory.py factorial --data FASHION_MNIST --width 256 --epochs 3 --runs 2

PYTHON is one that has neural-tangents: tests/theory/neural_tangents_reference.py says how to make it. The figure over
depth is `theta0 reproduce eigen --figure F.4`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau, spearmanr

import theta0
from theta0 import tables
from theta0.activation_search import search
from theta0.candidates import Candidates
from theta0.pool import shipped
from theta0.recipe import Recipe
from theta0.spaces.mlp import ACTIVATIONS, MLPSpace
from theta0.theory import pools
from theta0.theory.bounds import theorem_3
from theta0.theory.mlp import infinite, unit
from theta0.train import train

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save


def darts(arguments: argparse.Namespace) -> dict[str, Any]:
    """DARTS on the Eigen-NAS space, every run for itself and their means."""
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


def kernel(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time and memory beside neural-tangents, each in a process of its own, one after the other."""
    figures: dict[str, Any] = {}
    script = Path(__file__).with_name("theory_peer.py")
    for name in ("relu", "tanh"):
        for samples in (500, 1000, 2000) if name == "relu" else (100, 250):
            found = {}
            peers = {"theta0": sys.executable} | ({"neural_tangents": arguments.peer} if arguments.peer else {})
            for which, python in peers.items():
                command = [python, str(script), which, name, str(samples)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                label = f"{name}, {samples} inputs, {which}"
                if done.returncode:
                    figures[label] = f"failed with code {done.returncode}: {done.stderr.strip()[-120:]}"
                    continue
                one = found[which] = json.loads(done.stdout.splitlines()[-1])
                figures[f"{label}: seconds"] = round(one["seconds"], 2)
                figures[f"{label}: CPU seconds"] = round(one["CPU seconds"], 2)
                figures[f"{label}: peak MB beyond start"] = round(one["peak MB"])
            if len(found) == 2:
                both = [np.array(one["corner"]) for one in found.values()]
                figures[f"{name}, {samples} inputs: largest difference"] = float(np.abs(both[0] - both[1]).max())
    return figures


def cells(arguments: argparse.Namespace) -> dict[str, Any]:
    """Rank correlation of kernels of infinite width with test accuracy, on a random sample of cells."""
    space = theta0.get_space("nasbench201")
    whole = shipped("nasbench201", "cifar10")
    rows = np.sort(np.random.default_rng(0).choice(len(whole.architectures), arguments.sample, replace=False))
    chosen = [space.parse(whole.architectures[row]) for row in rows]
    table = tables.load(str(arguments.table))
    accuracy = table.test("cifar10", 200, table.rows(chosen))
    x, _ = theta0.load(arguments.data, size=8).train.batch(12, seed=0)
    found: dict[str, Any] = {}
    figures: dict[str, Any] = {"cells": len(chosen), "images": list(x.shape), "cells in a stage": 1}
    for norm in ("mean", "none"):
        start = time.perf_counter()
        scores = pools.scores(space, chosen, x, norm=norm)
        figures[f"seconds a cell, norm={norm}"] = round((time.perf_counter() - start) / len(chosen), 3)
        pool = Candidates.of(scores, space)
        found |= {f"{name}, norm={norm}": (pool.ranks(name), int(pool.ok(name).sum())) for name in pool.scores}
    other = Candidates.of(whole, space).select(rows)
    for name in ("trace", "kappa", "lambda_min", "synflow"):
        found[f"network's {name}"] = (other.ranks(name), int(other.ok(name).sum()))
    for name in ("parameters", "flops"):
        found[name] = (other.column(name), len(rows))
    for name, (ranks, valid) in found.items():
        pair = float(spearmanr(ranks, accuracy).statistic), float(kendalltau(ranks, accuracy).statistic)
        figures[name] = f"{pair[0]:.3f} {pair[1]:.3f} ({valid} valid)"
    return figures


def factorial(arguments: argparse.Namespace) -> dict[str, Any]:
    """Every network of three layers: what theory prefers, what DARTS picks, what trains best."""
    data, space = theta0.load(arguments.data), MLPSpace(layers=3)
    images = data.train.subset(list(range(arguments.images or 5000)))
    test = (data.test or data.train).subset(list(range(2000)))
    whole = [space.decode(codes) for codes in np.ndindex(5, 5, 2)]
    small, labels = images.batch(64, seed=0)
    signs = torch.where(labels < 5, 1.0, -1.0).double()
    columns: dict[str, Any] = {}
    for parametrization in ("lemma", "paper"):
        scores = pools.scores(space, whole, small, parametrization=parametrization)
        for name in ("lambda_min:infinite", "eigen_bound:infinite"):
            columns[f"{name}, {parametrization}"] = scores[name]
    kernels = [infinite(one, unit(small)).ntk for one in whole]
    columns["minus Theorem 3's bound"] = -np.array(
        [theorem_3(gram, signs, one) for gram, one in zip(kernels, whole, strict=True)]
    )
    accuracies = []
    recipe = Recipe(epochs=arguments.epochs, batch=64, learning_rate=0.05, augment=False, clip=5.0)
    for architecture in whole:
        values = []
        for seed in range(arguments.runs):
            model = space.build(architecture, seed=seed, shape=images.shape, width=arguments.width)
            result = train(model, images, recipe, seed=seed, validation=test, validate_every=None)
            assert result.evaluation is not None
            values.append(result.evaluation.accuracy)
        accuracies.append(float(np.mean(values)))
        print(space.format(architecture), values, file=sys.stderr, flush=True)
    columns["test accuracy"] = np.array(accuracies)
    runs = [
        search(images, layers=3, width=arguments.width, epochs=4 * arguments.epochs, seed=seed)
        for seed in range(arguments.runs)
    ]
    figures: dict[str, Any] = {
        "images, width, epochs, seeds": [len(images), arguments.width, arguments.epochs, arguments.runs]
    }
    for name, column in columns.items():
        best = whole[int(np.argmax(column))]
        correlation = float(spearmanr(column, columns["test accuracy"]).statistic)
        figures[f"{name}: best, Spearman with accuracy"] = [space.format(best), round(correlation, 3)]
    figures["DARTS: picks"] = [space.format(found.architecture) for found in runs]
    shares = np.mean([found.probabilities for found in runs], axis=0)

    def means(kept: list[int]) -> dict[str, float]:
        return {name: float(f"{np.mean(column[kept]):.4g}") for name, column in columns.items()}

    for layer in (0, 1):
        for place, activation in enumerate(ACTIVATIONS):
            kept = [i for i, one in enumerate(whole) if one.activations[layer] == activation]
            figures[f"layer {layer + 1}, {activation}"] = means(kept) | {"DARTS": round(float(shares[layer, place]), 4)}
    alpha = round(float(np.mean([found.skips[0] for found in runs])), 4)
    for skip in (False, True):
        kept = [i for i, one in enumerate(whole) if one.skips[0] == skip]
        figures[f"skip {skip}"] = means(kept) | {"DARTS' alpha": alpha}
    return figures


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "cells": cells,
    "darts": darts,
    "factorial": factorial,
    "kernel": kernel,
}


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
