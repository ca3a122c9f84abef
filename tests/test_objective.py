from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tests.searchers.small import objective, space, table
from tests.tables.small import small
from theta0.errors import Theta0Error
from theta0.objective import Outcome, TableObjective


def test_outcomes() -> None:
    assert not Outcome(0.0, 1).failed
    assert Outcome(math.nan, 1, "a reason").failed
    assert (Outcome(3.5, 1).ranked, Outcome(math.nan, 1).ranked) == (3.5, -math.inf)


def test_answers_are_those_of_the_table() -> None:
    made = objective()
    assert (made.space.name, made.epochs) == ("nasbench201", (3, 12, 200))
    for row in (0, 300, 728):
        cell = table().architecture(row)
        for epochs in made.epochs:
            outcome = made.evaluate(cell, epochs)
            assert outcome.value == pytest.approx(table().validation("cifar10", epochs, row).item())
            assert outcome.seconds == made.cost(cell, epochs) == table().seconds("cifar10", epochs, row)
            assert not outcome.note


def test_one_run_or_their_mean() -> None:
    cell = table().architecture(7)
    values = [objective(run=run).evaluate(cell, 12).value for run in (0, 1, None)]
    assert values[0] != values[1]
    assert values[2] == pytest.approx(np.mean(values[:2]))
    with pytest.raises(Theta0Error, match="run must be an integer"):
        objective(run=2)


def test_another_data_set() -> None:
    cell = table().architecture(7)
    made = TableObjective(table(), "cifar100")
    assert made.evaluate(cell, 200).value == pytest.approx(table().validation("cifar100", 200, 7).item())
    with pytest.raises(Theta0Error, match="no data set 'cifar11'; did you mean cifar10"):
        TableObjective(table(), "cifar11")


def test_epochs() -> None:
    assert objective(epochs=[200, 3, 200]).epochs == (3, 200)
    with pytest.raises(Theta0Error, match="no budget of 7 epochs on cifar10; it has 3, 12, 200"):
        objective(epochs=[3, 7])
    with pytest.raises(Theta0Error, match="needs a budget of epochs; small has 3, 12, 200"):
        objective(epochs=[])


def test_limits() -> None:
    cells = [table().architecture(row) for row in range(729)]
    limit = float(np.median(table().parameters()))
    made = objective(limits={"parameters": limit})
    expected = table().parameters() <= limit
    assert made.allowed_all(cells).tolist() == expected.tolist()
    assert [made.allowed(cell) for cell in cells[:50]] == expected[:50].tolist()
    assert objective().allowed_all(cells).all()
    with pytest.raises(Theta0Error, match="no row of small has parameters of at most 1; the smallest is"):
        objective(limits={"parameters": 1})
    with pytest.raises(Theta0Error, match="no 'parameter' on cifar10; did you mean parameters"):
        objective(limits={"parameter": 1e9})


def test_what_is_not_in_the_table_is_not_allowed() -> None:
    outside = space.decode([0] * 6)
    assert not objective().allowed(outside)
    assert objective().allowed_all([outside, table().architecture(0)]).tolist() == [False, True]
    with pytest.raises(Theta0Error, match="is not in the table small"):
        objective().evaluate(outside, 12)


def test_latency_that_was_not_measured_is_beyond_any_limit() -> None:
    made = TableObjective(small(), "cifar10", epochs=[200], limits={"phone_latency": 1e9})
    assert made.allowed_all([small().architecture(row) for row in range(4)]).tolist() == [True, True, True, False]


def test_there_is_no_test_accuracy_in_it() -> None:
    made = objective()
    assert all(one.test is None for one in made.table.trained.values())
    assert made.table.datasets == ["cifar10"]
    with pytest.raises(Theta0Error, match="a searcher sees validation accuracy only"):
        made.table.test("cifar10", 200)


def test_it_travels_between_processes() -> None:
    made = pickle.loads(pickle.dumps(objective(limits={"parameters": 200_000})))
    cells = [table().architecture(row) for row in range(729)]
    assert made.allowed_all(cells).tolist() == (table().parameters() <= 200_000).tolist()
    assert made.evaluate(cells[3], 12) == objective().evaluate(cells[3], 12)
