"""The main job: from somebody's images to a trained network, in a run that survives.

    found = theta0.search("photos/", budget="10m", max_params=1e6)
    found.accuracy, found.gain                # on test images; points above random architectures trained alike
    found.model.predict(images)
    found = theta0.resume("latest")           # after a crash or a stop, with the same end

A run goes through stages: plan, scores of a pool, trials, the final training, random architectures to compare with.
Each stage writes down what it did before the next one begins, and none does what is written down already.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, TextIO

from theta0 import report
from theta0.errors import Theta0Error
from theta0.job.asked import Asked
from theta0.job.found import Found
from theta0.job.parts import Parts, Source
from theta0.job.sizes import sizes
from theta0.job.told import Told
from theta0.job.work import Work
from theta0.runs import Run

__all__ = ["Asked", "Found", "Parts", "resume", "search"]


def search(
    data: Source = "digits",
    *,
    space: str = "nasbench201",
    searcher: str = "hnas",
    budget: float | str | None = None,
    evaluations: int | None = None,
    max_params: float | None = None,
    max_flops: float | None = None,
    max_latency: float | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    size: int | None = None,
    skeleton: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    recipe: str = "brief",
    pool: int | None = None,
    epochs: int | None = None,
    final_epochs: int | None = None,
    random: int | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: TextIO | None = None,
) -> Found:
    """Searches for a network for ``data``, trains it, and compares it with random ones.

    ``data`` is what :func:`theta0.load` takes: a name, a path or arrays. ``budget`` is the time for everything, in
    minutes or as a text such as "90s", "3m" or "1h"; ``evaluations`` counts the trainings of the search instead, or as
    well. Without either the budget is three minutes. What the network may have at most is ``max_params`` parameters,
    ``max_flops`` multiply-adds and a latency of ``max_latency`` milliseconds for one image on ``device``. ``options``
    are those of the skeleton, ``settings`` those of the searcher. ``pool`` architectures are scored, each trial takes
    ``epochs``; the best and ``random`` others are then trained for ``final_epochs`` by ``recipe``; None lets the budget
    decide. The run is kept below ``root`` (default: THETA0_RUNS or ./runs).
    """
    parts = Parts.load(data, size=size, seed=seed)
    asked = Asked.check(
        parts,
        space=space,
        searcher=searcher,
        budget=budget,
        evaluations=evaluations,
        limits={"parameters": max_params, "flops": max_flops, "latency": max_latency},
        seed=seed,
        device=device,
        precision=precision,
        size=size,
        skeleton=skeleton,
        options=options or {},
        settings=settings or {},
        recipe=recipe,
        pool=pool,
        epochs=epochs,
        final_epochs=final_epochs,
        random=random,
    )
    sizes(asked, parts)  # limits that nothing keeps are known before anything is written
    with Run.create(root, asked.facts()) as run:
        return _work(run, asked, parts, progress)


def resume(
    run: str = "latest",
    *,
    data: Source | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: TextIO | None = None,
) -> Found:
    """Goes on with a run where it ended; what is finished is given back as it is.

    ``data`` is needed for a run on arrays, and where the files have moved; they must hold what they held.
    """
    with Run.find(run, root) as found:
        state, name, path, settings = found.state, found.name, found.path, found.settings
    if state == "running":
        raise Theta0Error(f"the run {name} is being worked on; `theta0 watch {name}` shows it, or stop that process")
    if state == "finished":
        return Found.of(path)
    asked = Asked.read(settings, name)
    if data is None and asked.data == Parts.ARRAYS:
        raise Theta0Error(f"the run {name} was made from arrays; give them again: theta0.resume({name!r}, data=(x, y))")
    parts = Parts.load(asked.data if data is None else data, size=asked.size, seed=asked.seed)
    if parts.fingerprint != asked.fingerprint:
        raise Theta0Error(
            f"the run {name} was made with other images than {parts.name} holds now (fingerprint "
            f"{asked.fingerprint[:12]}, found {parts.fingerprint[:12]}); give it those, or begin a new search"
        )
    with Run.open(path, write=True) as opened:
        return _work(opened, asked, parts, progress)


def _work(run: Run, asked: Asked, parts: Parts, progress: TextIO | None) -> Found:
    told = Told(progress)
    try:
        with run.working() as end:
            end.update(Work(run, asked, parts, told).done())
    except KeyboardInterrupt:
        told(f"stopped; `theta0 resume {run.name}` goes on")
        raise
    except Exception:
        with contextlib.suppress(OSError, ValueError):
            told(f"what was done is kept; `theta0 resume {run.name}` goes on")
        raise
    report.write(run)
    return Found.of(run.path)
