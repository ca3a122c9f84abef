"""A search is killed at random instants and goes on: it ends with what one that was never killed ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.job.searching import SMALL, small, told
from tests.runs.making import python
from theta0.runs import Run

DRIVER = """
import json, os, random, signal, sys, time
import torch
torch.set_num_threads(1)
import theta0.job, theta0.report, theta0.scoring
from theta0.data import load
from theta0.runs import Run
load("digits")  # what takes long to import is there before the first child begins

root, kills, longest = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
chance = random.Random(5)

def work():
    if any(os.scandir(root)):
        theta0.job.resume(root=root)
    else:
        theta0.job.search("digits", root=root, **json.loads(sys.argv[4]))

done = hit = 0
while done < kills:
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    time.sleep(chance.uniform(0.01, longest))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    done += 1
    hit += os.WIFSIGNALED(status)
    if not os.WIFSIGNALED(status):
        assert os.WEXITSTATUS(status) == 0, "the search failed"
work()
print(json.dumps({"killed": hit}), flush=True)
"""


def killed_again_and_again(root: Path, kills: int, longest: float) -> None:
    whole = small(root / "whole")
    (root / "killed").mkdir()
    with python(DRIVER, root / "killed", kills, longest, json.dumps(SMALL)) as driver:
        out, err = driver.communicate()
    assert driver.returncode == 0, out + err
    hit = json.loads(out.splitlines()[-1])["killed"]
    assert hit >= 0.5 * kills  # most of them met a search at work
    paths = [path for path in (root / "killed").iterdir() if not path.name.startswith(".")]
    with Run.open(max(paths, key=lambda path: path.stat().st_mtime)) as run:
        path, repeats = run.path, [event for event in run.events() if event.kind == "repeats"]
    # A process that was killed had at most one trial in flight, and that alone is done again.
    assert len(repeats) <= hit
    assert told(path) == told(whole.path)
    assert (path / "report.html").exists()
    assert sorted(file.name for file in path.iterdir()) == ["model.ckpt", "report.html", "run.db"]


def test_8_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 8, 1.5)


@pytest.mark.slow
def test_50_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 50, 1.0)
