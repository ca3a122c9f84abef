"""Runs a searcher on an objective within a budget.

result = run("hnas", TableObjective(table, "cifar10"), Budget(evaluations=20), seed=0, scores=shipped(...))
result.chosen                           # the architecture
result.trials                           # every evaluation in its order

A search goes on where a record of its trials ends: the searcher is started anew with the same seed and told what it
was told before.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from theta0.candidates import Candidates
from theta0.errors import Theta0Error, nearest
from theta0.objective import Objective, Outcome
from theta0.pool import PoolScores
from theta0.searchers import Budget, BudgetSpentError, Proposal, Search, Searcher, Task, searchers

if TYPE_CHECKING:
    from theta0.data.dataset import ImageDataset

_FAILURES = 10
"""How many evaluations in a row may fail before the search gives up."""


@dataclass(frozen=True)
class Trial:
    """One evaluation."""

    number: int
    architecture: Any
    epochs: int
    value: float
    """Validation accuracy in percent, NaN if it failed."""
    seconds: float
    spent: float
    """Seconds since the search began, this trial included."""
    note: str = ""
    why: Mapping[str, float] = field(default_factory=dict)
    """What led the searcher to it."""

    @property
    def outcome(self) -> Outcome:
        """What the searcher is told."""
        return Outcome(self.value, self.seconds, self.note)


@dataclass(frozen=True)
class Result:
    """What a search found."""

    chosen: Any
    trials: list[Trial]
    own_seconds: float
    """What the searcher itself took."""
    choices: list[Any] = field(default_factory=list)
    """Before each trial, what the searcher would have chosen by a rule of its own; None where it said nothing."""
    drawn: bool = True
    """Whether the searcher drew random numbers; if it did not, every seed gives this search."""

    @property
    def seconds(self) -> float:
        """What the evaluations cost."""
        return self.trials[-1].spent if self.trials else 0.0


def incumbent(trials: Sequence[Trial]) -> Any:
    """The architecture of best validation accuracy at the longest training; the first of equal ones; None of none."""
    kept = [trial for trial in trials if not math.isnan(trial.value)]
    longest = max((trial.epochs for trial in kept), default=0)
    kept = [trial for trial in kept if trial.epochs == longest]
    return max(kept, key=lambda trial: trial.value).architecture if kept else None


def options(searcher: Searcher) -> dict[str, Any]:
    """The options of a searcher and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(searcher).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def run(
    searcher: str | Searcher,
    objective: Objective[Any],
    budget: Budget,
    *,
    seed: int = 0,
    scores: PoolScores | Candidates | None = None,
    images: ImageDataset | None = None,
    trials: Sequence[Trial] = (),
    on_start: Callable[[int, Any, int], None] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> Result:
    """Searches until the budget is spent or the searcher has finished.

    ``scores`` is a scored pool for searchers that choose from one; ``images`` are for those that look at some or train
    a supernet, by default what the objective trains on; ``trials`` are those of an earlier run that was cut off;
    ``settings`` are options of the searcher, and so are all other names. ``on_start`` gets the number, the
    architecture and the epochs of an evaluation that begins, ``on_trial`` what came of it.
    """
    settings = {**(settings or {}), **more}
    made = searchers.get(searcher) if isinstance(searcher, str) else searcher
    known = options(made)
    for name in settings:
        if name not in known:
            raise Theta0Error(f"the searcher {searcher} has no option {name!r}; {nearest(name, known)}")
    if budget.evaluations is None and budget.seconds is None:
        raise Theta0Error("a search needs a budget: evaluations, seconds, or both")
    pool = Candidates.of(scores, objective.space) if isinstance(scores, PoolScores) else scores
    if pool is not None:
        kept = objective.allowed_all(pool.architectures)
        if not kept.any():
            raise Theta0Error(f"none of the {len(kept):,} architectures of the pool is within the limits; raise them")
        pool = pool if kept.all() else pool.select(kept)
    generator = np.random.default_rng(seed)
    before = generator.bit_generator.state
    task = Task(objective, budget, pool, objective.images if images is None else images)
    search = made(task, generator, **settings)
    result = _Loop(search, objective, budget, list(trials), on_start, on_trial).run()
    return replace(result, drawn=generator.bit_generator.state != before)


class _Loop:
    """One search under way."""

    def __init__(
        self,
        search: Search,
        objective: Objective[Any],
        budget: Budget,
        record: list[Trial],
        on_start: Callable[[int, Any, int], None] | None,
        on_trial: Callable[[Trial], None] | None,
    ) -> None:
        self.search, self.objective, self.budget = search, objective, budget
        self.record, self.on_start, self.on_trial = record, on_start, on_trial
        self.trials: list[Trial] = []
        self.choices: list[Any] = []
        self.own = 0.0
        self.failures = 0
        self.refused = "the searcher asked for none"
        """Why an evaluation was not begun."""

    def run(self) -> Result:
        answer: list[Outcome] | BudgetSpentError | None = None
        while True:
            start = time.perf_counter()
            try:
                if isinstance(answer, BudgetSpentError):
                    self.search.throw(answer)
                    raise Theta0Error("the searcher goes on after its budget is spent; it must return")
                proposals = next(self.search) if answer is None else self.search.send(answer)
            except StopIteration as end:
                return self._result(end.value, start)
            except BudgetSpentError as spent:
                if spent is not answer:
                    raise
                return self._result(None, start)
            self.own += time.perf_counter() - start
            try:
                answer = [self._evaluate(proposal) for proposal in proposals]
            except BudgetSpentError as spent:
                answer, self.refused = spent, str(spent)

    def _result(self, chosen: Any, start: float) -> Result:
        self.own += time.perf_counter() - start
        chosen = incumbent(self.trials) if chosen is None else chosen
        if chosen is None:
            reason = self.trials[-1].note if self.trials else self.refused
            raise Theta0Error(f"the search ended without a single evaluation that succeeded: {reason}")
        return Result(chosen, self.trials, self.own, self.choices)

    def _evaluate(self, proposal: Proposal) -> Outcome:
        number, spent = len(self.trials), self.trials[-1].spent if self.trials else 0.0
        architecture, epochs, why, choice = proposal
        if epochs not in self.objective.epochs:
            known_epochs = ", ".join(map(str, self.objective.epochs))
            raise Theta0Error(f"the searcher asks for trainings of {epochs} epochs; there are those of {known_epochs}")
        if self.budget.evaluations is not None and number >= self.budget.evaluations:
            raise BudgetSpentError(f"{number} evaluations are spent")
        most = math.inf if self.budget.seconds is None else self.budget.seconds
        cost = self.objective.cost(architecture, epochs) or 0
        if spent >= most or spent + cost > most:
            raise BudgetSpentError(
                f"{spent:.0f} of {most:g} seconds are spent, and a training of {epochs} epochs takes {cost:.0f}"
            )
        if number < len(self.record):
            known = self.record[number]
            if (known.architecture, known.epochs) != (architecture, epochs):
                raise Theta0Error(
                    f"trial {number} of the record is {known.architecture}, {known.epochs} epochs, but the search asks "
                    f"for {architecture}, {epochs}; the record is of another search, seed or version"
                )
            self.trials.append(known)
            self.choices.append(choice)
            return known.outcome
        if self.on_start is not None:
            self.on_start(number, architecture, epochs)
        start = time.perf_counter()
        try:
            outcome = self.objective.evaluate(architecture, epochs, most - spent)
            self.failures = self.failures + 1 if outcome.failed else 0
        except Exception as error:  # a single network that cannot be trained must not end a search
            outcome = Outcome(math.nan, time.perf_counter() - start, f"{type(error).__name__}: {error}")
            self.failures += 1
        total = spent + outcome.seconds
        trial = Trial(number, architecture, epochs, outcome.value, outcome.seconds, total, outcome.note, dict(why))
        self.trials.append(trial)
        self.choices.append(choice)
        if self.on_trial is not None:
            self.on_trial(trial)
        if self.failures >= _FAILURES:
            raise Theta0Error(f"{_FAILURES} evaluations in a row failed; the last one: {outcome.note}")
        return outcome


def settings_of(text: str | None, searcher: str) -> Mapping[str, Any]:
    """Options of a searcher from ``name=value,...``; values are read as the default's type."""
    if not text:
        return {}
    known, found = options(searchers.get(searcher)), {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign or name not in known:
            raise Theta0Error(f"options are name=value of {searcher}, not {part!r}; {nearest(name, known)}")
        found[name] = _read(value, known[name], name)
    return found


def _read(value: str, default: Any, name: str) -> Any:
    if isinstance(default, bool):
        if value not in ("true", "false"):
            raise Theta0Error(f"{name} is true or false, not {value!r}")
        return value == "true"
    if isinstance(default, tuple):
        return tuple(value.split("+")) if value else ()
    kind = type(default) if isinstance(default, int | float) else str
    try:
        return kind(value)
    except ValueError:
        raise Theta0Error(f"{name} is a number such as {default}, not {value!r}") from None
