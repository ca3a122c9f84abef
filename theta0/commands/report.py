"""The commands report, watch and export: what comes of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from theta0.commands.options import RunName, RunsRoot


def report(
    run: RunName = "latest",
    *,
    out: Annotated[Path | None, "the file (default: report.html in the run's folder)"] = None,
    root: RunsRoot = None,
) -> None:
    """Write the report of a run: one HTML page that needs nothing else."""
    from theta0 import report as reports
    from theta0.runs import Run

    with Run.find(run, root) as found:
        print(reports.write(found, out))


def watch(
    run: RunName = "latest",
    *,
    port: Annotated[int, "where to listen on this machine, 0 for any that is free"] = 0,
    browser: Annotated[Literal["open", "none"], "open the page in a browser"] = "open",
    root: RunsRoot = None,
) -> None:
    """Show the report of a run while it goes on, at a secret address of this machine, until Ctrl-C."""
    from theta0.report.watch import watch as serve
    from theta0.runs import Run

    with Run.find(run, root) as found:
        path = found.path
    serve(path, port=port, open_browser=browser == "open", on_ready=lambda address: print(address, flush=True))


def export(
    run: RunName = "latest",
    *,
    to: Annotated[Literal["onnx", "pt2", "safetensors"], "the format"] = "onnx",
    out: Annotated[Path | None, "a file or a folder (default: the folder export of the run)"] = None,
    root: RunsRoot = None,
) -> None:
    """Export the trained network of a run, with a model card: ONNX and pt2 run without theta0."""
    from theta0.export import export_run
    from theta0.runs import Run

    with Run.find(run, root) as found:
        for path in export_run(found, to, out):
            print(path)
