from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tables.small import CELLS, small
from theta0.errors import Theta0Error
from theta0.space import get_space
from theta0.tables import Trained

space = get_space("nasbench201")


def test_rows() -> None:
    table = small()
    assert len(table) == 4
    assert table.row(CELLS[2]) == 2
    assert table.row(space.parse(CELLS[1])) == 1
    assert table.rows([space.parse(CELLS[3]), CELLS[0]]).tolist() == [3, 0]
    assert table.rows([]).shape == (0,)
    assert space.format(table.architecture(1)) == CELLS[1]
    assert CELLS[0] in table
    assert space.notation not in table
    with pytest.raises(Theta0Error, match=r"nor_conv_3x3~2\| is not in the table small, which has 4 of the 15,625"):
        table.row(space.notation)


def test_accuracies_of_rows_and_runs() -> None:
    table = small()
    assert table.validation("cifar10", 200).tolist() == [52, 61, 72, 81]
    assert table.validation("cifar10", 200, [3, 3, 0]).tolist() == [81, 81, 52]
    assert table.validation("cifar10", 200, np.array([[0, 1], [2, 3]])).tolist() == [[52, 61], [72, 81]]
    assert table.validation("cifar10", 200, 2) == 72
    assert table.validation("cifar10", 200, [0, 1], run=1).tolist() == [52, 62]
    assert table.validation("cifar10", 200, [0, 1, 3], run=[2, 0, 1]).tolist() == [54, 60, 80]
    assert table.validation("cifar10", 200, [0, 1], run=1).dtype == np.float64
    assert table.test("cifar10", 200, [0]).tolist() == [57]
    assert table.test("cifar10", 200, 3, run=2) == 88
    assert table.validation("cifar10", 12).tolist() == [10, 30, 20, 40]
    assert table.seconds("cifar10", 12, [1, 1]).tolist() == [12, 12]
    assert table.runs("cifar10", 200).tolist() == [3, 2, 2, 3]
    assert table.runs("cifar10", 12).tolist() == [0, 0, 0, 0]
    assert table.best("cifar10", 200) == 3


def test_drawn_runs_are_those_of_the_row() -> None:
    table, rows = small(), np.arange(1000) % 4
    drawn = table.validation("cifar10", 200, rows, run=np.random.default_rng(0))
    for row, values in enumerate([{50, 52, 54}, {60, 62}, {70, 74}, {80, 83}]):
        assert set(drawn[rows == row]) == values
    assert (drawn == table.validation("cifar10", 200, rows, run=np.random.default_rng(0))).all()


def test_noise() -> None:
    table = small()
    np.testing.assert_allclose(table.noise("cifar10", 200), [2, 2**0.5, 8**0.5, 3**0.5])
    with pytest.raises(Theta0Error, match="4 of 4 rows have one run"):
        table.noise("cifar100", 200)
    with pytest.raises(Theta0Error, match="the mean of the runs only"):
        table.noise("cifar10", 12)


def test_costs_and_limits() -> None:
    table = small()
    assert table.parameters().tolist() == [10, 20, 30, 40]
    assert table.parameters("cifar100", 1) == 21
    assert table.latency("phone", [0, 2]).tolist() == [4, 2]
    assert table.energy("phone")[0] == 1
    assert table.devices == ["phone"]
    assert table.within({}).tolist() == [0, 1, 2, 3]
    assert table.within({"parameters": 30}).tolist() == [0, 1, 2]
    assert table.within({"parameters": 40, "phone_latency": 3}).tolist() == [1, 2]  # row 3 has no latency
    with pytest.raises(Theta0Error, match="no row of small has parameters of at most 5; the smallest is 10"):
        table.within({"parameters": 5})
    with pytest.raises(Theta0Error, match="meets all of parameters <= 10, phone_latency <= 3; raise"):
        table.within({"parameters": 10, "phone_latency": 3})
    with pytest.raises(Theta0Error, match="no 'phon_latency' on cifar10; did you mean phone_latency"):
        table.latency("phon")
    with pytest.raises(Theta0Error, match="no 'flops' on cifar100; known: parameters"):
        table.flops("cifar100")


