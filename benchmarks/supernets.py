"""What a training step of a supernet costs, by each way to mix, beside the step of a candidate's own network.

    python benchmarks/supernets.py --device cpu

A step is forward, backward and SGD. Candidates are the same in all rows of a space, and steps take turns, so that a
machine that other work slows slows all of them. Memory is what the graph keeps for the backward pass; on a GPU it is
the peak that was allocated above what lies there between steps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.forms import single
from theta0.space import get_space
from theta0.supernet import Distribution, mix, supernet

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save

SPACES: dict[str, dict[str, dict[str, Any]]] = {
    "cpu": {
        "nasbench201": {"channels": 16, "cells": 1},
        "nasbench1shot1_3": {"channels": 32, "cells": 1},
        "darts": {"channels": 16, "layers": 5},
    },
    "cuda": {"nasbench201": {}, "nasbench1shot1_3": {}, "darts": {}},
}
Step = Callable[[int], Tensor]
"""The loss for candidate number i."""


def stepped(loss: Step, parameters: list[Tensor], place: int) -> None:
    """One step of training."""
    gradients = torch.autograd.grad(loss(place), parameters, allow_unused=True)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter.sub_(gradient, alpha=1e-3)


def kept_bytes(loss: Step, place: int, own: set[int]) -> int:
    """Bytes that the graph keeps for the backward pass, without parameters and buffers."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = loss(place)
        total = sum(kept.values())
    del value
    return total


def ways(
    name: str, options: dict[str, Any], count: int, batch: int, device: torch.device
) -> dict[str, tuple[Step, Any]]:
    """For each row the loss of a candidate, and the parameters that are trained."""
    space = get_space(name)
    skeleton = space.options("search" if "search" in space.skeletons else None, **options)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, *skeleton.shape, generator=generator).to(device)
    y = torch.randint(skeleton.classes, (batch,), generator=generator).to(device)
    drawn = np.random.default_rng(0)
    architectures = [space.sample(drawn) for _ in range(count)]
    networks = [space.build(one, skeleton, seed=0).to(device) for one in architectures]
    model = supernet(space, skeleton, seed=0).to(device)
    alphas = Distribution.uniform(space.form("edges"), device=device)

    def mixed(of: nn.Module, mixtures: Any) -> Tensor:
        mix(of, mixtures)
        return F.cross_entropy(of(x), y)

    def one() -> Tensor:
        return torch.ones((), device=device, requires_grad=True)

    def gates(place: int) -> Any:
        """The same candidate, with weights of one that gradients go through."""
        return {
            cell: {
                at: {op: one() if op or space.form().on_nodes else 1.0 for op in weights}
                for at, weights in mixture.items()
            }
            for cell, mixture in single(space, architectures[place]).items()
        }

    found: dict[str, tuple[Step, Any]] = {
        "a candidate's own network": (
            lambda i: F.cross_entropy(networks[i](x), y),
            lambda i: list(networks[i].parameters()),
        ),
        "single path": (lambda i: mixed(model, single(space, architectures[i])), lambda i: list(model.parameters())),
        "straight-through": (lambda i: mixed(model, gates(i)), lambda i: list(model.parameters())),
        "softmax sum": (
            lambda i: mixed(model, alphas.mixtures(alphas.softmax())),
            lambda i: [*model.parameters(), *alphas.parameters()],
        ),
    }
    for partial in (2, 4):
        if space.form().on_nodes and partial == 4:
            continue  # a fifth of 32 channels is less than four can share evenly
        for title, row in partly(space, skeleton, partial, alphas, architectures, mixed, device).items():
            found[f"{title}, one in {partial} channels"] = row
    return found


def partly(
    space: Any, skeleton: Any, partial: int, alphas: Distribution, architectures: Any, mixed: Any, device: torch.device
) -> dict[str, tuple[Step, Any]]:
    """The rows of a supernet with partial channels."""
    model = supernet(space, skeleton, seed=0, partial=partial).to(device)
    return {
        "softmax sum": (
            lambda i: mixed(model, alphas.mixtures(alphas.softmax())),
            lambda i: [*model.parameters(), *alphas.parameters()],
        ),
        "single path": (lambda i: mixed(model, single(space, architectures[i])), lambda i: list(model.parameters())),
    }


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(arguments.device)
    figures: dict[str, Any] = {"batch": arguments.batch, "candidates": arguments.candidates}
    for name, options in SPACES[device.type].items():
        rows = ways(name, options, arguments.candidates, arguments.batch, device)
        times: dict[str, list[list[float]]] = {title: [[] for _ in range(arguments.candidates)] for title in rows}
        memory: dict[str, float] = {}
        for repeat in range(arguments.repeats + 1):
            for place in range(arguments.candidates):
                for title, (loss, parameters) in rows.items():
                    wait(device)
                    start = time.perf_counter()
                    stepped(loss, parameters(place), place)
                    wait(device)
                    if repeat:  # the first one warms up
                        times[title][place].append(time.perf_counter() - start)
        for title, (loss, parameters) in rows.items():
            own = {p.untyped_storage().data_ptr() for p in parameters(0)}
            used = []
            for place in range(arguments.candidates):
                if device.type == "cuda":
                    base = torch.cuda.memory_allocated(device)
                    torch.cuda.reset_peak_memory_stats(device)
                    stepped(loss, parameters(place), place)
                    used.append(torch.cuda.max_memory_allocated(device) - base)
                else:
                    used.append(kept_bytes(loss, place, own))
            memory[title] = statistics.mean(used)
        first = "a candidate's own network"
        means = {title: statistics.mean(statistics.median(one) for one in found) for title, found in times.items()}
        for title in rows:
            figures[f"{name}, {title}: ms"] = round(1000 * means[title], 1)
            figures[f"{name}, {title}: time by that of its own network"] = round(means[title] / means[first], 3)
            figures[f"{name}, {title}: MiB"] = round(memory[title] / 2**20, 1)
            figures[f"{name}, {title}: memory by that of its own network"] = round(memory[title] / memory[first], 3)
    save(f"supernets-{device.type}", figures, arguments.out)


def wait(device: torch.device) -> None:
    """Until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
