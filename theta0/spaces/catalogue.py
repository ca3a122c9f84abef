"""Published cells of the DARTS kind, by name; WIDE and DEEP are the extremes of the space.

Each entry names where the cell was published; cells are facts of those papers. Where a paper prints a
picture only, the genotype is the one that the authors' or the DARTS code gives. WIDE and DEEP are named in HNAS,
Table 3, as the widest and deepest architecture of the DARTS space; their operations are not printed, here they are
separable 3x3 convolutions throughout.

The cells NASI-FIX and NASI-ADA (NASI, Figure 5) are not here: the text we have gives their operations, but not which
input each operation reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theta0.graph import Cell, Edge
from theta0.spaces.darts import Genotype, Skeleton, make_cell, stack

if TYPE_CHECKING:
    from torch import nn

_SHORT = {
    "none": "none",
    "skip": "skip_connect",
    "max": "max_pool_3x3",
    "avg": "avg_pool_3x3",
    "sep3": "sep_conv_3x3",
    "sep5": "sep_conv_5x5",
    "sep7": "sep_conv_7x7",
    "dil3": "dil_conv_3x3",
    "dil5": "dil_conv_5x5",
    "7x1": "conv_7x1_1x7",
}


def _cell(line: str, concat: tuple[int, ...] | None = None) -> Cell:
    """A cell of a line such as ``sep3 0 sep3 1 | skip 0 dil3 2``: nodes are divided by bars."""
    nodes = [node.split() for node in line.split("|")]
    return make_cell([[(_SHORT[n[i]], int(n[i + 1])) for i in range(0, len(n), 2)] for n in nodes], concat)


_SEPARABLE_WIDE = _cell("sep3 0 sep3 1 | sep3 0 sep3 1 | sep3 0 sep3 1 | sep3 0 sep3 1")
_SEPARABLE_DEEP = _cell("sep3 0 sep3 1 | sep3 1 sep3 2 | sep3 2 sep3 3 | sep3 3 sep3 4")

CATALOGUE: dict[str, Genotype] = {
    # Zoph et al., CVPR 2018.
    "NASNet": Genotype(
        _cell("sep5 1 sep3 0 | sep5 0 sep3 0 | avg 1 skip 0 | avg 0 avg 0 | sep3 1 skip 1"),
        _cell("sep5 1 sep7 0 | max 1 sep7 0 | avg 1 sep5 0 | skip 3 avg 2 | sep3 2 max 1", (4, 5, 6)),
    ),
    # Real et al., AAAI 2019.
    "AmoebaNet": Genotype(
        _cell("avg 0 max 1 | sep3 0 sep5 2 | sep3 0 avg 3 | sep3 1 skip 1 | skip 0 avg 1", (4, 5, 6)),
        _cell("avg 0 sep3 1 | max 0 sep7 2 | sep7 0 avg 1 | max 0 max 1 | 7x1 0 sep3 5", (3, 4, 6)),
    ),
    # Pham et al., ICML 2018. The output concatenates the loose ends, as its paper says: three nodes of the reduction
    # cell. That gives 3.92 M parameters where the thesis, Table 4.3, has 3.86 M: one separable convolution more.
    "ENAS": Genotype(
        _cell("sep3 1 skip 1 | sep5 1 skip 0 | avg 0 sep3 1 | sep3 0 avg 1 | sep5 1 avg 0"),
        _cell("sep5 0 sep3 1 | sep3 1 avg 1 | sep3 1 avg 1 | avg 1 sep5 4 | sep3 5 sep5 0", (2, 3, 6)),
    ),
    # Liu et al., ICLR 2019; first and second order.
    "DARTS_V1": Genotype(
        _cell("sep3 1 sep3 0 | skip 0 sep3 1 | skip 0 sep3 1 | sep3 0 skip 2"),
        _cell("max 0 max 1 | skip 2 max 0 | max 0 skip 2 | skip 2 avg 0"),
    ),
    "DARTS_V2": Genotype(
        _cell("sep3 0 sep3 1 | sep3 0 sep3 1 | sep3 1 skip 0 | skip 0 dil3 2"),
        _cell("max 0 max 1 | skip 2 max 1 | max 0 skip 2 | skip 2 max 1"),
    ),
    # Xie et al., ICLR 2019, the mild constraint.
    "SNAS": Genotype(
        _cell("sep3 0 sep3 1 | skip 0 dil3 1 | skip 1 skip 0 | skip 0 sep3 1"),
        _cell("max 0 max 1 | max 1 skip 2 | skip 2 max 1 | max 0 dil5 2"),
    ),
    # Dong and Yang, CVPR 2019.
    "GDAS": Genotype(
        _cell("skip 0 skip 1 | skip 0 sep5 2 | sep3 3 skip 0 | sep5 4 sep3 3"),
        _cell("sep5 0 sep3 1 | sep5 2 sep5 1 | dil5 2 sep3 1 | sep5 0 sep5 1"),
    ),
    # Chen et al., ICCV 2019.
    "P_DARTS": Genotype(
        _cell("skip 0 dil3 1 | skip 0 sep3 1 | sep3 1 sep3 3 | sep3 0 dil5 4"),
        _cell("avg 0 sep5 1 | sep3 0 dil5 2 | max 0 dil3 1 | dil3 1 dil5 3"),
    ),
    # Xu et al., ICLR 2020, searched on CIFAR-10.
    "PC_DARTS": Genotype(
        _cell("sep3 1 skip 0 | sep3 0 dil3 1 | sep5 0 sep3 1 | avg 0 dil3 1"),
        _cell("sep5 1 max 0 | sep5 1 sep5 2 | sep3 0 sep3 3 | sep3 1 sep3 2"),
    ),
    "WIDE": Genotype(_SEPARABLE_WIDE, _SEPARABLE_WIDE),
    "DEEP": Genotype(_SEPARABLE_DEEP, _SEPARABLE_DEEP),
}

# Guo et al., CVPR 2020: every one of the 20 cells is different, and each of the 14 pairs of nodes has an operation,
# written as a digit: 0 none, 1 separable 3x3 convolution, 2 skip connection, 3 both.
_ROBNET_FREE = (
    "32332311233031 30121022013230 33311310202203 23211221230012 33102221210213 "
    "32333123021313 33322132122212 13331333131320 33333113210213 23103323133330 "
    "32300030120123 13133223231320 33221023312201 13331131133122 13333101223223 "
    "33033101203133 33133232222233 23133130330201 32333332303133 33113310020113 "
)


def robnet_free() -> list[Cell]:
    """The 20 cells of RobNet-free."""
    pairs = [(source, node) for node in range(2, 6) for source in range(node)]
    operations = {"0": (), "1": ("sep_conv_3x3",), "2": ("skip_connect",), "3": ("sep_conv_3x3", "skip_connect")}
    return [
        Cell(
            2,
            7,
            (
                *(Edge(*pair, op) for pair, digit in zip(pairs, code, strict=True) for op in operations[digit]),
                *(Edge(node, 6) for node in range(2, 6)),
            ),
        )
        for code in _ROBNET_FREE.split()
    ]


def build_robnet_free(skeleton: Skeleton | None = None) -> nn.Module:
    """The RobNet-free network; normalisation without affine parameters, as published."""
    return stack(robnet_free(), skeleton or Skeleton(affine=False))
