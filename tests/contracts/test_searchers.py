"""What every searcher must pass; searchers are found by discovery."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from tests.searchers.small import scores, space, table
from theta0 import tables
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.objective import Outcome, TableObjective
from theta0.pool import shipped
from theta0.searchers import Budget, Search, Task, searchers
from theta0.searching import Result, Trial, incumbent, options, run, settings_of
from theta0.tables import Table

NAMES = searchers.names()
SETTINGS: dict[str, dict[str, Any]] = {
    "naswot": {"sample": 50},
    "tenas": {"batch": 4, "patches": 20, "repeats": 1},
}
"""Smaller than the defaults, where those would take long, or all of the small pool."""
POOL = Candidates.of(scores(), space)
EIGHT = Budget(evaluations=8)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Watched(TableObjective):
    """Keeps what is asked for; every third evaluation may fail, from the first on."""

    def __init__(self, of: Table | None = None, *, fails: str = "never", **options: Any) -> None:
        super().__init__(table() if of is None else of, "cifar10", **options)
        self.fails, self.asked = fails, list[tuple[Any, int]]()

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        failing = self.fails != "never" and (self.fails == "always" or len(self.asked) % 3 == 0)
        self.asked.append((architecture, epochs))
        outcome = super().evaluate(architecture, epochs, seconds)
        if failing and self.fails == "by exception":
            raise RuntimeError("it did not train")
        return Outcome(math.nan, outcome.seconds, "it diverged") if failing else outcome


class Spy:
    """A searcher whose generator and own choice are known afterwards."""

    def __init__(self, name: str) -> None:
        made = searchers.get(name)
        self.returned: Any = None

        @functools.wraps(made)
        def watched(task: Task, generator: np.random.Generator, **settings: Any) -> Search:
            self.generator = generator
            self.returned = yield from made(task, generator, **settings)
            return self.returned

        self.searcher = watched


def search(name: str, objective: TableObjective | None = None, budget: Budget = EIGHT, **more: Any) -> Result:
    more.setdefault("scores", POOL)
    objective = Watched() if objective is None else objective
    return run(name, objective, budget, settings=SETTINGS.get(name), **more)


def told(result: Result) -> tuple[Any, list[Any]]:
    """What two equal searches have alike; NaN equals itself, and real time is left out."""
    trials = result.trials
    return result.chosen, [(one.architecture, one.epochs, repr(one.value), one.note, dict(one.why)) for one in trials]


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends a search that would go on for ever."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# The budget.


@pytest.mark.parametrize("evaluations", [1, 2, 8])
def test_evaluations_are_not_exceeded(name: str, evaluations: int) -> None:
    objective = Watched()
    result = search(name, objective, Budget(evaluations=evaluations))
    assert len(objective.asked) == len(result.trials) <= evaluations


@pytest.mark.parametrize("seconds", [10.0, 100.0])
def test_seconds_are_not_exceeded(name: str, seconds: float) -> None:
    objective = Watched()
    result = search(name, objective, Budget(seconds=seconds))
    spent = sum(objective.cost(*asked) for asked in objective.asked)
    assert result.seconds == pytest.approx(spent)
    assert spent <= seconds


def test_both_at_once(name: str) -> None:
    result = search(name, budget=Budget(evaluations=4, seconds=30.0))
    assert len(result.trials) <= 4
    assert result.seconds <= 30


def test_trainings_whose_cost_is_not_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableObjective, "cost", lambda *_: None)

    class Stopped(Watched):
        def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
            whole = super().evaluate(architecture, epochs)
            return whole if whole.seconds <= seconds else Outcome(math.nan, seconds, "stopped")

    assert search(name, Stopped(), Budget(seconds=60.0)).seconds <= 60 + 1e-9


def test_one_training_budget_is_enough(name: str) -> None:
    result = search(name, Watched(epochs=[12]))
    assert {one.epochs for one in result.trials} <= {12}


# Seeds and records.


def test_a_seed_gives_one_search(name: str) -> None:
    spy = Spy(name)
    first = search(name, seed=1)
    again = run(spy.searcher, Watched(), EIGHT, seed=1, scores=POOL, settings=SETTINGS.get(name))
    assert told(again) == told(first)
    drawn = spy.generator.bit_generator.state != np.random.default_rng(1).bit_generator.state
    others = [told(search(name, seed=seed)) == told(first) for seed in (2, 3, 4)]
    assert all(others) != drawn  # another seed is another search, exactly where anything is drawn


def test_global_state_is_left_as_found(name: str) -> None:
    torch.rand(3)
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    search(name)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), repr(np.random.get_state())) == before[1:]
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)


@pytest.mark.parametrize("fails", ["never", "by NaN"])
def test_a_search_goes_on_after_a_cut(name: str, fails: str) -> None:
    if fails != "never" and len(search(name).trials) == 1:
        return  # its only training fails, and there is nothing to go on with: see test_failed_trials_are_survived
    whole = search(name, Watched(fails=fails), seed=3)
    for cut in sorted({1, 6, len(whole.trials)}):
        record = whole.trials[:cut]
        objective, new = Watched(fails=fails), list[Trial]()
        objective.asked = [(one.architecture, one.epochs) for one in record]  # what was evaluated before the cut
        result = search(name, objective, seed=3, trials=record, on_trial=new.append)
        assert told(result) == told(whole)
        assert [one.number for one in new] == list(range(len(record), len(whole.trials)))
        assert len(objective.asked) == len(whole.trials)


# Test accuracy.


class TouchedError(BaseException):
    """Nothing catches it."""


class Sealed(Table):
    def test(self, *_: Any, **__: Any) -> Any:
        raise TouchedError


def test_no_test_accuracy_is_read(name: str) -> None:
    sealed = Sealed(**{field: getattr(table(), field) for field in table().__dataclass_fields__})
    with pytest.raises(TouchedError):
        sealed.test("cifar10", 12)
    assert told(search(name, Watched(sealed))) == told(search(name))


def test_other_test_accuracies_change_nothing(name: str) -> None:
    generator = np.random.default_rng(0)
    trained = {
        key: replace(one, test=None if one.test is None else generator.permuted(one.test, axis=1))
        for key, one in table().trained.items()
    }
    assert told(search(name, Watched(replace(table(), trained=trained)))) == told(search(name))


# What is proposed and chosen.


def test_proposals_are_allowed(name: str) -> None:
    limits = {"parameters": float(np.quantile(table().parameters(), 0.3))}
    objective = Watched(limits=limits)
    result = search(name, objective)
    assert all(objective.allowed(architecture) for architecture, _ in objective.asked)
    assert objective.allowed(result.chosen)


def test_trainings_are_those_that_there_are(name: str) -> None:
    result = search(name, budget=Budget(seconds=2000.0, evaluations=12))
    for trial in result.trials:
        assert trial.epochs in (3, 12, 200)
        assert isinstance(trial.epochs, int)
        assert all(math.isfinite(value) for value in trial.why.values())


def test_the_choice(name: str) -> None:
    """The best of the evaluated ones, unless the searcher has a choice of its own."""
    spy = Spy(name)
    result = run(spy.searcher, Watched(), EIGHT, scores=POOL, settings=SETTINGS.get(name))
    assert result.chosen == (incumbent(result.trials) if spy.returned is None else spy.returned)
    assert result.chosen in table()


@pytest.mark.parametrize("fails", ["by exception", "by NaN"])
def test_failed_trials_are_survived(name: str, fails: str) -> None:
    objective = Watched(fails=fails)
    if len(search(name).trials) == 1:
        with pytest.raises(
            Theta0Error, match=r"ended without a single evaluation that succeeded: .*it (diverged|did not train)"
        ):
            search(name, objective)
        return
    result = search(name, objective)
    assert [math.isnan(one.value) for one in result.trials] == [place % 3 == 0 for place in range(len(result.trials))]
    assert len(result.trials) == len(search(name).trials)
    values = [one.value for one in result.trials if one.architecture == result.chosen]
    assert not values or not all(math.isnan(value) for value in values)


def test_failures_without_end_are_an_error(name: str) -> None:
    def attempt() -> Result:
        return search(name, Watched(fails="always"), Budget(evaluations=30))

    if not search(name).trials:
        return  # it evaluates nothing
    with (
        at_most(60),
        pytest.raises(Theta0Error, match=r"(10 evaluations in a row failed; the last one|succeeded): .*it diverged"),
    ):
        attempt()


# Pools.


def test_without_a_pool(name: str) -> None:
    said = ""
    try:
        result = search(name, budget=Budget(evaluations=4), scores=None)
    except Theta0Error as error:
        said = str(error)
    else:
        assert result.chosen in table()
        assert len(result.trials) <= 4
    assert not said or "pool" in said


def test_a_pool_of_one(name: str) -> None:
    with at_most(60):
        result = search(name, budget=Budget(evaluations=30), scores=POOL.select(np.array([700])), seed=5)
    assert result.chosen in table()


def test_a_pool_that_failed_altogether(name: str, request: pytest.FixtureRequest) -> None:
    """An end or an error, and never a loop."""
    few = POOL.select(np.array([700, 701]))
    with at_most(60), contextlib.suppress(Theta0Error):
        search(name, Watched(fails="always"), scores=few)


def test_a_pool_without_the_scores(name: str) -> None:
    bare = Candidates(POOL.architectures, {"latency:batch": np.ones(729)}, {"latency:batch": np.ones(729, dtype=bool)})
    said = ""
    try:
        result = search(name, budget=Budget(evaluations=4), scores=bare)
    except Theta0Error as error:
        said = str(error)
    else:
        assert result.chosen in table()
    assert not said or "the pool has no score" in said


def test_a_pool_without_a_valid_score(name: str) -> None:
    dead = POOL.select(np.flatnonzero(~POOL.ok("snip")))
    with contextlib.suppress(Theta0Error):
        assert search(name, scores=dead).chosen in table()


# Options.


def test_options_are_written_as_they_are_listed(name: str) -> None:
    """`theta0 searchers` prints them, and `theta0 bench --options` reads them."""
    defaults = options(searchers.get(name))
    for option, default in defaults.items():
        text = "+".join(default) if isinstance(default, tuple) else str(default)
        text = text.lower() if isinstance(default, bool) else text
        assert settings_of(f"{option}={text}", name) == {option: default}
    for option in SETTINGS.get(name, {}):
        assert option in defaults


# The real table.


@functools.cache
def real(path: Path) -> tuple[Table, Candidates]:
    return tables.load(path), Candidates.of(shipped("nasbench201", "cifar10"), space)


def test_on_nasbench201(name: str, shared: Path) -> None:
    whole, pool = real(shared / "nb201.parquet")
    objective = TableObjective(whole, "cifar10", epochs=[12])
    budget = Budget(seconds=1000.0)
    first = search(name, objective, budget, scores=pool)
    assert first.seconds <= 1000
    assert told(search(name, objective, budget, scores=pool, trials=first.trials[:3])) == told(first)
    assert float(whole.test("cifar10", 200, whole.row(first.chosen))) > 80
