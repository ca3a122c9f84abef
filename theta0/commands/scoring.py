"""Scores at initialization: the commands score and scores."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from theta0.commands.options import SkeletonName
from theta0.errors import Theta0Error, nearest

if TYPE_CHECKING:
    from theta0.space import Skeleton


def score(
    target: Annotated[str, "a space, or a function that makes a network: mymodule.py:build"],
    *,
    data: Annotated[str, "a data set: a name or a path"] = "digits",
    pool: Annotated[str, "how many architectures to sample, or all, or a file with one on each line"] = "100",
    scores: Annotated[str | None, "names, with variants behind a colon, divided by commas; or all"] = None,
    batch: Annotated[int, "images in the scoring batch"] = 64,
    seed: Annotated[int, "of the batch, the pool and the networks"] = 0,
    skeleton: SkeletonName = None,
    options: Annotated[str | None, "options of the skeleton, such as channels=8,cells=3"] = None,
    initialization: Annotated[str, "torch, lecun, xavier, he or ntk"] = "torch",
    random: Annotated[Literal["labels", "images", "both"] | None, "draw labels or images at random"] = None,
    dtype: Annotated[Literal["float32", "float64", "bfloat16"], "the precision of the networks"] = "float32",
    device: Annotated[str, "cpu, cuda, or auto"] = "auto",
    processes: Annotated[int, "processes that share a pool"] = 1,
    out: Annotated[Path | None, "write the scores to this .npz, .csv or .parquet file"] = None,
) -> None:
    """Score networks at initialization, without training: those of a space, or your own."""
    import numpy as np
    import torch

    from theta0.data import load
    from theta0.device import resolved
    from theta0.memory import keep_blocks
    from theta0.pool import check_file, score_pool
    from theta0.registry import imported
    from theta0.scoring import score as score_one
    from theta0.space import Space, get_space

    if out:
        check_file(out)
    keep_blocks()
    device = resolved(device)
    train = load(data).train
    x, y = train.batch(batch, seed=seed)
    drawn = torch.Generator().manual_seed(seed)
    if random in ("images", "both"):
        x = torch.randn(x.shape, generator=drawn)
    if random in ("labels", "both"):
        y = torch.randint(len(train.classes), y.shape, generator=drawn)
    precision: torch.dtype = getattr(torch, dtype)
    if ":" in target and not (isinstance(component := imported(target), type) and issubclass(component, Space)):
        model = component()
        if not isinstance(model, torch.nn.Module):
            raise Theta0Error(f"{target} gives a {type(model).__name__}, not a network (torch.nn.Module)")
        records = score_one(model.to(device), x, y, scores, dtype=precision, seed=seed)
        print(records)
        if out:
            records.save(out)
        return
    space = get_space(target)
    changes = skeleton_options(space.options(skeleton), options)
    changes |= {"shape": train.shape, "classes": len(train.classes)}
    if pool == "all":
        architectures = list(space) if hasattr(space, "__iter__") else None
        if architectures is None:
            raise Theta0Error(f"--pool all is for spaces that list themselves; {space.name} does not: give a number")
    elif pool.isdigit() and int(pool) > 0:
        generator = np.random.default_rng(seed)
        architectures = [space.sample(generator) for _ in range(int(pool))]
    elif Path(pool).is_file():
        architectures = [space.parse(line) for line in Path(pool).read_text(encoding="utf-8").splitlines()]
    else:
        raise Theta0Error(f"--pool must be a number of at least 1, all, or a file, not {pool!r}")
    table = score_pool(
        space,
        architectures,
        x,
        y,
        scores,
        skeleton=skeleton,
        seed=seed,
        initialization=initialization,
        device=device,
        processes=processes,
        dtype=precision,
        progress=sys.stderr,
        **changes,
    )
    table.facts |= {"data": train.fingerprint(), "random": random}
    if out:
        table.save(out)
    short = [name.partition(":")[0] for name in table.names]
    names = [one if short.count(one) == 1 else full for one, full in zip(short, table.names, strict=True)]
    print("  ".join(f"{name:>12}" for name in names) + "  architecture")
    for text, values, codes in zip(table.architectures[:20], table.values, table.validity, strict=False):
        cells = (
            f"{value:>{max(12, len(name))}.5g}"
            if code == 0
            else f"{'(' + table.said(code) + ')':>{max(12, len(name))}}"
            for value, code, name in zip(values, codes, names, strict=True)
        )
        print("  ".join(cells) + f"  {text}")
    if len(table.architectures) > 20:
        print(f"... and {len(table.architectures) - 20} more" + ("" if out else "; --out FILE writes them all"))


def scores() -> None:
    """List the training-free scores: variants, formulas, sources."""
    from theta0.metrics import metrics

    for name in metrics.names():
        metric = metrics.get(name)
        print(f"{name}  ({metric.direction} is better; {metric.citation})")
        for variant, made in metric.variants.items():
            print(
                f"    {variant:<10} {made.formula}" + ("  [a backward pass for each sample]" if made.expensive else "")
            )


def skeleton_options(skeleton: Skeleton, text: str | None) -> dict[str, Any]:
    """Options such as ``channels=8,affine=false`` by the types that they have in the skeleton."""
    found: dict[str, Any] = {}
    for part in (text or "").split(","):
        name, equals, value = part.strip().partition("=")
        if not part.strip():
            continue
        if not equals or not hasattr(skeleton, name):
            known = [field.name for field in dataclasses.fields(skeleton)]
            raise Theta0Error(f"--options takes name=value; {part.strip()!r} does not fit: {nearest(name, known)}")
        kind = type(getattr(skeleton, name))
        if kind is bool and value.lower() in ("true", "false"):
            found[name] = value.lower() == "true"
        elif kind is int and value.isdigit():
            found[name] = int(value)
        else:
            raise Theta0Error(f"--options {name} must be of type {kind.__name__}, not {value!r}")
    return found
