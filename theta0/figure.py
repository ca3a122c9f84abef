"""One look for every figure: axes with units, colours that the colour-blind can tell apart, SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theta0.errors import Theta0Error

# Okabe and Ito's palette, black last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
MARKERS = ("-", "--", "-.", ":")
_STYLE = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "theta0",
}


def check() -> Any:
    """matplotlib, or how to get it: asked before work whose end is a figure. Pyplot's state is never touched."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise Theta0Error("figures need matplotlib: pip install 'theta0[plots]'") from error
    return matplotlib


def make(rows: int = 1, columns: int = 1, *, width: float = 5.0, height: float = 3.8) -> tuple[Any, list[Any]]:
    """A figure and its axes in one list."""
    matplotlib = check()
    with matplotlib.rc_context({**_STYLE, "axes.prop_cycle": matplotlib.rcsetup.cycler(color=COLOURS)}):
        drawing = matplotlib.figure.Figure((width, height), layout="constrained")
        axes = drawing.subplots(rows, columns, squeeze=False)
    return drawing, list(axes.flat)


def band(axis: Any, x: NDArray[Any], mean: NDArray[Any], spread: NDArray[Any], label: str) -> None:
    """A line with a band around it; every palette's length the line style changes."""
    count = len(axis.get_lines())
    (line,) = axis.plot(x, mean, label=label, linewidth=1.6, linestyle=MARKERS[count // len(COLOURS) % len(MARKERS)])
    shown = np.isfinite(mean)
    axis.fill_between(x[shown], (mean - spread)[shown], (mean + spread)[shown], color=line.get_color(), alpha=0.2, lw=0)


def plain(axis: Any) -> None:
    """Labels of a logarithmic axis that do not run into each other: powers of ten, or 1, 2, 5 where those are few.

    Asked for last: it looks at the limits.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for one, scale, limits in (
        (axis.xaxis, axis.get_xscale(), axis.get_xlim()),
        (axis.yaxis, axis.get_yscale(), axis.get_ylim()),
    ):
        if scale != "log":
            continue
        one.set_minor_formatter(NullFormatter())
        if max(limits) / min(limits) < 100:
            one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def save(drawing: Any, stem: Path) -> list[Path]:
    """Writes ``stem``.svg and ``stem``.png."""
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".svg", ".png")]
    with check().rc_context(_STYLE):  # text as text and the same names each time, which SVG asks for only now
        drawing.savefig(paths[0], metadata={"Date": None})
        drawing.savefig(paths[1], dpi=150)
    return paths
