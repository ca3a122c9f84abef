"""The command line: each command is a function here, and its options are the function's parameters.

A parameter without a default is an argument, a keyword-only one an option; its help is the text in its annotation.
Commands import what they need when they run, so that ``theta0 --help`` answers at once.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import theta0
from theta0.errors import Theta0Error, nearest

if TYPE_CHECKING:
    from theta0.space import Skeleton
    from theta0.tables import Table

SpaceName = Annotated[str, "a space: see `theta0 spaces`, or your own as module:Class"]
SkeletonName = Annotated[str | None, "a skeleton of the space by name (default: its first)"]
DataName = Annotated[str | None, "take shape and classes from a data set: a name or a path"]
Shape = Annotated[str | None, "images as channels x height x width, such as 3x32x32"]
Classes = Annotated[int | None, "number of classes"]
RunsRoot = Annotated[Path | None, "the folder of runs (default: THETA0_RUNS or ./runs)"]


def spaces() -> None:
    """List the search spaces with size and notation."""
    from theta0.space import get_space
    from theta0.space import spaces as registry

    for name in registry.names():
        space = get_space(name)
        print(f"{name}  {space.size:,} architectures")
        print(f"    {space.title}")
        print(f"    skeletons: {', '.join(space.skeletons)}")
        print(f"    notation:  {space.notation}")


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


def describe(
    space: SpaceName,
    architecture: Annotated[str, "an architecture in the notation of the space"],
    *,
    skeleton: SkeletonName = None,
    shape: Shape = None,
    classes: Classes = None,
    data: DataName = None,
    svg: Annotated[Path | None, "also draw the cells into this file"] = None,
) -> None:
    """Show an architecture: its cells, their width and depth, canonical form, parameters and multiply-adds."""
    from theta0 import draw
    from theta0.graph import depth, width
    from theta0.space import get_space

    found = get_space(space)
    parsed = found.parse(architecture)
    options = found.options(skeleton, **_data_options(shape, classes, data))
    cost = found.measure(parsed, options)
    cells = found.cells(parsed)
    print(found.format(parsed))
    for name, cell in cells.items():
        wide, deep = width(cell, found.zero), depth(cell, found.zero)
        print(f"\n{name}: width {wide:g}c, depth {deep}" + ("" if deep else " (no path from input to output)"))
        print(draw.text(cell))
    print()
    size = " x ".join(map(str, options.shape))
    rows = [("parameters", f"{cost.parameters:,}"), ("multiply-adds", f"{cost.flops:,}")]
    rows.append(("network for", f"{size} images, {options.classes} classes"))
    canonical = found.canonical(parsed)
    if isinstance(canonical, tuple) and cells:
        rows += [(f"canonical {name}", str(form)) for name, form in zip(cells, canonical, strict=True)]
    elif canonical != parsed:
        rows.append(("canonical form", str(canonical)))
    for title, value in rows:
        print(f"{title:<16} {value}")
    if svg:
        if not cells:
            raise Theta0Error(f"the space {space} has no cells to draw; leave --svg out")
        svg.write_text(draw.svg(cells), encoding="utf-8")
        print(f"{'drawing':<16} {svg}")


def sample(
    space: SpaceName = "nasbench201",
    *,
    count: Annotated[int, "how many architectures"] = 10,
    seed: Annotated[int, "the same seed gives the same architectures"] = 0,
    skeleton: SkeletonName = None,
    shape: Shape = None,
    classes: Classes = None,
    data: DataName = None,
) -> None:
    """Draw architectures, each with the same probability, and show what they cost."""
    import numpy as np

    from theta0.graph import depth, width
    from theta0.space import get_space

    if count < 1:
        raise Theta0Error(f"--count must be at least 1, not {count}")
    if seed < 0:
        raise Theta0Error(f"--seed must be 0 or more, not {seed}")
    found = get_space(space)
    options = found.options(skeleton, **_data_options(shape, classes, data))
    generator = np.random.default_rng(seed)
    print(f"{found.title}; {' x '.join(map(str, options.shape))} images, {options.classes} classes")
    print(f"{'parameters':>12} {'multiply-adds':>15}  {'width':>9} {'depth':>7}  architecture", flush=True)
    for _ in range(count):
        architecture = found.sample(generator)
        cost = found.measure(architecture, options)
        cells = found.cells(architecture).values()
        wide = "/".join(f"{width(cell, found.zero):.3g}c" for cell in cells) or "-"
        deep = "/".join(str(depth(cell, found.zero)) for cell in cells) or "-"
        print(
            f"{cost.parameters:>12,} {cost.flops:>15,}  {wide:>9} {deep:>7}  {found.format(architecture)}", flush=True
        )


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
    from theta0.memory import keep_blocks
    from theta0.pool import check_file, score_pool
    from theta0.registry import imported
    from theta0.scoring import score as score_one
    from theta0.space import Space, get_space

    if out:
        check_file(out)
    keep_blocks()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
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
    changes = _options(space.options(skeleton), options)
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


def _options(skeleton: Skeleton, text: str | None) -> dict[str, Any]:
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


def bench(
    space: SpaceName,
    *,
    table: Annotated[str, "a tabular benchmark: a file or a name, see `theta0 data list`"] = "",
    searchers: Annotated[str, "names with commas between; random search and the optimum are always shown"] = "hnas",
    seeds: Annotated[int, "searches of each"] = 10,
    data: Annotated[str, "the data set of the table to search on"] = "cifar10",
    epochs: Annotated[str | None, "training budgets that may be used, such as 12 (default: the shortest)"] = None,
    evaluations: Annotated[int | None, "at most so many trainings"] = None,
    seconds: Annotated[
        float | None, "at most so many simulated seconds (default: 3000, if nothing else is said)"
    ] = None,
    scores: Annotated[str | None, "a score file, or none (default: those that come with theta0)"] = None,
    limits: Annotated[str | None, "such as parameters=1e6,edgegpu_latency=5"] = None,
    options: Annotated[str | None, "of searchers: hnas.score=snip,evolution.population=20"] = None,
    processes: Annotated[int, "searches at a time"] = 1,
    out: Annotated[Path | None, "a folder for bench.csv and the curves as SVG and PNG"] = None,
) -> None:
    """Compare searchers on a tabular benchmark over many seeds."""
    from theta0 import bench as comparison
    from theta0 import figure, tables
    from theta0.places import check_folder
    from theta0.pool import PoolScores, shipped
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
    read = None if scores in (None, "none") else PoolScores.load(scores)
    pool = shipped(space, "cifar10") if scores is None else read
    result = comparison.bench(
        found,
        data,
        names,
        Budget(evaluations, 3000.0 if seconds is None and evaluations is None else seconds),
        seeds=seeds,
        epochs=budgets,
        scores=pool,
        limits=wanted,
        settings={name: settings_of(",".join(parts), name) for name, parts in texts.items()},
        processes=processes,
        progress=sys.stderr,
    )
    print(result.text())
    if out:
        for path in result.save(out):
            print(path)


def reproduce(
    paper: Annotated[str | None, "a paper, such as hnas; without it the known ones are listed"] = None,
    *,
    table: Annotated[str | None, "tables by number, such as 1 or 4,13"] = None,
    figure: Annotated[str | None, "figures by number"] = None,
    nasbench201: Annotated[str | None, "a table of NAS-Bench-201 with test accuracies"] = None,
    nasbench101: Annotated[str | None, "a table of NAS-Bench-101"] = None,
    seeds: Annotated[int, "searches of each kind"] = 10,
    processes: Annotated[int, "searches at a time"] = 1,
    out: Annotated[Path | None, "a folder for the tables as Markdown and CSV, and for figures"] = None,
) -> None:
    """Make a paper's tables and figures anew: its numbers, ours, and the difference."""
    from theta0 import figure as figures
    from theta0.papers import Given, check, known
    from theta0.papers import reproduce as make
    from theta0.places import check_folder

    if paper is None:
        for name, parts in known().items():
            print(name)
            for what, title in parts.items():
                print(f"    {what:<12} {title}")
        return
    wanted = [f"table {part.strip()}" for part in (table or "").split(",") if part.strip()]
    wanted += [f"figure {part.strip()}" for part in (figure or "").split(",") if part.strip()]
    if not wanted:
        wanted = list(known().get(paper, {"": ""}))
    given = Given(nasbench201, nasbench101, seeds, processes, out, sys.stderr)
    for what in wanted:
        check(paper, what)
    if any(what.startswith("figure") for what in wanted):
        figures.check()
        if out is None:
            raise Theta0Error("figures need a place: --out FOLDER; or name the tables that you want: --table 1,2")
    if out:
        check_folder(out)
    given.read()
    for what in wanted:
        report = make(paper, what, given)
        print(report.text() + "\n")
        if out:
            out.mkdir(parents=True, exist_ok=True)
            for suffix in (".md", ".csv"):
                report.save(out / f"{paper}-{what.replace(' ', '-')}{suffix}")


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


