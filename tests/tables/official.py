"""Small files in the exact layouts of the official downloads, which are not here: made as their authors made them."""

from __future__ import annotations

import base64
import bz2
import json
import pickle
import struct
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theta0.spaces.nasbench101 import NASBench101, graph_hash
from theta0.spaces.nasbench201 import NASBench201

CELLS = [
    "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|",
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|",
]
"""The first ones of the official order, then another."""
SETS = {
    "cifar10-valid": ["x-valid", "ori-test"],
    "cifar10": ["ori-test"],
    "cifar100": ["x-valid", "x-test", "ori-test"],
    "ImageNet16-120": ["x-valid", "x-test", "ori-test"],
}


def accuracy(index: int, dataset: str, part: str, seed: int, epochs: int, epoch: int) -> float:
    """Some number that is another one wherever anything is."""
    return 20 + index + len(dataset) + len(part) / 10 + seed / 1000 + epochs / 20 + epoch / 100


def trial(index: int, dataset: str, seed: int, epochs: int, config: dict[str, Any]) -> dict[str, Any]:
    """The state of a ResultsCount."""
    every = range(epochs)
    keys = [f"{part}@{epoch}" for part in SETS[dataset] for epoch in every]
    values = [accuracy(index, dataset, part, seed, epochs, e) for part in SETS[dataset] for e in every]
    cost = NASBench201().measure(NASBench201().parse(CELLS[index]))
    return {
        "name": dataset,
        "net_state_dict": None,
        "train_acc1es": dict.fromkeys(every, 50.0),
        "train_acc5es": dict.fromkeys(every, 90.0),
        "train_losses": dict.fromkeys(every, 1.5),
        "train_times": OrderedDict((epoch, 2.0 + index + seed / 1000) for epoch in every),
        "arch_config": config,
        "params": cost.parameters / 1e6,
        "flop": cost.flops / 1e6,
        "seed": seed,
        "epochs": epochs,
        "latency": [np.float64(0.01), 0.03],
        "eval_names": list(SETS[dataset]),
        "eval_acc1es": dict(zip(keys, values, strict=True)),
        "eval_times": dict.fromkeys(keys, 0.5),
        "eval_losses": dict.fromkeys(keys, 0.7),
    }


def schedule(index: int, epochs: int, seeds: list[int]) -> dict[str, Any]:
    """The state of an ArchResults."""
    config = {"arch_str": CELLS[index], "channel": 16, "num_cells": 5, "class_num": 10, "name": "infer.tiny"}
    trials = {(dataset, seed): trial(index, dataset, seed, epochs, config) for dataset in SETS for seed in seeds}
    return {
        "arch_index": index,
        "arch_str": CELLS[index],
        "all_results": trials,
        "dataset_seed": {dataset: list(seeds) for dataset in SETS},
        "clear_net_done": True,
    }


def seeds(index: int) -> list[int]:
    """Cell 1 was trained twice, the others three times."""
    return [777, 888, 999][: 2 if index == 1 else 3]


def schedules(index: int, names: tuple[str, str]) -> dict[str, Any]:
    return {names[0]: schedule(index, 12, [777]), names[1]: schedule(index, 200, seeds(index))}


def pbz2(path: Path, content: Any) -> None:
    path.write_bytes(bz2.compress(pickle.dumps(content, protocol=4)))


@cache
def _packed(index: int) -> bytes:
    return bz2.compress(pickle.dumps(schedules(index, ("12", "200")), protocol=4))


def nats_folder(path: Path) -> Path:
    folder = path / "NATS-tss-v1_0-3ffb9-simple"
    folder.mkdir()
    pbz2(folder / "meta.pickle.pbz2", {"meta_archs": CELLS, "evaluated_indexes": [0, 1, 2]})
    for index in range(len(CELLS)):
        (folder / f"{index:06d}.pickle.pbz2").write_bytes(_packed(index))
    return folder


def whole(names: tuple[str, str]) -> dict[str, Any]:
    infos = OrderedDict((index, schedules(index, names)) for index in (2, 0, 1))
    return {"meta_archs": CELLS, "arch2infos": infos, "evaluated_indexes": [0, 1, 2], "total_archs": len(CELLS)}


def nats_file(path: Path) -> Path:
    file = path / "NATS-tss-v1_0-3ffb9.pickle.pbz2"
    pbz2(file, whole(("12", "200")))
    return file


def pth(path: Path, *, legacy: bool) -> Path:
    file = path / "NAS-Bench-201-v1_1-096897.pth"
    torch.save(whole(("less", "full")), file, _use_new_zipfile_serialization=not legacy)
    return file


# NAS-Bench-101.

BUDGETS = (4, 12, 36, 108)


def crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial says."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(record: bytes) -> bytes:
    head = struct.pack("<Q", len(record))
    return head + masked(head) + record + masked(record)


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(epochs: int, validation: float, test: float, seconds: float, parameters: int) -> bytes:
    """A ModelMetrics with three EvaluationData."""
    out = b""
    for share in (0.0, 0.5, 1.0):
        numbers = (epochs * share, seconds * share, 0.9 * share, validation * share, test * share)
        inner = b"".join(varint(field << 3 | 1) + struct.pack("<d", value) for field, value in enumerate(numbers, 1))
        inner += varint(6 << 3 | 2) + varint(4) + b"ckpt"
        out += varint(1 << 3 | 2) + varint(len(inner)) + inner
    return out + varint(2 << 3) + varint(parameters) + varint(3 << 3 | 1) + struct.pack("<d", 2 * seconds)


def cells101(count: int) -> list[Any]:
    space = NASBench101()
    return [space[index] for index in range(100, 100 + 7 * count, 7)]


def record101(cell: Any, epochs: int, repeat: int, number: int, key: str | None = None) -> bytes:
    matrix = np.zeros((cell.nodes, cell.nodes), dtype=int)
    for source, target, _ in cell.edges:
        matrix[source, target] = 1
    metrics = message(
        epochs, 0.5 + number / 100 + repeat / 1000, 0.4 + number / 100 + repeat / 1000, 10.0 * epochs, 1000
    )
    content = [
        key or graph_hash(cell),
        epochs,
        "".join(map(str, matrix.flatten())),
        ",".join(["input", *cell.ops, "output"]),
        base64.b64encode(metrics).decode(),
    ]
    return json.dumps(content).encode()


def records101(count: int = 5, budgets: tuple[int, ...] = BUDGETS) -> list[bytes]:
    cells = list(enumerate(cells101(count)))
    return [
        record101(cell, epochs, repeat, number) for repeat in range(3) for number, cell in cells for epochs in budgets
    ]


def tfrecord(path: Path, records: list[bytes] | None = None) -> Path:
    file = path / "nasbench_full.tfrecord"
    file.write_bytes(b"".join(map(frame, records101() if records is None else records)))
    return file
