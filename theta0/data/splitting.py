"""Disjoint parts of a data set that keep the shares of its classes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from theta0.data.dataset import ImageDataset
from theta0.data.sampling import seeded
from theta0.errors import DataError


def split(
    dataset: ImageDataset, fractions: Sequence[float], *, seed: int, stratified: bool = True
) -> tuple[ImageDataset, ...]:
    """Parts of ``dataset`` of the sizes ``fractions``: disjoint, together everything, each in the original order.

    Stratified, every class is split on its own by the largest-remainder rule, so each part holds its fraction of
    each class to within one image. Classes without any image stay without. Otherwise only the totals are kept.
    """
    parts = len(fractions)
    _check(fractions)
    generator = seeded(seed)
    labels = dataset.labels.cpu()
    if stratified:
        counts = torch.bincount(labels, minlength=len(dataset.classes)).tolist()
        short = [(name, count) for name, count in zip(dataset.classes, counts, strict=True) if 0 < count < parts]
        if short:
            listed = ", ".join(f"{name!r} has {count}" for name, count in short[:5])
            raise DataError(
                f"a stratified split of {dataset.name!r} into {parts} parts takes {parts} images of each class, but "
                f"{listed}{' and more' if len(short) > 5 else ''}; add images, drop the class, or use stratified=False"
            )
        groups = [(labels == kind).nonzero()[:, 0] for kind, count in enumerate(counts) if count]
    else:
        groups = [torch.arange(len(labels))]
    pieces: list[list[Tensor]] = [[] for _ in fractions]
    for group in groups:
        shuffled = group[torch.randperm(len(group), generator=generator)]
        for piece, chosen in zip(pieces, torch.split(shuffled, largest_remainder(len(group), fractions)), strict=True):
            piece.append(chosen)
    chosen_parts = [torch.cat(piece).sort().values for piece in pieces]
    for fraction, chosen in zip(fractions, chosen_parts, strict=True):
        if not len(chosen):
            raise DataError(
                f"the fraction {fraction} of the {len(dataset)} images of {dataset.name!r} rounds to no image; "
                f"use a larger fraction or more images"
            )
    return tuple(dataset.subset(chosen) for chosen in chosen_parts)


def largest_remainder(total: int, fractions: Sequence[float]) -> list[int]:
    """Whole numbers that add up to ``total``, each within one of ``total * fraction``; ties go to earlier parts."""
    exact = [total * fraction for fraction in fractions]
    sizes = [math.floor(value) for value in exact]
    # A remainder is rounded, so that 0.5 and 0.49999999999999994, both a half, tie.
    ranking = sorted(range(len(exact)), key=lambda part: round(sizes[part] - exact[part], 9))
    for part in ranking[: total - sum(sizes)]:
        sizes[part] += 1
    return sizes


def _check(fractions: Sequence[float]) -> None:
    if len(fractions) < 2:
        raise DataError(f"a split takes two or more fractions, for example (0.8, 0.2); found {tuple(fractions)}")
    if not all(0 < fraction < 1 for fraction in fractions) or abs(math.fsum(fractions) - 1) > 1e-9:
        raise DataError(
            f"the fractions of a split lie between 0 and 1 and add up to 1; found {tuple(fractions)}, "
            f"which add up to {math.fsum(fractions):.6g}"
        )
