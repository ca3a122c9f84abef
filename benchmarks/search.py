"""The main job, whole: what `theta0 search` ends with, and random search with the same budget.

    python benchmarks/search.py --data digits --budget 1m --seeds 5 --searchers hnas,random

Each search trains its choice and three random architectures alike; what is recorded is the test accuracy of the choice
and its gain over the mean of those three, over seeds (other splits, other networks, other random architectures).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import theta0

sys.path.insert(0, str(Path(__file__).parent))
from record import save


def main() -> None:
    """All searchers with all seeds."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default="digits")
    options.add_argument("--space", default="nasbench201")
    options.add_argument("--budget", default="1m")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--searchers", default="hnas,random")
    given = options.parse_args()
    found: dict[str, object] = {"budget": given.budget, "data": given.data, "space": given.space}
    with tempfile.TemporaryDirectory() as root:
        for searcher in given.searchers.split(","):
            runs = [
                theta0.search(
                    given.data, space=given.space, searcher=searcher, budget=given.budget, seed=seed, root=root
                )
                for seed in range(given.seeds)
            ]
            found[searcher] = {
                "test accuracy": [round(run.accuracy, 2) for run in runs],
                "random architectures": [[round(one, 2) for one in run.random] for run in runs],
                "gain": [round(run.gain, 2) for run in runs],
                "mean accuracy": round(statistics.mean(run.accuracy for run in runs), 2),
                "mean gain": round(statistics.mean(run.gain for run in runs), 2),
                "seconds": [run.facts["seconds"] for run in runs],
            }
            print(searcher, found[searcher], flush=True)
    save(f"search-{Path(given.data).name}-{given.space}-{given.budget}", found)


if __name__ == "__main__":
    main()
