"""One infinite-width kernel, its time and its peak memory as JSON; run by theory.py with this Python or a peer's.

python benchmarks/theory_peer.py theta0 relu 2000
NT/bin/python benchmarks/theory_peer.py neural_tangents relu 2000
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

LAYERS = 9
"""Hidden layers: L = 10 in the paper."""


def inputs(samples: int) -> Any:
    """The same for both, on the unit sphere of 784 dimensions."""
    x = np.random.default_rng(0).standard_normal((samples, 784))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ours(name: str, x: Any) -> Any:
    """The NTK by theta0; nothing is compiled."""
    import torch

    from theta0.theory.mlp import infinite

    architecture = ((name,) * LAYERS, (False,) * (LAYERS - 1))
    return lambda: infinite(architecture, torch.from_numpy(x), parametrization="ntk", sphere=False).ntk.numpy()


def theirs(name: str, x: Any) -> Any:
    """The NTK by neural-tangents, compiled before it is timed; Tanh by a grid of 50 x 50 points."""
    import jax  # type: ignore[import-not-found, unused-ignore]
    from neural_tangents import stax  # type: ignore[import-not-found, unused-ignore]

    jax.config.update("jax_enable_x64", True)
    activation = stax.Relu() if name == "relu" else stax.ElementwiseNumerical(jax.numpy.tanh, deg=50)
    dense = stax.Dense(1, 1.0, None, parameterization="ntk")
    layers = [layer for _ in range(LAYERS) for layer in (dense, activation)]
    kernel = jax.jit(lambda x: stax.serial(*layers, dense)[2](x, None, "ntk"))
    return lambda: np.asarray(kernel(x).block_until_ready())


def main() -> None:
    """Compute twice, time the second."""
    which, name, samples = sys.argv[1], sys.argv[2], int(sys.argv[3])
    compute = (ours if which == "theta0" else theirs)(name, inputs(samples))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compute()
    start, used = time.perf_counter(), time.process_time()
    found = compute()
    seconds, used = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"seconds": seconds, "CPU seconds": used, "peak MB": (peak - before) / 1024, "mean": float(found.mean())}
    print(json.dumps(figures | {"corner": found[:20, :20].tolist()}))


if __name__ == "__main__":
    main()
