from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs.making import SETTINGS
from theta0.errors import Theta0Error
from theta0.pool import PoolScores
from theta0.runs import Run


def pool(architectures: list[str], names: list[str], values: object, said: str = "ok") -> PoolScores:
    array = np.array(values, dtype=np.float64)
    validity = np.full(array.shape, PoolScores.code(said), dtype=np.uint8)
    return PoolScores("nasbench201", architectures, names, array, validity, {"batch": 64, "names": names})


def test_scores_come_back_as_they_were(tmp_path: Path) -> None:
    first = pool(["b", "a", "c"], ["snip", "ntk:kappa"], [[1 / 3, np.inf], [-0.0, 5e-324], [2, 3]])
    first.values[1, 1], first.validity[1, 1] = np.nan, PoolScores.code("singular")
    with Run.create(tmp_path, SETTINGS) as run:
        assert run.scores().values.shape == (0, 0)
        run.add_scores(first)
        path = run.path
    with Run.open(path) as run:
        found = run.scores()
    assert (found.space, found.architectures, found.names, found.facts) == (
        first.space,
        first.architectures,
        first.names,
        first.facts,
    )
    np.testing.assert_array_equal(found.values, first.values)
    np.testing.assert_array_equal(found.validity, first.validity)


def test_later_scores_are_added_or_take_the_place(tmp_path: Path) -> None:
    with Run.create(tmp_path, SETTINGS) as run:
        run.add_scores(pool(["a", "b"], ["snip"], [[1], [2]]))
        run.add_scores(pool(["b", "c"], ["snip", "grasp"], [[7, 8], [9, 10]], "dead"))
        found = run.scores()
    assert (found.architectures, found.names) == (["a", "b", "c"], ["snip", "grasp"])
    np.testing.assert_array_equal(found.values, [[1, np.nan], [7, 8], [9, 10]])
    assert found.valid("snip") == ["ok", "dead", "dead"]
    assert found.valid("grasp") == ["undefined", "dead", "dead"]
    assert found.facts["names"] == ["snip", "grasp"]


def test_scores_of_another_space(tmp_path: Path) -> None:
    other = PoolScores("darts", ["a"], ["snip"], np.ones((1, 1)), np.zeros((1, 1), dtype=np.uint8))
    with Run.create(tmp_path, SETTINGS) as run, pytest.raises(Theta0Error, match=r"is in nasbench201, .* are of darts"):
        run.add_scores(other)
