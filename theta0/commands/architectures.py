"""What the spaces hold: the commands spaces, describe and sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from theta0.commands.options import Classes, DataName, Shape, SkeletonName, SpaceName
from theta0.errors import Theta0Error


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
