"""The command reproduce: tables and figures of the papers, anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from theta0.errors import Theta0Error


def reproduce(
    paper: Annotated[str | None, "a paper, such as hnas; without it the known ones are listed"] = None,
    *,
    table: Annotated[str | None, "tables by number, such as 1 or 4,13"] = None,
    figure: Annotated[str | None, "figures by number"] = None,
    nasbench201: Annotated[str | None, "a table of NAS-Bench-201 with test accuracies"] = None,
    nasbench101: Annotated[str | None, "a table of NAS-Bench-101"] = None,
    images: Annotated[str | None, "images that networks are scored and trained on: a name or a path"] = None,
    device: Annotated[str, "where networks are scored and trained: cpu, cuda, or auto"] = "auto",
    full: Annotated[bool, "the paper's sizes where networks are scored or trained, for a GPU"] = False,
    seeds: Annotated[int, "searches of each kind"] = 10,
    processes: Annotated[int, "searches at a time"] = 1,
    out: Annotated[Path | None, "a folder for the tables as Markdown and CSV, and for figures"] = None,
) -> None:
    """Make a paper's tables and figures anew: its numbers, ours, and the difference."""
    from theta0 import figure as figures
    from theta0.device import resolved
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
    given = Given(nasbench201, nasbench101, seeds, processes, out, sys.stderr, images, resolved(device), full)
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
