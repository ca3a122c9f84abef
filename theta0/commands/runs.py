"""The commands runs and show: what is stored."""

from __future__ import annotations

from typing import Annotated

from theta0.commands.options import RunName, RunsRoot
from theta0.errors import Theta0Error


def runs(*, root: RunsRoot = None) -> None:
    """List the runs: state, settings, best validation accuracy in percent, what the evaluations took."""
    from theta0.places import runs_root
    from theta0.runs import runs as listed
    from theta0.runs.text import table

    found = listed(root)
    print(table(found) if found else f"no runs in {runs_root(root)}; --root or THETA0_RUNS names another folder")


def show(
    run: RunName,
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
