"""Rank correlations of the shipped scores with test accuracy on NAS-Bench-201, beside those that HNAS prints.

    python benchmarks/correlations.py --table ../shared/data/nb201.parquet

HNAS correlates with the test error over all 15,625 cells (Tables 5 and 6); accuracy changes the sign only. Dead cells
count as the worst value, as in the codes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from theta0.metrics import metrics
from theta0.pool import PoolScores, shipped

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save

PAPER = {
    "grad:zerocost": (0.637, 0.469),
    "snip:zerocost": (0.639, 0.472),
    "grasp:absolute": (0.566, 0.400),
    "trace:official": (0.538, 0.387),
}
"""Spearman and Kendall on CIFAR-10."""
ACCURACY = {"cifar10": "cifar10_test200", "cifar100": "cifar100_test200", "tiny16": "imagenet16_test200"}


def ordered(scores: PoolScores, name: str) -> NDArray[np.float64]:
    """The column with the better values larger; what is dead or singular comes last."""
    lower = name.partition(":")[0] in metrics.names() and metrics.get(name.partition(":")[0]).direction == "lower"
    values = -scores[name] if lower else scores[name].copy()
    bad = np.array([text != "ok" for text in scores.valid(name)]) | ~np.isfinite(values)
    values[bad] = values[~bad].min() - 1
    return values


def main() -> None:
    """Compare and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True, help="nb201.parquet")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    table = pandas.read_parquet(arguments.table).set_index("arch_str")
    figures: dict[str, Any] = {}
    for data, column in ACCURACY.items():
        scores = shipped("nasbench201", data)
        accuracy = table.loc[scores.architectures, column].to_numpy()
        for name in scores.names:
            values = ordered(scores, name)
            row = [float(spearmanr(values, accuracy).statistic), float(kendalltau(values, accuracy).statistic)]
            text = " ".join(f"{value:.3f}" for value in row)
            if data == "cifar10" and name in PAPER:
                text += " paper " + " ".join(f"{value:.3f}" for value in PAPER[name])
                text += " difference " + " ".join(f"{a - b:+.3f}" for a, b in zip(row, PAPER[name], strict=True))
            figures[f"{data}: {name}"] = text
    save("correlations-nasbench201", figures, arguments.out)


if __name__ == "__main__":
    main()
