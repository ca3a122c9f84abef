"""The run store: a folder for each run, with a database that outlives its processes, and the run's files beside it.

with Run.create(None, settings) as store, store.working() as end:
    result = searching.run(..., on_trial=store.add_trial)
    end["chosen"] = space.format(result.chosen)

Run.find("latest").trials()         # what a search goes on from
runs()                              # a summary of each run in the folder of runs
"""

from __future__ import annotations

from theta0.runs.listing import Summary, runs
from theta0.runs.records import Evaluation, Event, Process, State
from theta0.runs.run import Run

__all__ = ["Evaluation", "Event", "Process", "Run", "State", "Summary", "runs"]
