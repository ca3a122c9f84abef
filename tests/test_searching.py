"""The loop that runs searchers, with searchers of a few lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.objective import Objective, Outcome, TableObjective
from theta0.searchers import Budget, BudgetSpentError, Proposal, Search, Task
from theta0.searching import Result, Trial, incumbent, options, run, settings_of

CELLS = [table().architecture(row) for row in range(729)]


def in_order(task: Task, generator: np.random.Generator, *, step: int = 1) -> Search:
    """The cells of the table one by one."""
    for cell in CELLS[::step]:
        yield [task.proposal(cell)]


def trial(number: int, value: float, epochs: int = 12, cell: int | None = None) -> Trial:
    return Trial(number, CELLS[number if cell is None else cell], epochs, value, 1.0, number + 1.0)


class Listed(Objective[Any]):
    """Gives the outcomes of a list, one after the other; what is an exception is raised."""

    def __init__(self, *outcomes: Outcome | BaseException) -> None:
        self.space, self.epochs = space, (12,)
        self.outcomes, self.left = list(outcomes), list[float]()

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        self.left.append(seconds)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def searched(searcher: Callable[..., Search], budget: int = 5, **more: Any) -> Result:
    return run(searcher, objective(), Budget(budget), **more)


def test_a_search() -> None:
    result = searched(in_order)
    assert [one.architecture for one in result.trials] == CELLS[:5]
    assert [one.number for one in result.trials] == list(range(5))
    assert {one.epochs for one in result.trials} == {3}
    values = table().validation("cifar10", 3, range(5))
    np.testing.assert_allclose([one.value for one in result.trials], values)
    assert result.chosen == CELLS[int(np.argmax(values))]
    costs = table().seconds("cifar10", 3, range(5))
    np.testing.assert_allclose([one.seconds for one in result.trials], costs)
    np.testing.assert_allclose([one.spent for one in result.trials], np.cumsum(costs))
    assert result.seconds == pytest.approx(costs.sum())
    assert 0 < result.own_seconds < 5


def test_a_searcher_that_ends_before_its_budget() -> None:
    result = searched(in_order, 10_000)
    assert len(result.trials) == 729


def test_a_searcher_s_own_choice() -> None:
    def own(task: Task, generator: np.random.Generator) -> Search:
        yield [task.proposal(CELLS[700])]
        return CELLS[3]

    assert searched(own).chosen == CELLS[3]

    def nothing(task: Task, generator: np.random.Generator) -> Search:
        return CELLS[4]
        yield []

    result = searched(nothing)
    assert (result.chosen, result.trials, result.seconds) == (CELLS[4], [], 0.0)


def test_outcomes_come_back_in_the_order_of_the_proposals() -> None:
    told: list[Outcome] = []

    def batches(task: Task, generator: np.random.Generator) -> Search:
        for start in (0, 3):
            told.extend((yield [task.proposal(cell, 12) for cell in CELLS[start : start + 3]]))

    result = searched(batches, 10)
    assert told == [one.outcome for one in result.trials] == [objective().evaluate(cell, 12) for cell in CELLS[:6]]


def test_why_is_kept() -> None:
    def reasons(task: Task, generator: np.random.Generator) -> Search:
        yield [task.proposal(CELLS[0], mu=0.5, t=1.0)]
        yield [Proposal(CELLS[1], 3)]

    assert [one.why for one in searched(reasons).trials] == [{"mu": 0.5, "t": 1.0}, {}]


# Budgets.


def test_a_batch_is_cut_where_the_budget_ends() -> None:
    def batch(task: Task, generator: np.random.Generator) -> Search:
        yield [task.proposal(cell) for cell in CELLS[:8]]

    assert len(searched(batch, 5).trials) == 5


def test_no_evaluation_is_begun_that_would_overrun_the_seconds() -> None:
    costs = np.cumsum(table().seconds("cifar10", 3, range(10)))
    for seconds, count in ((costs[4], 5), (costs[4] - 1e-6, 4), (costs[4] + 1e-6, 5)):
        result = run(in_order, objective(), Budget(seconds=float(seconds)))
        assert len(result.trials) == count
        assert result.seconds <= seconds
    result = run(in_order, objective(), Budget(evaluations=2, seconds=float(costs[4])))
    assert len(result.trials) == 2


def test_an_objective_of_unknown_cost_is_told_what_is_left() -> None:
    listed = Listed(*(Outcome(50.0 + place, 4.0) for place in range(9)))
    result = run(in_order, listed, Budget(seconds=10.0))
    assert listed.left == [10, 6, 2]
    assert len(result.trials) == 3
    unlimited = Listed(Outcome(50.0, 4.0))
    run(in_order, unlimited, Budget(evaluations=1))
    assert unlimited.left == [math.inf]


def test_a_budget_that_allows_nothing() -> None:
    words = r"without a single evaluation that succeeded: 0 of 0\.1 seconds are spent, and a training of 3 epochs takes"
    with pytest.raises(Theta0Error, match=words):
        run(in_order, objective(), Budget(seconds=0.1))
    with pytest.raises(Theta0Error, match="a search needs a budget: evaluations, seconds, or both"):
        run(in_order, objective(), Budget())


def test_a_searcher_that_chooses_by_itself_when_the_budget_is_spent() -> None:
    def own(task: Task, generator: np.random.Generator) -> Search:
        try:
            for cell in CELLS:
                yield [task.proposal(cell)]
        except BudgetSpentError:
            return CELLS[0]

    result = searched(own)
    assert (result.chosen, len(result.trials)) == (CELLS[0], 5)


def test_a_searcher_must_not_go_on() -> None:
    def stubborn(task: Task, generator: np.random.Generator) -> Search:
        while True:
            try:
                yield [task.proposal(CELLS[0])]
            except BudgetSpentError:
                continue

    with pytest.raises(Theta0Error, match="goes on after its budget is spent; it must return"):
        searched(stubborn)


def test_errors_of_a_searcher_come_out() -> None:
    def broken(task: Task, generator: np.random.Generator, *, error: type[Exception] = KeyError) -> Search:
        yield [task.proposal(CELLS[0])]
        raise error("a bug")

    with pytest.raises(KeyError, match="a bug"):
        searched(broken)
    with pytest.raises(BudgetSpentError, match="a bug"):  # its own, not the loop's
        searched(broken, error=BudgetSpentError)


def test_epochs_that_the_objective_does_not_know() -> None:
    def other(task: Task, generator: np.random.Generator) -> Search:
        yield [task.proposal(CELLS[0], 7)]

    with pytest.raises(Theta0Error, match="asks for trainings of 7 epochs; there are those of 3, 12, 200"):
        searched(other)


# Failures.


def test_a_failed_trial_does_not_end_a_search() -> None:
    listed = Listed(
        Outcome(math.nan, 3.0, "diverged"), RuntimeError("out of memory"), Outcome(60.0, 5.0), Outcome(50.0, 5.0)
    )
    result = run(in_order, listed, Budget(4))
    assert [one.note for one in result.trials] == ["diverged", "RuntimeError: out of memory", "", ""]
    assert [math.isnan(one.value) for one in result.trials] == [True, True, False, False]
    assert result.trials[0].spent == 3
    assert 0 < result.trials[1].seconds < 1
    assert result.chosen == CELLS[2]


def test_ten_failures_in_a_row_do() -> None:
    good, bad = Outcome(60.0, 1.0), Outcome(math.nan, 1.0, "diverged")
    seen: list[Trial] = []
    with pytest.raises(Theta0Error, match="10 evaluations in a row failed; the last one: OSError: disk full"):
        run(in_order, Listed(*[bad] * 9, good, *[bad] * 9, OSError("disk full")), Budget(30), on_trial=seen.append)
    assert len(seen) == 20
    with pytest.raises(Theta0Error, match="without a single evaluation that succeeded: diverged"):
        run(in_order, Listed(bad, bad), Budget(2))


def test_a_stop_by_the_user_is_no_failure() -> None:
    kept: list[Trial] = []
    listed = Listed(Outcome(60.0, 1.0), KeyboardInterrupt(), Outcome(70.0, 1.0), Outcome(50.0, 1.0))
    with pytest.raises(KeyboardInterrupt):
        run(in_order, listed, Budget(3), on_trial=kept.append)
    result = run(in_order, listed, Budget(3), trials=kept)
    assert [one.value for one in result.trials] == [60, 70, 50]


# Records.


def test_a_search_goes_on_where_its_record_ends() -> None:
    whole, new = searched(in_order, 8), list[Trial]()
    result = searched(in_order, 8, trials=whole.trials[:3], on_trial=new.append)
    assert result.trials == whole.trials
    assert new == whole.trials[3:]
    assert searched(in_order, 8, trials=whole.trials, on_trial=new.append).trials == whole.trials
    assert len(new) == 5


def test_nothing_of_a_record_is_evaluated_again() -> None:
    record = [Trial(place, CELLS[place], 12, 50.0 + place, 2.0, 2.0 * place + 2, why={"t": 1.0}) for place in range(3)]
    listed = Listed(Outcome(10.0, 1.0))
    result = run(in_order, listed, Budget(4), trials=record)
    assert not listed.outcomes
    assert result.trials[:3] == record
    assert result.trials[3].spent == 7
    assert result.chosen == CELLS[2]


def test_a_record_that_is_longer_than_the_budget() -> None:
    whole = searched(in_order, 8)
    assert searched(in_order, 5, trials=whole.trials).trials == whole.trials[:5]
    seconds = whole.trials[4].spent
    assert run(in_order, objective(), Budget(seconds=seconds), trials=whole.trials).trials == whole.trials[:5]


def test_a_record_of_another_search() -> None:
    whole = searched(in_order, 8)
    with pytest.raises(Theta0Error, match=r"trial 1 of the record is .*the record is of another search, seed or"):
        searched(in_order, 8, trials=whole.trials, step=2)
    longer = [Trial(0, CELLS[0], 12, 50.0, 1.0, 1.0)]
    with pytest.raises(Theta0Error, match=r"trial 0 of the record is .* 12 epochs, but the search asks for .* 3;"):
        searched(in_order, 8, trials=longer)


# What a searcher is given.


def test_the_seed_is_the_generator_s() -> None:
    drawn = []

    def random(task: Task, generator: np.random.Generator) -> Search:
        drawn.append(generator.random())
        yield [task.proposal(CELLS[0])]

    for seed in (0, 0, 1):
        searched(random, seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_pool_is_what_the_limits_leave() -> None:
    pools = []

    def looks(task: Task, generator: np.random.Generator) -> Search:
        pools.append(task.pool())
        yield [task.proposal(task.pool().architectures[0])]

    limited = objective(limits={"parameters": 200_000})
    run(looks, limited, Budget(1), scores=scores())
    run(looks, limited, Budget(1), scores=Candidates.of(scores(), space))
    run(looks, objective(), Budget(1), scores=scores())
    few = int((table().parameters() <= 200_000).sum())
    assert [len(pool) for pool in pools] == [few, few, 729]
    kept = np.flatnonzero(table().parameters() <= 200_000)
    np.testing.assert_array_equal(pools[0].column("zen"), scores()["zen"][kept])
    over = Candidates.of(scores(), space).select(table().parameters() > 200_000)
    with pytest.raises(Theta0Error, match=f"none of the {729 - few} architectures of the pool is within the limits"):
        run(looks, limited, Budget(1), scores=over)


def test_scores_of_another_space() -> None:
    other = TableObjective(table(), "cifar10")
    other.space = type("Other", (type(space),), {"name": "other"})()
    with pytest.raises(Theta0Error, match="these scores are of nasbench201, and the search is in other"):
        run(in_order, other, Budget(1), scores=scores())


# Options.


def test_options() -> None:
    assert options(in_order) == {"step": 1}
    assert [one.architecture for one in searched(in_order, 3, step=10).trials] == CELLS[:30:10]
    with pytest.raises(Theta0Error, match="has no option 'stepp'; did you mean step"):
        searched(in_order, stepp=3)
    with pytest.raises(Theta0Error, match="no searcher is called 'evolutoin'; did you mean evolution"):
        run("evolutoin", objective(), Budget(1))
    with pytest.raises(Theta0Error, match="the searcher evolution has no option 'size'"):
        run("evolution", objective(), Budget(1), size=3)


def test_options_whose_name_is_also_run_s_own() -> None:
    def named(task: Task, generator: np.random.Generator, *, scores: str = "none", step: int = 1) -> Search:
        assert (scores, step) == ("snip", 3)
        yield [task.proposal(CELLS[0])]

    searched(named, settings={"scores": "snip"}, step=3)
    searched(named, settings={"scores": "snip", "step": 3})
    with pytest.raises(Theta0Error, match="no option 'score'; did you mean scores"):
        searched(named, settings={"score": "snip"})


def test_settings_of_a_text() -> None:
    assert settings_of(None, "evolution") == settings_of("", "evolution") == {}
    assert settings_of("population=20, tournament=3", "evolution") == {"population": 20, "tournament": 3}
    assert settings_of("scale=1e3,signed=true,score=grad:paper", "hnas-paper") == {
        "scale": 1000.0, "signed": True, "score": "grad:paper",
    }  # fmt: skip
    assert settings_of("scores=snip+synflow:log,explore=1", "robot") == {
        "scores": ("snip", "synflow:log"), "explore": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "searcher", "words"),
    [
        ("population", "evolution", "name=value of evolution, not 'population'"),
        ("popluation=3", "evolution", "not 'popluation=3'; did you mean population"),
        ("population=many", "evolution", "population is a number such as 10, not 'many'"),
        ("population=2.5", "evolution", "population is a number such as 10, not '2.5'"),
        ("signed=yes", "hnas-paper", "signed is true or false, not 'yes'"),
        ("x=1", "random", "not 'x=1'; known: none"),
        ("x=1", "randmo", "no searcher is called 'randmo'; did you mean random"),
    ],
)
def test_settings_that_do_not_fit(text: str, searcher: str, words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        settings_of(text, searcher)


# The choice.


def test_incumbent() -> None:
    assert incumbent([]) is None
    assert incumbent([trial(0, math.nan)]) is None
    assert incumbent([trial(0, 1.0), trial(1, 3.0), trial(2, 3.0), trial(3, math.nan), trial(4, 2.0)]) == CELLS[1]
    # A long training that is worse than a short one tells more.
    assert incumbent([trial(0, 90.0, 3), trial(1, 40.0), trial(2, 50.0)]) == CELLS[2]
    assert incumbent([trial(0, 90.0, 3), trial(1, math.nan)]) == CELLS[0]