def data(
    action: Annotated[
        Literal["list", "get", "convert", "check"],
        "list what is known, download it, convert a table to a file that loads at once, or look into something",
    ],
    source: Annotated[str | None, "the name of a data set or table, or for convert and check also a path"] = None,
    target: Annotated[
        Path | None, "for convert: the .npz file to write (default: the table's place, by its name)"
    ] = None,
    *,
    root: Annotated[Path | None, "the folder of known data (default: THETA0_DATA or ~/.cache/theta0)"] = None,
    space: Annotated[str | None, "ask a NAS-Bench-101 table in this space, such as nasbench1shot1_1"] = None,
    hardware: Annotated[Path | None, "attach the latencies of this HW-NAS-Bench file to a table"] = None,
) -> None:
    """List, download, convert and check image data sets and tabular benchmarks."""
    from theta0 import tables
    from theta0.places import data_root

    if source is None and action != "list":
        raise Theta0Error(f"`theta0 data {action}` needs the name of a data set or table; `theta0 data list` has them")
    if target is not None and action != "convert":
        raise Theta0Error(f"`theta0 data {action}` writes no file; leave {str(target)!r} out")
    if action == "convert" or (source is not None and _is_table(source)):
        assert source is not None
        if action == "get":
            path = tables.get(source, root)
            print(path)
            print(f"convert it, once: theta0 data convert {source}")
        elif action == "convert":
            if target is None and source in tables.names():
                target = data_root(root) / f"{source}.npz"
                target.parent.mkdir(parents=True, exist_ok=True)
            if target is None:
                raise Theta0Error("`theta0 data convert` needs the .npz file to write after the source")
            made = tables.convert(source, target, root=root, space=space, hardware=hardware, progress=sys.stderr)
            print(f"{target}: {len(made):,} rows of {made.name}")
        else:
            _facts(tables.load(source, root=root, space=space, hardware=hardware, progress=sys.stderr))
        return
    if space is not None or hardware is not None:
        raise Theta0Error("--space and --hardware are for tables; leave them out for image data")
    _images(action, source, root)


