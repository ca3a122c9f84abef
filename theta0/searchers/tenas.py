"""TE-NAS (Chen et al., ICLR 2021): prunes a supernet by what each operation does to its NTK and its linear regions.

In a round every operation that is left is taken out for a moment. How much that lowers the condition number of the NTK
is one ranking, how much it raises the number of linear regions is another; each edge loses its operation of the lowest
sum of ranks, until it has one. Nothing is trained but the last architecture, which is chosen.

The NTK is that of a network of 3 channels and one cell for each resolution; the regions are those of one cell of one
channel, counted by patches of 3 x 3 pixels. Images are those of the task, not augmented; without any, pixels are drawn
from a normal distribution. All candidates of a round are compared at the same initial parameters and on the same
images; the official code draws others for each of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from theta0 import ops
from theta0.candidates import Floats
from theta0.data import ImageDataset
from theta0.errors import Theta0Error
from theta0.evidence import Evidence
from theta0.graph import Edge
from theta0.initialize import initialize, seeded
from theta0.network.nasbench import GlobalAveragePool
from theta0.scoring import score
from theta0.searchers import Search, Task, searchers
from theta0.space import Skeleton, Space
from theta0.supernet import MixedCell, evenly, mix, supernet
from theta0.supernet.cells import Pair
from theta0.threads import threads

Active = Mapping[Pair, tuple[str, ...]]
"""The operations that each edge still has."""
Measure = Callable[[Sequence[Active]], tuple[Floats, Floats]]
"""Condition numbers and numbers of regions of parts of a supernet, (repeats, parts) each."""

_BATCHES, _SIDE = 3, 3
"""Batches of patches, and the side of a patch."""
_MOST = 2**20
"""So many architectures at most are asked whether they are allowed."""


@searchers.register("tenas")
def tenas(
    task: Task,
    generator: np.random.Generator,
    *,
    kernel: str = "tenas",
    batch: int = 72,
    patches: int = 1000,
    repeats: int = 3,
    precision: int = 3,
    reinitialize: Literal["paper", "official"] = "paper",
) -> Search:
    """``kernel`` is a variant of the score kappa; ``batch`` images make it, and three times ``patches`` the regions.

    Each of the ``repeats`` draws parameters anew, normal by fan-out for the NTK and by fan-in for the regions. That is
    the paper's ``reinitialize``; in the official code it never happens, because two names do not match: a round keeps
    the parameters that its layers drew for themselves. Changes are rounded to ``precision`` digits.
    """
    if reinitialize not in ("paper", "official"):
        raise Theta0Error(f"reinitialize is paper or official, not {reinitialize!r}")
    for name, value, least in (
        ("batch", batch, 2),
        ("patches", patches, 1),
        ("repeats", repeats, 1),
        ("precision", precision, 1),
    ):
        if value < least:
            raise Theta0Error(f"{name} is {least} or more, not {value}")
    active = edges(task.space)
    allowed = _allowed(task, active)
    probe = Probe(task.space, generator, task.images, kernel, batch, patches, repeats, reinitialize == "paper")
    left = prune(active, probe, allowed, precision)
    found = _architecture(task.space, [names[0] for names in left.values()])
    (outcome,) = yield [task.proposal(found)]
    return None if outcome.failed else found


def prune(active: Active, measure: Measure, allowed: NDArray[np.bool_], precision: int = 3) -> Active:
    """One operation for each edge. ``allowed`` (operations of the first edge, of the second, ...) tells which end is.

    What would leave nothing allowed is not pruned.
    """
    start = dict(active)
    while any(len(names) > 1 for names in active.values()):
        cuts = [(pair, name) for pair, names in active.items() if len(names) > 1 for name in names]
        kappas, regions = measure([active, *(_without(active, *cut) for cut in cuts)])
        first, second = _ranks(-_decrease(kappas), precision), _ranks(_decrease(regions), precision)
        done: set[Pair] = set()
        for place in np.lexsort((first, first + second)):
            pair, name = cuts[place]
            if pair in done:
                continue
            kept = allowed.copy()
            np.moveaxis(kept, list(start).index(pair), 0)[start[pair].index(name)] = False
            if kept.any():
                done.add(pair)
                active, allowed = _without(active, pair, name), kept
    return active


def _without(active: Active, pair: Pair, name: str) -> Active:
    return {**active, pair: tuple(other for other in active[pair] if other != name)}


def _decrease(values: Floats) -> Floats:
    """(repeats, parts - 1): the share by which each part is smaller than the first one.

    A singular kernel has an infinite condition number: to lose it is a decrease by all, to keep it none.
    """
    whole, parts = values[:, :1], values[:, 1:]
    with np.errstate(invalid="ignore"):  # of two infinite ones, which are told apart here
        share = (whole - parts) / whole
    return np.where(np.isinf(whole), np.where(np.isinf(parts), 0.0, 1.0), share)


def _ranks(changes: Floats, precision: int) -> NDArray[np.int64]:
    """From 0 for the smallest mean change; what is equal in ``precision`` digits shares a rank."""
    means = changes.round(precision).mean(axis=0)
    return np.unique([float(f"{mean:.{precision}g}") for mean in means], return_inverse=True)[1]


def edges(space: Space[Any]) -> Active:
    """The operations of each edge of a space whose choices are those and nothing else; without those that give zero."""
    supercells = space.supercells()
    cells = list(supercells.values())
    if len(cells) != 1 or [set(names) for names in cells[0].edges.values()] != [
        set(choice.candidates) for choice in space.choices
    ]:
        raise Theta0Error(
            f"TE-NAS takes one operation after the other from each edge of one cell; {space.name} has "
            f"{len(space.choices)} choices and the cells {', '.join(supercells)}, which do not fit; search it with "
            f"another searcher"
        )
    return {pair: tuple(name for name in names if name not in space.zero) for pair, names in cells[0].edges.items()}


def _architecture(space: Space[Any], names: Sequence[str]) -> Any:
    return space.decode([choice.candidates.index(name) for choice, name in zip(space.choices, names, strict=True)])


def _allowed(task: Task, active: Active) -> NDArray[np.bool_]:
    """For each way to the end, by the place of each edge's operation, whether it may be evaluated."""
    shape = [len(names) for names in active.values()]
    if math.prod(shape) > _MOST:
        raise Theta0Error(f"TE-NAS looks at all architectures there are, at most {_MOST:,}; {math.prod(shape):,} are")
    ends = []
    for names in itertools.product(*active.values()):
        ends.append(_architecture(task.space, names))
        (cell,) = task.space.cells(ends[-1]).values()
        if set(cell.edges) != {Edge(*pair, name) for pair, name in zip(active, names, strict=True)}:
            raise Theta0Error(f"the choices of {task.space.name} do not come in the order of its supercell's edges")
    allowed = task.objective.allowed_all(ends).reshape(shape)
    if not allowed.any():
        raise Theta0Error(
            f"none of the {len(ends):,} architectures that pruning may end at is allowed; raise the limits"
        )
    return allowed


