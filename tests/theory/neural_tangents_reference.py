"""Makes neural_tangents.npz: kernels of infinite width by neural-tangents, to compare with.

    python3.11 -m venv nt && nt/bin/pip install jax==0.4.25 jaxlib==0.4.25 neural-tangents==0.6.5 'numpy<2' 'scipy<1.13'
    nt/bin/python tests/theory/neural_tangents_reference.py

It works with no newer jax, so not beside theta0. Inputs are drawn here; nothing else is in the file.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)


def swish(x):
    return x * jax.nn.sigmoid(x)


ACTIVATIONS = {
    "relu": stax.Relu(),
    "leaky_relu": stax.ABRelu(0.01, 1.0),
    "erf": stax.Erf(),
    "tanh": stax.ElementwiseNumerical(jax.numpy.tanh, deg=100),
    "sigmoid": stax.ElementwiseNumerical(lambda x: jax.nn.sigmoid(x) - 0.5, deg=100),
    "swish": stax.ElementwiseNumerical(swish, deg=100),
}


def connected(names):
    layers = []
    for name in names:
        layers += [stax.Dense(1, 1.0, None, parameterization="ntk"), ACTIVATIONS[name]]
    return stax.serial(*layers, stax.Dense(1, 1.0, None, parameterization="ntk"))


def conv(size, stride=1):
    return stax.Conv(1, (size, size), (stride, stride), "SAME", 1.0, None, parameterization="ntk")


def operation(name):
    if name == "nor_conv_1x1":
        return stax.serial(stax.Relu(), conv(1))
    if name == "nor_conv_3x3":
        return stax.serial(stax.Relu(), conv(3))
    if name == "avg_pool_3x3":
        return stax.AvgPool((3, 3), (1, 1), "SAME", normalize_edges=True)
    return stax.Identity()


def chain_and_skip(first, second, beside):
    """A cell: 0 -> 1 -> 3 by the first two operations, 0 -> 3 by the last one."""
    path = stax.serial(operation(first), operation(second))
    return stax.serial(stax.FanOut(2), stax.parallel(path, operation(beside)), stax.FanInSum())


def convolutional(*cell):
    return stax.serial(
        conv(3),
        chain_and_skip(*cell),
        stax.Relu(),
        stax.GlobalAvgPool(),
        stax.Dense(1, 1.0, None, parameterization="ntk"),
    )


def main():
    generator = np.random.default_rng(0)
    found = {}
    x = generator.standard_normal((6, 8))
    images = generator.standard_normal((4, 5, 5, 3))
    found["x"], found["images"] = x, images
    for names in (
        "relu relu relu relu",
        "leaky_relu leaky_relu",
        "erf erf erf",
        "tanh tanh",
        "sigmoid swish tanh",
        "swish",
    ):
        kernel = connected(names.split())[2](x, None, ("nngp", "ntk"))
        found[f"mlp {names} nngp"], found[f"mlp {names} ntk"] = kernel.nngp, kernel.ntk
    for cell in (
        ("nor_conv_3x3", "nor_conv_1x1", "skip_connect"),
        ("nor_conv_3x3", "avg_pool_3x3", "skip_connect"),
        ("nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"),
    ):
        kernel = convolutional(*cell)[2](images, None, ("nngp", "ntk"))
        name = "cell " + " ".join(cell)
        found[f"{name} nngp"], found[f"{name} ntk"] = kernel.nngp, kernel.ntk
    np.savez_compressed(Path(__file__).with_name("neural_tangents.npz"), **{k: np.asarray(v) for k, v in found.items()})


if __name__ == "__main__":
    main()
