"""Runs as a search leaves them, written through the store's own interface, with made-up numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from theta0.pool import PoolScores
from theta0.runs import Run
from theta0.searching import Trial
from theta0.space import get_space

CLASSES = [str(number) for number in range(10)]
SCORES = ["parameters", "flops", "snip:zerocost", "synflow:log", "naswot:paper", "trace:official", "kappa:official"]
SETTINGS: dict[str, Any] = {
    "data": "digits",
    "fingerprint": "5c1be1d8b0f0",
    "space": "nasbench201",
    "searcher": "hnas",
    "seed": 3,
    "score": "trace",
    "budget": {"evaluations": 40, "seconds": 180.0},
    "limits": {"parameters": 500_000, "flops": None, "latency": 2.5},
    "device": "cpu",
    "precision": "fp32",
    "skeleton": {"shape": [1, 8, 8], "classes": 10, "channels": 8, "cells": 1},
    "classes": CLASSES,
}


def texts(space: str, count: int, seed: int = 0) -> list[str]:
    """Different architectures."""
    made, generator = get_space(space), np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[made.format(made.sample(generator))] = None
    return list(found)


def pool(space: str, architectures: list[str], names: list[str] | None = None, seed: int = 0) -> PoolScores:
    """Random scores: on a wide scale, on a narrow one, and with values that are not valid."""
    names, generator = names or SCORES, np.random.default_rng(seed)
    quality = generator.normal(size=len(architectures))
    values = np.empty((len(architectures), len(names)))
    for column, name in enumerate(names):
        mixed = quality * (1 - column / len(names)) + generator.normal(size=len(architectures)) * 0.7
        values[:, column] = mixed * 12 + 60 if "naswot" in name or "log" in name else 10 ** (mixed + 2)
    validity = np.zeros(values.shape, dtype=np.uint8)
    validity[generator.random(values.shape) < 0.03] = PoolScores.code("singular")
    values[validity > 0] = math.inf
    facts = {"batch": 64, "seed": 0, "networks": len(architectures), "seconds": 41.2, "device": "cpu"}
    return PoolScores(space, architectures, names, values, validity, facts)


def confusion(classes: int, images: int, wrong: int, seed: int = 0) -> list[list[int]]:
    """A matrix with so many mistakes."""
    generator = np.random.default_rng(seed)
    counts = np.diag(np.full(classes, images // classes))
    for _ in range(wrong):
        i, j = generator.integers(classes), generator.integers(classes - 1)
        counts[i, i] -= 1
        counts[i, j + (j >= i)] += 1
    found: list[list[int]] = counts.tolist()
    return found


def training(run: Run, curve: int | str, epochs: int, end: float, seed: int) -> None:
    """Points of a curve that ends at an accuracy."""
    generator = np.random.default_rng(seed)
    for epoch in range(1, epochs + 1):
        share = 1 - math.exp(-3.2 * epoch / epochs)
        accuracy = 12 + (end - 12) * share / (1 - math.exp(-3.2)) + generator.normal() * 0.5 * (epoch < epochs)
        run.add_point(
            curve,
            epoch,
            loss=2.3 * (1 - share) + 0.04,
            learning_rate=0.1 * (1 - epoch / epochs),
            accuracy=min(100.0, accuracy),
        )


def begin(
    root: Path, *, trials: int, pooled: int = 400, names: list[str] | None = None, **changes: Any
) -> tuple[Run, list[str]]:
    """A run with a plan, a scored pool and finished trials, still open, and the architectures of the pool."""
    settings = {**SETTINGS, **changes}
    run = Run.create(root, settings)
    architectures = texts(settings["space"], max(pooled, trials))
    run.event("began")
    run.event("planned", pool=pooled, evaluations=40, epochs=12, final_epochs=60, random=8)
    generator, spent = np.random.default_rng(1), 0.0
    quality = np.full(len(architectures), 0.0)
    if pooled:
        scores = pool(settings["space"], architectures, names)
        scores.save(run.path / "pool.npz")
        run.event("scored", **scores.facts)
        ordered = np.argsort(np.argsort(scores.values[:, len(scores.names) // 2]))
        quality = ordered / len(architectures)
    for number in range(trials):
        architecture = run.space.parse(architectures[number])
        run.claim(number, architecture, 12, seed=number)
        seconds = 2.4 + generator.random()
        spent += seconds
        value = 82 + 13 * (0.6 * quality[number] + 0.4 * generator.random()) + number / 20
        note = ""
        if number % 17 == 16:
            value, note = math.nan, "DivergedError: the loss is not finite"
        else:
            training(run, number, 12, value, number)
        why = {"mu": float(generator.random()), "expected improvement": float(10 ** generator.normal())}
        run.add_trial(Trial(number, architecture, 12, value, seconds, spent, note, why))
    return run, architectures


def finish(run: Run, *, images: int = 360, wrong: int = 9, random: int = 8, classes: int = 10, **changes: Any) -> None:
    """The end of a search: final training, random architectures, test."""
    best = run.incumbent
    assert best is not None
    accuracy = 100 * (images - wrong) / images
    generator = np.random.default_rng(5)
    others = [round(float(value), 2) for value in accuracy - 4.2 + 1.3 * generator.normal(size=random)]
    training(run, "final", 60, accuracy, 99)
    for number, other in enumerate(others):
        training(run, f"random-{number}", 60, other, 100 + number)
    test = {"images": images, "accuracy": accuracy, "nll": 0.0934, "ece": 1.12}
    facts: dict[str, Any] = {
        "chosen": best.architecture,
        "validation": best.value,
        "test": {**test, "confusion": confusion(classes, images, wrong)},
        "random": {"accuracies": others, "measure": "test accuracy", "epochs": 60},
        "gain": accuracy - float(np.mean(others)) if others else None,
        "parameters": 73_466,
        "flops": 4_190_000,
        "latency_ms": 1.31,
        "model": "model.ckpt",
        "seconds": 171.3,
    }
    facts.update(changes)
    run.event("finished", **{name: value for name, value in facts.items() if value is not None})


def finished(root: Path, **changes: Any) -> Run:
    """A full run, closed by its process."""
    run, _ = begin(root, trials=40, **changes)
    finish(run)
    run.close()
    return Run.open(run.path)


def in_flight(root: Path) -> Run:
    """One that is at work: the caller closes it."""
    run, architectures = begin(root, trials=7, pooled=120)
    run.claim(7, run.space.parse(architectures[7]), 12)
    return run


def failed(root: Path) -> Run:
    """One that ended badly before its first trial did."""
    run, _ = begin(root, trials=0, pooled=0)
    run.event("failed", error="DataError: /data/photos: no space left on device")
    run.close()
    return Run.open(run.path)


def darts(root: Path) -> Run:
    """Two cells, 30 classes with names, and no random architectures."""
    names = [f"species {number}" for number in range(30)]
    changes = {"space": "darts", "data": "/data/photos", "classes": names, "limits": {}, "searcher": "zerocost"}
    run, _ = begin(root, trials=12, pooled=60, **changes)
    finish(run, images=3000, wrong=160, random=0, classes=30, latency_ms=None)
    run.close()
    return Run.open(run.path)
