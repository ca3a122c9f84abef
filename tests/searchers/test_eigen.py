from __future__ import annotations

import numpy as np
import pytest

import theta0
from tests.searchers.small import objective, scores, space, table
from theta0.candidates import Candidates
from theta0.errors import Theta0Error
from theta0.recipe import Recipe
from theta0.searchers import Budget
from theta0.searching import Result, run
from theta0.spaces.mlp import MLPSpace
from theta0.theory import pools
from theta0.training_objective import TrainingObjective

POOL = Candidates.of(scores(), space)


def searched(seed: int = 0, pool: Candidates = POOL, **options: object) -> Result:
    return run("eigen", objective(), Budget(50), seed=seed, scores=pool, **options)


@pytest.mark.parametrize("train", [5, 20])
def test_the_best_by_the_bound_are_trained(train: int) -> None:
    result = searched(train=train)
    order = np.argsort(-POOL.ranks("eigen_bound"), kind="stable")[:train]
    assert [table().row(one.architecture) for one in result.trials] == order.tolist()
    assert result.chosen == max(result.trials, key=lambda one: one.value).architecture
    assert [one.architecture for one in searched(seed=1, train=train).trials] == [
        one.architecture for one in result.trials
    ]


def test_a_sample_of_the_pool() -> None:
    first, other = (searched(seed, sample=100, train=5) for seed in (0, 1))
    assert len(first.trials) == 5
    assert [one.architecture for one in first.trials] != [one.architecture for one in other.trials]


def test_the_trace_orders_alike() -> None:
    """trace^2 N / d is the bound."""
    trace = np.sqrt(POOL.column("eigen_bound"))
    bare = Candidates(POOL.architectures, {"trace:official": trace}, {"trace:official": POOL.ok("eigen_bound")})
    assert [one.architecture for one in searched(pool=bare).trials] == [one.architecture for one in searched().trials]


@pytest.mark.parametrize(
    ("options", "message"), [({"train": 0}, "not 0"), ({"train": 9, "sample": 5}, "5 sample, not 9")]
)
def test_numbers_that_do_not_fit(options: dict[str, int], message: str) -> None:
    with pytest.raises(Theta0Error, match=message):
        searched(**options)


def test_on_the_space_of_activations_without_a_network() -> None:
    """The pool is made of kernels of infinite width; only the three best by their bound are trained."""
    space = MLPSpace(layers=3)
    data = theta0.load("digits").train
    networks = [space.decode(codes) for codes in np.ndindex(5, 5, 2)]
    kernels = pools.scores(space, networks, data.batch(32, seed=0)[0])
    trained = TrainingObjective(
        space,
        data.subset(list(range(300))),
        data.subset(list(range(300, 500))),
        recipe=Recipe(epochs=2, batch=32, learning_rate=0.1, augment=False),
        options={"width": 32},
    )
    result = run("eigen", trained, Budget(3), scores=kernels, train=3)
    order = np.argsort(-kernels["eigen_bound:infinite"], kind="stable")[:3]
    assert {one.architecture for one in result.trials} == {networks[place] for place in order}
    assert {one.architecture.activations[0] for one in result.trials} <= {"relu", "leaky_relu"}
    assert max(one.value for one in result.trials) > 50