def _is_table(source: str) -> bool:
    """Whether a name or path is that of a tabular benchmark; a .npz file may also hold images."""
    from theta0 import tables
    from theta0.tables import file
    from theta0.tables.readers import readers

    path = Path(source)
    if source in tables.names():
        return True
    if not path.exists():  # a name that is nearer to a table's than to a data set's, or a table's file
        return bool(difflib.get_close_matches(source, tables.names(), n=1)) or path.suffix in (".parquet", ".tfrecord")
    if path.suffix == ".npz":
        return file.is_table(path)
    return path.suffix == ".parquet" or any(readers.get(name)().matches(path) for name in readers.names())


def _facts(table: Table) -> None:
    """What ``theta0 data check`` says of a table."""
    from theta0.tables import checksum

    print(f"{table.name}: {len(table):,} rows, space {table.space}")
    print(f"    source: {table.source}")
    for dataset in table.datasets:
        for epochs in table.epochs(dataset):
            runs = table.runs(dataset, epochs)
            few, many = int(runs.min()), int(runs.max())
            said = "mean of runs" if not many else f"runs {many}" if few == many else f"runs {few} to {many}"
            best = f"best validation {table.validation(dataset, epochs).max():.3f}"
            best += (
                f", test {table.test(dataset, epochs).max():.3f}" if table.has_test(dataset, epochs) else ", no test"
            )
            seconds = table.seconds(dataset, epochs).mean()
            print(f"    {dataset}, {epochs} epochs: {said}, {best}, {seconds:,.0f} s on average")
    costs = list(dict.fromkeys(name for _, name in table.costs))
    print(f"    costs: {', '.join(costs) or 'none'}")
    if table.suspect is not None and table.suspect.any():
        print(f"    suspect rows: {int(table.suspect.sum()):,}")
    for note in table.notes:
        print(f"    note: {note}")
    print(f"    sha256: {checksum(table)}")


def _images(action: str, source: str | None, root: Path | None) -> None:
    """The part of ``data`` that is about images; ``list`` shows the tables after them."""
    from theta0.data import get, load, names
    from theta0.data.sources import SOURCES, candidates
    from theta0.places import data_root

    if action == "list":
        place = data_root(root)
        for name in names():
            known = SOURCES.get(name)
            if known is None:
                print(f"{name:<14} comes with scikit-learn")
                continue
            found = next((str(path) for path in candidates(name, place) if path.is_dir()), None)
            megabytes = sum(file.size for file in known.files) / 1e6
            print(f"{name:<14} {found or f'not there; `theta0 data get {name}` downloads {megabytes:.0f} MB'}")
        _list_tables(root)
        return
    assert source is not None
    if action == "get":
        print(get(source, root=root))
        return
    loaded = load(source, root=root)
    for part in (loaded.train, loaded.test):
        if part is None:
            print("no test part; one will be split off")
            continue
        counts = part.labels.bincount(minlength=len(part.classes))
        print(f"{part.name}: {len(part):,} images of {' x '.join(map(str, part.shape))}, {len(part.classes)} classes")
        print(f"    images in a class: {int(counts.min()):,} to {int(counts.max()):,}")
        for title, values in zip(("mean", "deviation"), part.mean_std(), strict=True):
            print(f"    {title} of the channels: {', '.join(f'{value:.4f}' for value in values)}")
        print(f"    fingerprint: {part.fingerprint()}")


