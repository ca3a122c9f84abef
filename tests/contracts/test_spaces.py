"""What every space must pass; spaces are found by discovery, and the user's space of the examples comes with them."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.utils.flop_counter import FlopCounterMode

from tests.reference import shuffled
from theta0 import count
from theta0.errors import Theta0Error
from theta0.graph import Cell
from theta0.space import Space, get_space, spaces

USER = "examples/plain_space.py:PlainResNet"
NAMES = [*spaces.names(), USER]

SIZES = {
    "darts": 1_037_664_180**2,  # (1 * 3 * 6 * 10 pairs of inputs) * 7^8 operations, for each cell
    "mlp": 5**9 * 2**8,
    "nasbench101": 423_624,
    "nasbench1shot1_1": 180 * 3**4,
    "nasbench1shot1_2": 29_160,
    "nasbench1shot1_3": 5_400 * 3**5,
    "nasbench201": 15_625,
    USER: 27,
}
SMALL: dict[str, dict[str, Any]] = {
    "darts": {"channels": 4, "layers": 3},
    "mlp": {"width": 32},
    "nasbench201": {"channels": 4, "cells": 1},
    USER: {"shape": (1, 8, 8)},
}
SMALL |= {name: {"channels": 8, "cells": 1} for name in NAMES if name.startswith("nasbench1")}


@pytest.fixture(params=NAMES)
def space(request: pytest.FixtureRequest) -> Space[Any]:
    return get_space(request.param)


def small(space: Space[Any]) -> dict[str, Any]:
    return SMALL[space.name if space.name in SMALL else USER]


def samples(space: Space[Any], count: int, seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [space.sample(generator) for _ in range(count)]


def test_every_space_has_a_size_to_check() -> None:
    assert set(SIZES) == set(NAMES) == set(SMALL)


def test_published_size(space: Space[Any]) -> None:
    assert space.size == SIZES[space.name if space.name in SIZES else USER]


def test_text_round_trip(space: Space[Any]) -> None:
    for architecture in samples(space, 50):
        text = space.format(architecture)
        assert space.parse(text) == architecture
        assert "\n" not in text
    assert space.format(space.parse(space.notation)) == space.notation


def test_garbage_is_refused_with_a_sentence(space: Space[Any]) -> None:
    text = space.notation
    for wrong in (
        "",
        "?",
        text[: len(text) // 2],
        text + " and more",
        text.replace("3", "x", 1).replace("relu", "rely"),
    ):
        with pytest.raises(Theta0Error, match=r"expected|no published cell"):
            space.parse(wrong)


def test_architectures_can_be_compared_and_kept(space: Space[Any]) -> None:
    first, second = samples(space, 20), samples(space, 20)
    assert first == second  # the same seed
    assert [hash(architecture) for architecture in first] == [hash(architecture) for architecture in second]
    assert samples(space, 20, seed=1) != first
    assert pickle.loads(pickle.dumps(first)) == first
    assert copy.deepcopy(first) == first


def test_codes_round_trip(space: Space[Any]) -> None:
    for architecture in samples(space, 50):
        codes = space.encode(architecture)
        assert len(codes) == len(space.choices)
        assert all(0 <= code < len(choice.candidates) for code, choice in zip(codes, space.choices, strict=True))
        assert space.canonical(space.decode(codes)) == space.canonical(architecture)
        assert space.encode(space.decode(codes)) == codes


def test_sampling_is_uniform(space: Space[Any]) -> None:
    drawn = samples(space, 4000)
    if math.prod(len(choice.candidates) for choice in space.choices) == space.size:
        codes = np.array([space.encode(architecture) for architecture in drawn])
        for column, choice in zip(codes.T, space.choices, strict=True):
            if len(choice.candidates) > 1:
                assert chisquare(np.bincount(column, minlength=len(choice.candidates))).pvalue > 1e-6
    else:  # not a product: the space lists itself, and numbers of edges and operations must come in proportion
        everything = [space[i] for i in range(0, space.size, 7)]  # type: ignore[index]

        def kinds(cells: list[Cell]) -> np.ndarray[Any, Any]:
            return np.bincount([10 * len(cell.edges) + len(set(cell.ops)) for cell in cells], minlength=100)

        expected, seen = kinds(everything), kinds(drawn)
        common = expected / expected.sum() * len(drawn) >= 5
        assert common.sum() > 5
        share = expected[common] / expected[common].sum()
        assert chisquare(seen[common], share * seen[common].sum()).pvalue > 1e-6


def test_neighbours_and_mutations_stay_in_the_space(space: Space[Any]) -> None:
    generator = np.random.default_rng(0)
    for architecture in samples(space, 5):
        near = list(space.neighbours(architecture))
        assert near
        assert len(set(near)) == len(near)
        assert architecture not in near
        for other in near:
            assert space.parse(space.format(other)) == other
            assert space.canonical(space.decode(space.encode(other))) == space.canonical(other)
        mutated = {space.mutate(architecture, generator) for _ in range(30)}
        assert mutated <= set(near)
        assert len(mutated) > min(3, len(near) - 1)


def test_mutation_leads_everywhere(space: Space[Any]) -> None:
    """From one architecture, mutation alone soon shows all values of all choices."""
    generator = np.random.default_rng(0)
    architecture = space.sample(generator)
    seen: list[set[int]] = [set() for _ in space.choices]
    for _ in range(3000):
        architecture = space.mutate(architecture, generator)
        for values, code in zip(seen, space.encode(architecture), strict=True):
            values.add(code)
        if all(len(values) == len(choice.candidates) for values, choice in zip(seen, space.choices, strict=True)):
            break
    missing = [c.name for v, c in zip(seen, space.choices, strict=True) if len(v) < len(c.candidates)]
    assert not missing


def test_canonical_form_does_not_see_numbering(space: Space[Any]) -> None:
    generator = np.random.default_rng(0)
    tried = 0
    for architecture in samples(space, 50):
        cells = space.cells(architecture)
        if isinstance(architecture, Cell):
            other: Any = shuffled(architecture, generator)
        elif cells and all(hasattr(architecture, name) for name in cells):
            other = architecture._replace(**{name: shuffled(cell, generator) for name, cell in cells.items()})
        else:  # no cells, or a chain, whose layers have one order only
            other = space.decode(space.encode(architecture))
        tried += other != architecture
        assert space.canonical(other) == space.canonical(architecture)
        hash(space.canonical(architecture))
    assert tried or space.name in ("mlp", "plain", "nasbench201")  # there, every numbering but one runs backwards


def test_canonical_forms_differ(space: Space[Any]) -> None:
    drawn = samples(space, 200)
    assert len({space.canonical(architecture) for architecture in drawn}) > 0.1 * len(set(drawn))


def test_supercells_hold_every_cell(space: Space[Any]) -> None:
    if not space.cells(samples(space, 1)[0]) or space.name == "nasbench101":
        with pytest.raises(Theta0Error, match="no supernet form"):
            space.supercells()
        return
    whole = space.supercells()
    held: dict[str, set[Any]] = {name: set() for name in whole}
    for architecture in samples(space, 300):
        cells = space.cells(architecture)
        assert set(cells) == set(whole)
        for name, cell in cells.items():
            assert whole[name].holds(cell)
            held[name] |= set(cell.edges)
    for name, union in whole.items():  # and nothing beside them
        assert held[name] == {(s, t, op) for (s, t), ops in union.edges.items() for op in ops}


def test_builds_and_learns(space: Space[Any]) -> None:
    for architecture in samples(space, 3):
        options = space.options(**small(space))
        model = space.build(architecture, options, seed=0)
        x = torch.randn(4, *options.shape, generator=torch.Generator().manual_seed(0))
        logits = model(x)
        assert logits.shape == (4, options.classes)
        torch.nn.functional.cross_entropy(logits, torch.arange(4)).backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert gradients
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


@pytest.mark.parametrize("initialization", ["torch", "he"])
def test_same_seed_same_network(space: Space[Any], initialization: str) -> None:
    (architecture,) = samples(space, 1)

    def weights(seed: int | None) -> torch.Tensor:
        model = space.build(architecture, seed=seed, initialization=initialization, **small(space))
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    before = torch.get_rng_state()
    first, second, other = weights(0), weights(0), weights(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    torch.manual_seed(3)
    free = weights(None)
    torch.manual_seed(3)
    assert torch.equal(free, weights(None))
    assert not torch.equal(free, weights(None))


def test_measures_the_built_network(space: Space[Any]) -> None:
    for architecture in samples(space, 3):
        options = space.options(**small(space))
        cost = space.measure(architecture, options)
        model = space.build(architecture, options, seed=0)
        assert cost.parameters == sum(p.numel() for p in model.parameters())
        assert cost.flops == count.flops(model, options.shape)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model.eval()(torch.zeros(1, *options.shape))
        assert cost.flops * 2 == counter.get_total_flops()


def test_every_skeleton_builds(space: Space[Any]) -> None:
    (architecture,) = samples(space, 1)
    for name in space.skeletons:
        assert space.measure(architecture, name).parameters > 0


def test_wrong_options_are_named(space: Space[Any]) -> None:
    (architecture,) = samples(space, 1)
    with pytest.raises(Theta0Error, match="has no option 'chanels'"):
        space.build(architecture, chanels=3)
    with pytest.raises(Theta0Error, match="has no skeleton 'large'"):
        space.build(architecture, "large")
    with pytest.raises(Theta0Error, match="no initialization is called 'hee'; did you mean he"):
        space.build(architecture, initialization="hee")
    with pytest.raises(Theta0Error, match="classes of at least one"):
        space.build(architecture, classes=0)
    with pytest.raises(Theta0Error, match="classes of at least one"):
        space.build(architecture, shape=(3, 0, 32))
