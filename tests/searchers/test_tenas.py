from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.searchers.small import objective, space
from tests.searchers.test_evolution import Convolutions
from theta0.data import load
from theta0.errors import Theta0Error
from theta0.graph import Cell
from theta0.objective import Outcome
from theta0.scoring import score
from theta0.searchers import Budget, Task, tenas
from theta0.searchers.tenas import Active, Probe, _decrease, _ranks, count_regions, edges, prune
from theta0.searching import Result, run
from theta0.space import get_space

REDUCED: dict[str, Any] = {"data": "digits", "batch": 4, "patches": 20, "repeats": 1}
EDGES = edges(space)
PLANTED = dict(zip(EDGES, ("nor_conv_3x3", "skip_connect", "avg_pool_3x3", "nor_conv_1x1") * 2, strict=False))
ANY = np.ones((4,) * 6, dtype=bool)


class Planted:
    """Condition numbers and regions that count the operations which are not those wanted."""

    def __init__(self, wanted: dict[Any, str] = PLANTED, kappa: float = 1.0, regions: float = 1.0) -> None:
        self.wanted, self.kappa, self.regions = wanted, kappa, regions
        self.rounds: list[int] = []

    def __call__(self, parts: Sequence[Active]) -> tuple[Any, Any]:
        self.rounds.append(len(parts))
        foreign = np.array(
            [sum(name != self.wanted[p] for p, names in part.items() for name in names) for part in parts]
        )
        missing = np.array([sum(self.wanted[p] not in names for p, names in part.items()) for part in parts])
        wrong = foreign + 5.0 * missing
        return (100 + self.kappa * wrong)[None], (1000 - self.regions * wrong)[None]


def single(active: Active) -> dict[Any, str]:
    assert all(len(names) == 1 for names in active.values())
    return {pair: names[0] for pair, names in active.items()}


def test_edges_have_what_does_not_give_zero() -> None:
    assert list(EDGES) == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    assert set(EDGES.values()) == {("skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")}


@pytest.mark.parametrize(("kappa", "regions"), [(1.0, 1.0), (1.0, 0.0), (0.0, 10.0)])
def test_it_ends_at_what_both_rankings_want(kappa: float, regions: float) -> None:
    measure = Planted(kappa=kappa, regions=regions)
    assert single(prune(EDGES, measure, ANY)) == PLANTED
    assert measure.rounds == [25, 19, 13]  # the whole, and one of four, three and two operations less on six edges


def test_the_sum_of_ranks_decides() -> None:
    """On one edge: a is first by kappa and last by regions, b is second in both, c the other way round."""
    kappas = {"a": 70.0, "b": 80.0, "c": 90.0, "d": 95.0}
    regions = {"a": 10.0, "b": 30.0, "c": 20.0, "d": 5.0}

    def measure(parts: Sequence[Active]) -> tuple[Any, Any]:
        names = [(set(parts[0][0, 1]) - set(part[0, 1])).pop() for part in parts[1:]]
        return np.array([[100.0, *(kappas[n] for n in names)]]), np.array([[8.0, *(regions[n] for n in names)]])

    # Ranks by kappa 0 1 2 3 and by regions 2 0 1 3: b, then a and c with 0 + 1 and 1 + 0, a first by kappa.
    assert single(prune({(0, 1): ("d", "c", "b", "a")}, measure, np.ones(4, dtype=bool))) == {(0, 1): "d"}
    assert single(prune({(0, 1): ("c", "a", "b")}, measure, np.ones(3, dtype=bool))) == {(0, 1): "c"}


def test_what_is_not_allowed_is_not_the_end() -> None:
    places = [names.index(PLANTED[pair]) for pair, names in EDGES.items()]
    others = ANY.copy()
    others[tuple(places)] = False
    near = single(prune(EDGES, Planted(), others))
    assert sum(near[pair] != PLANTED[pair] for pair in EDGES) == 1
    one = np.zeros_like(ANY)
    one[0, 1, 2, 3, 0, 1] = True
    assert [EDGES[pair].index(name) for pair, name in single(prune(EDGES, Planted(), one)).items()] == [
        0,
        1,
        2,
        3,
        0,
        1,
    ]


def test_changes_are_relative_and_may_be_infinite() -> None:
    inf = math.inf
    found = _decrease(np.array([[100.0, 50.0, 150.0, inf], [inf, 50.0, inf, 7.0]]))
    np.testing.assert_array_equal(found, [[0.5, -0.5, -inf], [1, 0, 1]])


def test_ranks_are_shared_by_what_is_equal_when_rounded() -> None:
    assert _ranks(np.array([[0.50004, 0.2, 0.50001, -math.inf, 0.3]]), 3).tolist() == [3, 1, 3, 0, 2]
    assert _ranks(np.array([[0.1, 0.3], [0.4, 0.1]]), 3).tolist() == [1, 0]  # means over the repeats


