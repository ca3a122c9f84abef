from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.searchers.small import objective, scores, space
from theta0.errors import Theta0Error
from theta0.graph import Cell
from theta0.objective import Objective, Outcome
from theta0.searchers import Budget
from theta0.searching import Trial, run


class Convolutions(Objective[Cell]):
    """The number of 3x3 convolutions of any cell; failures by the number of evaluations so far."""

    def __init__(self, fails: range = range(0)) -> None:
        self.space, self.epochs, self.fails, self.count = space, (1, 2), fails, 0

    def evaluate(self, architecture: Cell, epochs: int, seconds: float = math.inf) -> Outcome:
        self.count += 1
        if self.count - 1 in self.fails:
            return Outcome(math.nan, 1.0)
        return Outcome(float(sum(edge.op == "nor_conv_3x3" for edge in architecture.edges)), 1.0)


def searched(evaluations: int, seed: int = 0, fails: range = range(0), **options: Any) -> list[Trial]:
    return run("evolution", Convolutions(fails), Budget(evaluations), seed=seed, **options).trials


def near(one: Cell, other: Cell) -> bool:
    """Whether they differ in one edge."""
    return sum(a != b for a, b in zip(space.encode(one), space.encode(other), strict=True)) == 1


def best(trials: list[Trial]) -> list[Trial]:
    return [one for one in trials if one.value == max(other.value for other in trials)]


def test_the_best_of_a_whole_tournament_has_a_child() -> None:
    trials = searched(60, population=8, tournament=8)
    for number in range(8, 60):
        alive = trials[number - 8 : number]  # the oldest has died for each child
        assert any(near(one.architecture, trials[number].architecture) for one in best(alive))


def test_parents_are_alive() -> None:
    trials = searched(60, population=4, tournament=2)
    for number in range(4, 60):
        assert any(near(one.architecture, trials[number].architecture) for one in trials[number - 4 : number])


def test_the_worst_of_the_population_has_no_child() -> None:
    trials = searched(80, population=5, tournament=2)
    for number in range(5, 80):
        alive = sorted(trials[number - 5 : number], key=lambda one: one.value)
        if alive[0].value < alive[1].value:
            assert any(near(one.architecture, trials[number].architecture) for one in alive[1:])


def test_it_climbs() -> None:
    grown = [max(one.value for one in searched(100, seed)) for seed in range(10)]
    drawn = [max(one.value for one in run("random", Convolutions(), Budget(100), seed=s).trials) for s in range(10)]
    assert np.mean(grown) > np.mean(drawn) + 1


def test_failed_trials_have_no_children() -> None:
    trials = searched(50, population=6, tournament=6, fails=range(1, 50, 3))
    for number in range(6, 50):
        alive = [one for one in trials[number - 6 : number] if not math.isnan(one.value)]
        assert any(near(one.architecture, trials[number].architecture) for one in best(alive))


def test_a_population_from_the_pool() -> None:
    trials = run("evolution", objective(), Budget(30), scores=scores(), population=20).trials
    assert len(trials) == 30
    assert {one.epochs for one in trials} == {3}


def test_epochs() -> None:
    assert {one.epochs for one in searched(12)} == {1}
    assert {one.epochs for one in searched(12, epochs=2)} == {2}
    with pytest.raises(Theta0Error, match="asks for trainings of 7 epochs; there are those of 1, 2"):
        searched(12, epochs=7)


@pytest.mark.parametrize(("population", "tournament"), [(0, 1), (5, 6), (5, 0), (-1, -2)])
def test_sizes_that_do_not_fit(population: int, tournament: int) -> None:
    with pytest.raises(Theta0Error, match=f"a tournament needs 1 to {population} of the population, not {tournament}"):
        searched(5, population=population, tournament=tournament)