def test_a_searcher_sees_no_test_accuracy() -> None:
    table = small()
    view = table.search_view()
    assert view.validation("cifar10", 200).tolist() == table.validation("cifar10", 200).tolist()
    assert view.seconds("cifar10", 12).tolist() == table.seconds("cifar10", 12).tolist()
    assert view.row(CELLS[1]) == 1
    for dataset, epochs in view.trained:
        assert not view.has_test(dataset, epochs)
        with pytest.raises(Theta0Error, match="a searcher sees validation accuracy only"):
            view.test(dataset, epochs)
    with pytest.raises(Theta0Error, match="a searcher sees"):
        view.best("cifar10", 200)
    only = table.search_view(["cifar100"])
    assert only.datasets == ["cifar100"]
    assert set(only.costs) == {("cifar100", "parameters")}
    with pytest.raises(Theta0Error, match="no data set 'cifar11'; did you mean cifar10"):
        table.search_view(["cifar11"])
    with pytest.raises(Theta0Error, match="its source gives none"):
        table.test("cifar10", 12)


def test_some_rows() -> None:
    part = small().select([3, 1])
    assert part.cells == (CELLS[3], CELLS[1])
    assert part.validation("cifar10", 200).tolist() == [81, 61]
    assert part.test("cifar10", 200).tolist() == [86, 66]
    assert part.parameters().tolist() == [40, 20]
    assert part.suspect is not None
    assert part.suspect.tolist() == [False, True]
    assert part.row(CELLS[1]) == 1
    with pytest.raises(Theta0Error, match="has 0 rows"):
        small().select([])


def test_nothing_can_be_changed() -> None:
    table = small()
    for array in (table.seconds("cifar10", 12), table.parameters(), table.trained["cifar10", 200].validation):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        table.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cifar11", 12), "no data set 'cifar11'; did you mean"),
        (("cifar10", 13), "no budget of 13 epochs on cifar10; it has 12, 200"),
        (("cifar10", 12, [4]), "run from 0 to 3; found 4"),
        (("cifar10", 12, [0, -1]), "run from 0 to 3; found -1"),
        (("cifar10", 12, [0.5]), "rows are integers, not float64"),
        (("cifar10", 12, CELLS[0]), "rows are integers"),
        (("cifar10", 12, [0], 0), "the mean of the runs only"),
        (("cifar10", 200, [0, 1], 2), r"number of a row's runs less one.* \(2 to 3 here\); found 2"),
        (("cifar10", 200, [0], -1), "found -1"),
        (("cifar10", 200, [0], 0.5), "found 0.5"),
    ],
)
def test_bad_questions(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        small().validation(*arguments)


def trained(**changes: Any) -> dict[Any, Any]:
    given = {"validation": np.full((1, 4), 50.0), "seconds": np.ones(4), **changes}
    return {("cifar10", 12): Trained(**given)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cells": ()}, "has 0 rows"),
        ({"trained": {}}, "0 budgets"),
        (
            {"trained": trained(validation=np.full((1, 3), 50.0))},
            r"expected float64 of shape \(None, 4\), found .*\(1, 3\)",
        ),
        ({"trained": trained(validation=np.full((1, 4), 50))}, "found int64"),
        ({"trained": trained(validation=np.full((1, 4), 101.0))}, "from 0 to 100, found 101 to 101"),
        ({"trained": trained(validation=np.full((1, 4), -1.0))}, "found -1"),
        ({"trained": trained(validation=np.array([[1, 2, np.nan, 4], [1.0, 2, 3, 4]]))}, "a value is missing"),
        ({"trained": trained(test=np.full((2, 4), np.nan))}, "test accuracy: a value is missing"),
        ({"trained": trained(seconds=np.array([1, 2, 3, np.nan]))}, "seconds: a value is missing"),
        ({"costs": {("cifar10", "parameters"): np.ones(3)}}, "cifar10: parameters: expected"),
        ({"keys": ("a",)}, "expected keys for 4 rows, found 1"),
        ({"suspect": np.zeros(2, dtype=bool)}, "expected suspect for 4 rows, found 2"),
    ],
)
def test_impossible_tables(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        small(**changes)
