"""The commands search and resume: the main job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from theta0.commands.options import RunName, RunsRoot, SkeletonName


def search(
    *,
    data: Annotated[str, "your images: a folder with one folder per class, a file, or a known name"] = "digits",
    budget: Annotated[str | None, "time for everything, such as 90s, 3m or 1h (default: 3m)"] = None,
    evaluations: Annotated[int | None, "trainings of the search, in place of a time or beside it"] = None,
    max_params: Annotated[float | None, "parameters at most, such as 1e6"] = None,
    max_flops: Annotated[float | None, "multiply-adds at most, for one image"] = None,
    max_latency: Annotated[float | None, "milliseconds at most, for one image on this device"] = None,
    space: Annotated[str, "a space: see `theta0 spaces`, or your own as module:Class"] = "nasbench201",
    searcher: Annotated[str, "how to search: see `theta0 searchers`"] = "hnas",
    settings: Annotated[str | None, "of the searcher: name=value with commas between"] = None,
    seed: Annotated[int, "the same seed, budget in evaluations and machine give the same result"] = 0,
    device: Annotated[str, "cpu, cuda, or auto"] = "auto",
    precision: Annotated[str, "fp32, bf16, or auto: bf16 on a GPU"] = "auto",
    size: Annotated[int | None, "scale images to this many pixels a side"] = None,
    skeleton: SkeletonName = None,
    options: Annotated[str | None, "of the skeleton, such as channels=8,cells=3"] = None,
    recipe: Annotated[str, "of the final training: brief, cifar, cifar100, imagenet or nasbench201"] = "brief",
    pool: Annotated[int | None, "architectures to score (default: as the budget allows, as for the next three)"] = None,
    epochs: Annotated[int | None, "epochs of a trial"] = None,
    final_epochs: Annotated[int | None, "epochs of the final training"] = None,
    random: Annotated[int | None, "random architectures to train alike and compare with"] = None,
    root: RunsRoot = None,
) -> None:
    """Find a network for your images: score a pool, train a few, train the best, compare it with random ones."""
    from theta0 import job
    from theta0.commands.scoring import skeleton_options
    from theta0.memory import keep_blocks
    from theta0.searching import settings_of
    from theta0.space import get_space

    keep_blocks()
    found = job.search(
        data,
        space=space,
        searcher=searcher,
        budget=budget,
        evaluations=evaluations,
        max_params=max_params,
        max_flops=max_flops,
        max_latency=max_latency,
        seed=seed,
        device=device,
        precision=precision,
        size=size,
        skeleton=skeleton,
        options=skeleton_options(get_space(space).options(skeleton), options),
        settings=settings_of(settings, searcher),
        recipe=recipe,
        pool=pool,
        epochs=epochs,
        final_epochs=final_epochs,
        random=random,
        root=root,
        progress=sys.stderr,
    )
    print(found)


def resume(
    run: RunName = "latest",
    *,
    data: Annotated[Path | None, "where the images are now, if they have moved"] = None,
    root: RunsRoot = None,
) -> None:
    """Go on with a search that was stopped or killed; it ends as if it had never been."""
    from theta0 import job
    from theta0.memory import keep_blocks

    keep_blocks()
    print(job.resume(run, data=data, root=root, progress=sys.stderr))
