"""Where measurements go: a JSON file in ``results/`` with the command, the machine and the date beside the figures."""

from __future__ import annotations

import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

from theta0.environment import machine, versions

RESULTS = Path(__file__).parent / "results"


def save(name: str, figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Writes ``figures`` to ``folder/name.json`` and prints them."""
    record = {
        "command": " ".join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": {**machine(), **versions()},
        "figures": figures,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    for title, value in figures.items():
        print(f"{title:<64} {value}")
    print(f"written to {path}")
    return path