@dataclass(frozen=True, eq=False)
class Probe:
    """Measures parts of a supernet by the protocol whose numbers :func:`tenas` names."""

    space: Space[Any]
    generator: np.random.Generator
    images: ImageDataset | None
    kernel: str
    batch: int
    patches: int
    repeats: int
    paper: bool
    """Whether each repeat draws parameters anew."""

    def __call__(self, parts: Sequence[Active]) -> tuple[Floats, Floats]:
        """Condition numbers and numbers of regions, (repeats, parts) each."""
        wide, thin = self._networks()
        (name,) = self.space.supercells()
        kappas = np.empty((self.repeats, len(parts)))
        regions = np.empty_like(kappas)
        with threads(1):  # these networks are small, and searches run side by side
            for repeat in range(self.repeats):
                if self.paper:
                    initialize(wide, "he_out", self._seed())
                    initialize(thin, "he", self._seed())
                x, y = self._kernel_batch()
                patches = self._patch_batches()
                for place, part in enumerate(parts):
                    mix(wide, {name: evenly(part)})
                    mix(thin, {name: evenly(part)})
                    kappas[repeat, place] = self._kappa(wide, x, y)
                    regions[repeat, place] = count_regions(thin, patches)
        return kappas, regions

    def _seed(self) -> int:
        return int(self.generator.integers(2**31))

    @property
    def _data(self) -> Skeleton:
        """A skeleton with the shape and the classes of the images."""
        if self.images is None:
            return self.space.options()
        return self.space.options(shape=self.images.shape, classes=len(self.images.classes))

    def _networks(self) -> tuple[nn.Module, nn.Module]:
        """The network of the NTK, and the one cell of the regions."""
        wide = supernet(self.space, self._data, seed=self._seed(), channels=3, cells=1)
        ((name, supercell),) = self.space.supercells().items()
        with seeded(self._seed()):
            cell = MixedCell(supercell, lambda edge: ops.build(edge.op, 1), name=name)
            head = (nn.BatchNorm2d(1), nn.ReLU(), GlobalAveragePool(), nn.Linear(1, self._data.classes))
            return wide, nn.Sequential(cell, *head)

    def _kernel_batch(self) -> tuple[Tensor, Tensor]:
        if self.images is not None:
            return self.images.batch(self.batch, seed=self._seed())
        x = self.generator.standard_normal((self.batch, *self._data.shape), dtype=np.float32)
        return torch.from_numpy(x), torch.from_numpy(self.generator.integers(self._data.classes, size=self.batch))

    def _patch_batches(self) -> list[Tensor]:
        """Batches (patches, 1, 3, 3): of one channel of an image, at a place of its own."""
        shape = (self.patches, 1, _SIDE, _SIDE)
        if self.images is None:
            return [torch.from_numpy(self.generator.standard_normal(shape, dtype=np.float32)) for _ in range(_BATCHES)]
        found = []
        for _ in range(_BATCHES):
            x, _ = self.images.batch(self.patches, seed=self._seed())
            channel, top, left = (
                self.generator.integers(size - side + 1, size=self.patches)
                for size, side in zip(x.shape[1:], (1, _SIDE, _SIDE), strict=True)
            )
            rows, columns = top[:, None, None] + np.arange(_SIDE)[:, None], left[:, None, None] + np.arange(_SIDE)
            found.append(x[np.arange(self.patches)[:, None, None], channel[:, None, None], rows, columns][:, None])
        return found

    def _kappa(self, model: nn.Module, x: Tensor, y: Tensor) -> float:
        (record,) = score(model, x, y, [f"kappa:{self.kernel}"])
        if math.isnan(record.value):
            raise Theta0Error(f"a part of the supernet has no condition number: {record.note or record.validity}")
        return record.value


def count_regions(model: nn.Module, batches: Sequence[Tensor]) -> int:
    """The number of linear regions that all samples lie in; each batch is normalised by itself."""
    patterns = []
    for x in batches:
        with Evidence(model, x, torch.zeros(len(x), dtype=torch.int64), needs={"patterns"}) as e:
            patterns.append(torch.cat(e.patterns, dim=1))
    return len(torch.unique(torch.cat(patterns), dim=0))
