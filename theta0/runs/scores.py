"""The scores of a run in its database: one row for each architecture and score."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from theta0.pool import PoolScores


def add(change: sqlite3.Connection, scores: PoolScores) -> None:
    """Keeps scores, in place of earlier ones of the same architecture and name."""
    for name in scores.names:
        column = zip(scores.architectures, scores[name].tolist(), scores.valid(name), strict=True)
        change.executemany(
            "INSERT INTO scores VALUES (?, ?, ?, ?) ON CONFLICT (architecture, name) "
            "DO UPDATE SET value = excluded.value, validity = excluded.validity",
            ((architecture, name, value, said) for architecture, value, said in column),
        )


def read(space: str, rows: Sequence[sqlite3.Row], facts: dict[str, Any]) -> PoolScores:
    """The table of them all, in the order in which architectures and names came; undefined where there is none."""
    across = {name: place for place, name in enumerate(dict.fromkeys(row["name"] for row in rows))}
    down = {text: place for place, text in enumerate(dict.fromkeys(row["architecture"] for row in rows))}
    values = np.full((len(down), len(across)), np.nan)
    validity = np.full(values.shape, PoolScores.code("undefined"), dtype=np.uint8)
    for row in rows:
        place = down[row["architecture"]], across[row["name"]]
        values[place] = np.nan if row["value"] is None else row["value"]  # SQLite has no NaN
        validity[place] = PoolScores.code(row["validity"])
    return PoolScores(space, list(down), list(across), values, validity, facts)