def test_regions_are_different_patterns() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 3), nn.ReLU(), nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2))
    batches = [torch.randn(40, 1, 3, 3) for _ in range(3)]
    seen = set()
    for x in torch.cat(batches):
        first = model[1](x.flatten())
        second = model[3](first.relu())
        seen.add(tuple((torch.cat([first, second]) > 0).tolist()))
    assert count_regions(model, batches) == len(seen)
    (record,) = score(model, batches[0], torch.zeros(40, dtype=torch.int64), ["regions"])
    assert count_regions(model, batches[:1]) == record.value


def probe(generator: np.random.Generator, **changes: Any) -> Probe:
    options = {"images": None, "kernel": "frozen", "batch": 4, "patches": 20, "repeats": 2, "paper": True}
    return Probe(space, generator, **(options | changes))


@pytest.mark.parametrize(("paper", "schemes"), [(True, ["he_out", "he"] * 2), (False, [])])
def test_the_paper_draws_parameters_for_each_repeat(
    paper: bool, schemes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    models: list[Tensor] = []
    original = tenas.initialize

    def noted(model: nn.Module, scheme: str, seed: int) -> None:
        drawn.append(scheme)
        original(model, scheme, seed)

    def scored(model: nn.Module, *given: Any) -> Any:
        models.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
        return score(model, *given)

    monkeypatch.setattr(tenas, "initialize", noted)
    monkeypatch.setattr(tenas, "score", scored)
    kappas, regions = probe(np.random.default_rng(0), paper=paper)([EDGES, EDGES])
    assert drawn == schemes
    assert torch.equal(models[0], models[1])  # the parts of a repeat are compared at one start
    assert torch.equal(models[1], models[2]) is not paper
    np.testing.assert_array_equal(kappas[:, 0], kappas[:, 1])
    np.testing.assert_array_equal(regions[:, 0], regions[:, 1])
    assert kappas[0, 0] != kappas[1, 0]  # other images


def test_patches_are_cut_out_of_images() -> None:
    data = load("digits").train
    measure = probe(np.random.default_rng(0), images=data, patches=50)
    batches = measure._patch_batches()
    assert [batch.shape for batch in batches] == [(50, 1, 3, 3)] * 3
    every = torch.cat([x for x, _ in data.batches(200)])
    windows = {tuple(window.flatten().tolist()) for window in every.unfold(2, 3, 1).unfold(3, 3, 1).reshape(-1, 9)}
    assert all(tuple(patch.flatten().tolist()) in windows for batch in batches for patch in batch)


def searched(seed: int = 0, **options: Any) -> Result:
    return run("tenas", Convolutions(), Budget(1), seed=seed, **(REDUCED | options))


def test_a_search_for_real() -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    result = searched()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert isinstance(result.chosen, Cell)
    assert not any(edge.op == "none" for edge in result.chosen.edges)
    assert [one.architecture for one in result.trials] == [result.chosen]
    assert searched().chosen == result.chosen
    assert len({searched(seed, kernel="frozen", reinitialize="official").chosen for seed in range(3)}) > 1


def test_without_data_pixels_are_normal() -> None:
    assert searched(data="", kernel="frozen", batch=2).trials


def test_limits() -> None:
    limited = objective(limits={"parameters": 100_000.0})
    result = run("tenas", limited, Budget(1), **(REDUCED | {"kernel": "frozen"}))
    assert limited.allowed(result.chosen)


def test_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Convolutions, "allowed", lambda *_: False)
    with pytest.raises(Theta0Error, match="none of the 4,096 architectures that pruning may end at is allowed"):
        searched()


def test_a_training_that_fails_ends_it() -> None:
    class Failing(Convolutions):
        def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
            return Outcome(math.nan, 1.0, "no luck")

    options = REDUCED | {"kernel": "frozen"}
    with pytest.raises(Theta0Error, match="ended without a single evaluation that succeeded: no luck"):
        run("tenas", Failing(), Budget(1), **options)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("darts", "darts has 24 choices and the cells normal, reduce, which do not fit"),
        ("nasbench1shot1_1", "nasbench1shot1_1 has 9 choices and the cells cell, which do not fit"),
        ("nasbench101", "nasbench101 has no supernet form"),
        ("mlp", "do not fit|no supernet form"),
    ],
)
def test_spaces_that_it_cannot_prune(name: str, said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        edges(get_space(name))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reinitialize": "never"}, "reinitialize is paper or official, not 'never'"),
        ({"batch": 1}, "batch is 2 or more, not 1"),
        ({"patches": 0}, "patches is 1 or more, not 0"),
        ({"repeats": 0}, "repeats is 1 or more, not 0"),
        ({"precision": 0}, "precision is 1 or more, not 0"),
        ({"kernel": "frosen"}, "did you mean frozen"),
        ({"data": "cifar11"}, "did you mean cifar10"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        searched(**options)


def test_choices_in_another_order() -> None:
    class Turned(type(space)):  # type: ignore[misc]
        def decode(self, codes: Sequence[int]) -> Cell:
            return super().decode(codes[::-1])

    search = Convolutions()
    search.space = Turned()
    with pytest.raises(Theta0Error, match="do not come in the order of its supercell's edges"):
        next(tenas.tenas(Task(search, Budget(1)), np.random.default_rng(0), **REDUCED))
