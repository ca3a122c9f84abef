"""Where measurements go: a JSON file in ``results/`` with the command, the machine and the date beside the figures."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

import theta0

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux; the platform's own word has to do
        pass
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "theta0": theta0.__version__,
    }


def save(name: str, figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Writes ``figures`` to ``folder/name.json`` and prints them."""
    record = {
        "command": " ".join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "figures": figures,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    for title, value in figures.items():
        print(f"{title:<64} {value}")
    print(f"written to {path}")
    return path