def _list_tables(root: Path | None) -> None:
    from theta0.tables import sources

    print("\ntables")
    for name, known in sources.TABLES.items():
        print(f"{name:<17} {known.title}")
        through = known.through or name
        if (path := sources.ready(through, root)) is not None:
            place = str(path) if known.through is None else f"through {through}: {path}"
        elif (path := sources.official(through, root)) is not None:
            place = f"{path}; `theta0 data convert {through}` makes a file that loads at once"
        else:
            place = f"not there; {known.obtain}"
        print(f"    {place}")


def _data_options(shape: str | None, classes: int | None, data: str | None) -> dict[str, Any]:
    """The options of a skeleton that the data decide."""
    options: dict[str, Any] = {}
    if data is not None:
        from theta0.data import load

        train = load(data).train
        options = {"shape": train.shape, "classes": len(train.classes)}
    if shape is not None:
        parts = shape.lower().split("x")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
            raise Theta0Error(f"--shape must be channels x height x width, such as 3x32x32, not {shape!r}")
        options["shape"] = tuple(map(int, parts))
    if classes is not None:
        if classes < 1:
            raise Theta0Error(f"--classes must be at least 1, not {classes}")
        options["classes"] = classes
    return options


def runs(*, root: RunsRoot = None) -> None:
    """List the runs: state, settings, best validation accuracy in percent, what the evaluations took."""
    from theta0.places import runs_root
    from theta0.runs import runs as listed
    from theta0.runs.text import table

    found = listed(root)
    print(table(found) if found else f"no runs in {runs_root(root)}; --root or THETA0_RUNS names another folder")


def show(
    run: Annotated[str, "a run: its name, the path of its folder, or latest"],
    *,
    root: RunsRoot = None,
    last: Annotated[int, "how many of the last trials and events"] = 20,
) -> None:
    """Show a run: settings, state, incumbent, trials, events."""
    from theta0.runs import Run
    from theta0.runs.text import show as told

    if last < 1:
        raise Theta0Error(f"--last must be at least 1, not {last}")
    with Run.find(run, root) as found:
        print(told(found, last))


COMMANDS: tuple[Callable[..., None], ...] = (
    bench,
    reproduce,
    score,
    scores,
    searchers,
    sample,
    describe,
    spaces,
    data,
    runs,
    show,
)


def parser(commands: Iterable[Callable[..., None]] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line, made from the signatures of ``commands``."""
    top = argparse.ArgumentParser(
        prog="theta0", description="Find a strong neural network for your images at initialization."
    )
    top.add_argument("--version", action="version", version=f"theta0 {theta0.__version__}")
    sub = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        name = command.__name__.replace("_", "-")
        summary = inspect.getdoc(command) or ""
        one = sub.add_parser(name, help=summary.splitlines()[0], description=summary)
        hints = typing.get_type_hints(command, include_extras=True)
        for parameter in inspect.signature(command).parameters.values():
            _add(one, parameter, hints[parameter.name])
        one.set_defaults(command=command)
    return top


def _add(to: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any) -> None:
    kind, *notes = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    text = notes[0] if notes else None
    required = parameter.default is inspect.Parameter.empty
    if typing.get_origin(kind) in (types.UnionType, typing.Union):  # X | None: an option that may be left out
        kind = next(choice for choice in typing.get_args(kind) if choice is not types.NoneType)
    if not required and parameter.default is not None and text:
        text = f"{text} (default: {parameter.default})"
    extra: dict[str, Any] = {"type": kind}
    if typing.get_origin(kind) is Literal:
        extra = {"choices": typing.get_args(kind)}
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        name = "--" + parameter.name.replace("_", "-")
        to.add_argument(name, dest=parameter.name, default=parameter.default, help=text, **extra)
    else:
        if not required:
            extra |= {"nargs": "?", "default": parameter.default}
        to.add_argument(parameter.name, help=text, **extra)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it went well, 2 for a value that cannot be used."""
    if "" not in sys.path:  # a user's own files are importable from the folder where the command runs
        sys.path.insert(0, "")
    options = vars(parser().parse_args(arguments))
    command = options.pop("command")
    try:
        command(**options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("theta0: stopped", file=sys.stderr)
        return 130
    except (Theta0Error, OSError) as error:
        print(f"theta0: error: {error}", file=sys.stderr)
        return 2
    return 0
