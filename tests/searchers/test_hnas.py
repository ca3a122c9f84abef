from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.searchers import Budget
from theta0.searchers.hnas import OFFICIAL, Terms
from theta0.searching import Trial, run

POOL = Candidates.of(scores(), space)
VALID = np.flatnonzero(POOL.ok("trace") & POOL.ok("kappa"))


def searched(evaluations: int = 8, pool: Candidates = POOL, seed: int = 0, **options: Any) -> list[Trial]:
    return run("hnas-paper", objective(), Budget(evaluations), seed=seed, scores=pool, **options).trials


def naive(pool: Candidates, mu: float, t: float, *, absolute: bool, signed: bool, scale: float) -> NDArray[np.float64]:
    """kappa / M + mu F(M^2 - nu) with the scales of the official code."""
    found = np.full(len(pool), np.inf)
    for i in range(len(pool)):
        metric, kappa = pool.column("trace")[i], pool.column("kappa")[i]
        if pool.ok("trace")[i] and pool.ok("kappa")[i]:
            metric = metric if signed else abs(metric)
            away = metric**2 - (t * scale) ** 2
            found[i] = kappa / (metric + 1e-6) + mu * (abs(away) if absolute else away**2)
    return found


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_terms_with_fixed_scales(absolute: bool, signed: bool) -> None:
    pool = POOL.select(np.arange(60))
    pool.scores["trace:official"][::3] *= -1  # type: ignore[index]
    terms = Terms(pool, "trace", "kappa", absolute=absolute, signed=signed, scale=20.0)
    for mu, t in ((1e-4, 0.0), (1.0, 0.5), (0.01, 1.0)):
        expected = naive(pool, mu, t, absolute=absolute, signed=signed, scale=20.0)
        np.testing.assert_allclose(terms.value(mu, t), expected, rtol=1e-12)


@pytest.mark.parametrize("absolute", [False, True])
def test_terms_with_the_pool_s_scales(absolute: bool) -> None:
    """nu is a quantile of M^2, and units make no difference to which architecture is the best."""
    terms = Terms(POOL, "trace", "kappa", absolute=absolute, signed=False, scale=None)
    squares = np.sort(POOL.column("trace")[VALID] ** 2)
    for t in (0.0, 0.25, 1.0):
        chosen = int(np.argmin(terms.value(1e6, t)))
        assert POOL.column("trace")[chosen] ** 2 == pytest.approx(np.quantile(squares, t), rel=0.05)
    changed = POOL.select(np.arange(len(POOL)))
    changed.scores["trace:official"][:] *= 1e5  # type: ignore[index]
    changed.scores["kappa:official"][:] *= 1e-3  # type: ignore[index]
    other = Terms(changed, "trace", "kappa", absolute=absolute, signed=False, scale=None)
    for mu, t in ((1e-4, 0.5), (1e-2, 0.9), (1.0, 0.3)):
        assert np.argmin(other.value(mu, t)) == np.argmin(terms.value(mu, t))


def test_what_is_not_valid_is_infinitely_bad() -> None:
    terms = Terms(POOL, "trace", "kappa", absolute=False, signed=False, scale=None)
    assert np.flatnonzero(np.isfinite(terms.value(0.1, 0.5))).tolist() == VALID.tolist() == terms.places.tolist()
    dead = POOL.select(~POOL.ok("trace"))
    with pytest.raises(Theta0Error, match="no architecture of the pool has valid trace and kappa; score it again"):
        searched(pool=dead)


def test_each_trial_is_the_best_of_those_not_tried() -> None:
    trials = searched(12, scaling="fixed", scale=30.0, lowest=-6.0, highest=-2.0)
    done: list[int] = []
    for trial in trials:
        value = naive(POOL, trial.why["mu"], trial.why["t"], absolute=False, signed=False, scale=30.0)
        value[done] = np.inf
        assert table().row(trial.architecture) == np.argmin(value)
        done.append(table().row(trial.architecture))
        assert 1e-6 <= trial.why["mu"] <= 1e-2
        assert 0 <= trial.why["t"] <= 1


def test_the_first_probes_take_nu_from_end_to_end() -> None:
    trials = searched(8, probes=5, lowest=-4.0, highest=0.0)
    assert [one.why["t"] for one in trials[:5]] == [0, 0.25, 0.5, 0.75, 1]
    assert [one.why["mu"] for one in trials[:5]] == pytest.approx([0.01] * 5)
    assert len({(one.why["mu"], one.why["t"]) for one in trials}) == 8
    assert len(searched(3, probes=0)) == 3
    assert searched(2, probes=1)[0].why["t"] == 0.5


def test_a_pool_is_gone_through_once() -> None:
    trials = searched(100, pool=POOL.select(np.arange(12)))
    assert len({one.architecture for one in trials}) == len(trials) == 11  # one is dead


def test_a_pool_that_grows() -> None:
    """Only what has been drawn so far may be chosen: with one a step, the first is not the best of all."""
    whole, grown = searched(6), searched(6, growth=1)
    assert [one.architecture for one in whole] != [one.architecture for one in grown]
    assert len({one.architecture for one in grown}) == 6
    small = POOL.select(np.arange(24))
    assert len(searched(12, pool=small, growth=3)) == 12


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_it_finds_better_cells_than_random_search(acquisition: str) -> None:
    def final(name: str, **options: Any) -> float:
        found = []
        for seed in range(4):
            result = run(name, objective(epochs=[200]), Budget(12), seed=seed, scores=POOL, **options)
            found.append(table().validation("cifar10", 200, table().row(result.chosen)))
        return float(np.mean(found))

    assert final("hnas-paper", growth=400, acquisition=acquisition) > final("random") + 1


def test_the_official_details() -> None:
    trials = searched(7, **{**OFFICIAL, "growth": 200})
    assert len(trials) == 7
    assert all(1e-4 <= one.why["mu"] <= 1 for one in trials)


def test_epochs() -> None:
    assert {one.epochs for one in searched(3)} == {3}
    assert {one.epochs for one in searched(3, epochs=200)} == {200}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "cube"}, "form is square or absolute and scaling is pool or fixed, not 'cube' and 'pool'"),
        ({"scaling": "none"}, "not 'square' and 'none'"),
        ({"score": "trac"}, "the pool has no score 'trac'; did you mean trace"),
        ({"acquisition": "pi"}, "an acquisition is 'ei' or 'ucb', not 'pi'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        searched(**options)


def test_the_surrogate_sees_what_succeeded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0.objective import Outcome, TableObjective

    evaluate, count = TableObjective.evaluate, [0]

    def sometimes(self: TableObjective, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        count[0] += 1
        if count[0] <= 6:  # all of the probes
            return Outcome(math.nan, 1.0)
        return evaluate(self, architecture, epochs, seconds)

    monkeypatch.setattr(TableObjective, "evaluate", sometimes)
    trials = searched(9)
    assert [math.isnan(one.value) for one in trials] == [True] * 6 + [False] * 3
