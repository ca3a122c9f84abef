"""The commands bench and searchers: searchers compared on a tabular benchmark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from theta0.commands.options import SpaceName
from theta0.errors import Theta0Error


def bench(
    space: SpaceName,
    *,
    table: Annotated[str, "a tabular benchmark: a file or a name, see `theta0 data list`"] = "",
    searchers: Annotated[str, "names with commas between; random search and the optimum are always shown"] = "hnas",
    seeds: Annotated[int, "searches of each"] = 10,
    data: Annotated[str, "the data set of the table to search on"] = "cifar10",
    epochs: Annotated[str | None, "training budgets that may be used, such as 12 (default: the shortest)"] = None,
    evaluations: Annotated[int | None, "at most so many trainings (default: 20, if --seconds are not said)"] = None,
    seconds: Annotated[float | None, "at most so many simulated seconds"] = None,
    scores: Annotated[
        str | None, "a score file, or none (default: those of the space and data set that come with theta0)"
    ] = None,
    images: Annotated[str | None, "images for searchers that look at some or train a supernet: a name or path"] = None,
    device: Annotated[str, "where supernets run: cpu, cuda, or auto"] = "auto",
    limits: Annotated[str | None, "such as parameters=1e6,edgegpu_latency=5"] = None,
    options: Annotated[str | None, "of searchers: hnas.score=snip,evolution.population=20"] = None,
    processes: Annotated[int, "searches at a time"] = 1,
    out: Annotated[Path | None, "a folder for bench.csv and the curves as SVG and PNG"] = None,
) -> None:
    """Compare searchers on a tabular benchmark over many seeds."""
    from theta0 import bench as comparison
    from theta0 import figure, tables
    from theta0.data import load
    from theta0.device import resolved
    from theta0.places import check_folder
    from theta0.pool import PoolScores, is_shipped, shipped
    from theta0.searchers import Budget
    from theta0.searching import settings_of
    from theta0.space import get_space

    get_space(space)
    if out:
        figure.check()
        check_folder(out)
    found = tables.load(table or space)
    if found.space != space:
        raise Theta0Error(f"the table is of {found.space}, not of {space}; name its space, or another table")
    names = [name.strip() for name in searchers.split(",")]
    texts: dict[str, list[str]] = {}
    for part in (options or "").split(",") if options else []:
        name, dot, rest = part.strip().partition(".")
        if not dot or name not in names:
            raise Theta0Error(f"--options are SEARCHER.name=value of the searchers asked for, not {part!r}")
        texts.setdefault(name, []).append(rest)
    wanted: dict[str, float] = {}
    for part in (limits or "").split(",") if limits else []:
        name, _, value = part.partition("=")
        try:
            wanted[name.strip()] = float(value)
        except ValueError:
            raise Theta0Error(f"--limits are cost=number, not {part!r}") from None
    if epochs is None:
        budgets = found.epochs(data)[:1]
    elif all(part.strip().isdecimal() for part in epochs.split(",")):
        budgets = [int(part) for part in epochs.split(",")]
    else:
        raise Theta0Error(f"--epochs are numbers with commas between, not {epochs!r}")
    if scores is None and is_shipped(space, data):
        pool = shipped(space, data)
    elif scores is None:
        pool = None
        lacking = f"no scores of {space} on {data} come with theta0"
        print(f"{lacking}: searchers that choose from a scored pool need --scores FILE", file=sys.stderr)
    else:
        pool = None if scores == "none" else PoolScores.load(scores)
    result = comparison.bench(
        found,
        data,
        names,
        Budget(20 if seconds is None and evaluations is None else evaluations, seconds),
        seeds=seeds,
        epochs=budgets,
        scores=pool,
        images=None if images is None else load(images).train.to(resolved(device)),
        limits=wanted,
        settings={name: settings_of(",".join(parts), name) for name, parts in texts.items()},
        processes=processes,
        progress=sys.stderr,
    )
    print(result.text())
    if out:
        for path in result.save(out):
            print(path)


def searchers() -> None:
    """List the searchers with their options."""
    from theta0.searchers import searchers as registry
    from theta0.searching import options as options_of

    for name in registry.names():
        made = registry.get(name)
        module = sys.modules[made.__module__]
        print(f"{name}  {(module.__doc__ or '').strip().splitlines()[0]}")
        for option, default in options_of(made).items():
            print(f"    {option} = {'+'.join(default) if isinstance(default, tuple) else default}")
