"""What the supernet of every space must pass; spaces are found by discovery, and a user's comes with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from theta0.errors import Theta0Error
from theta0.forms import GATE, KINDS, single
from theta0.graph import Cell
from theta0.space import Space, get_space, spaces
from theta0.supernet import Distribution, inherited, mix, supernet
from theta0.supernet.cells import MixedModule

USER = "examples/pick_space.py:PickNet"
SMALL: dict[str, dict[str, Any]] = {
    "nasbench201": {"channels": 4, "cells": 1, "shape": (3, 8, 8), "classes": 4},
    "darts": {"channels": 4, "layers": 3, "shape": (3, 16, 16), "classes": 4},
    USER: {"shape": (3, 8, 8), "classes": 4},
}
# Seven channels: not every cell splits them evenly.
SMALL |= {f"nasbench1shot1_{i}": {"channels": 7, "cells": 2, "shape": (3, 8, 8), "classes": 4} for i in (1, 2, 3)}
WITHOUT = {"mlp", "nasbench101"}


@pytest.fixture(params=sorted(SMALL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(name: str, **changes: Any) -> tuple[Space[Any], nn.Module]:
    space = get_space(name)
    return space, supernet(space, seed=0, **{**SMALL[name], **changes})


def images(name: str, count: int = 3) -> Tensor:
    return torch.randn(count, *SMALL[name]["shape"], generator=torch.Generator().manual_seed(0))


def counted(model: nn.Module) -> list[str]:
    """Fills with the names of operations as they run."""
    ran: list[str] = []
    for part in model.modules():
        if isinstance(part, MixedModule):
            for key, operation in [*getattr(part, "operations", {}).items(), *getattr(part, "candidates", {}).items()]:
                operation.register_forward_hook(lambda *_, key=f"{part.name} {key}": ran.append(key))
    return ran


def test_every_space_is_here() -> None:
    assert {*SMALL, *WITHOUT} == {*spaces.names(), USER}


@pytest.mark.parametrize("space", sorted(WITHOUT))
def test_a_space_without_one_is_named(space: str) -> None:
    with pytest.raises(Theta0Error, match=f"the space {space} has no supernet form; give it a method supernet"):
        supernet(get_space(space), seed=0)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{}, {"pooled": True}])
def test_a_candidate_is_its_own_network(name: str, training: bool, options: dict[str, Any]) -> None:
    """The same weights give the same logits, bit for bit, running statistics included."""
    if options and name != "darts":
        pytest.skip("an option of the skeleton of darts")
    space, model = made(name, track=True, **options) if name != USER else made(name)
    generator = np.random.default_rng(0)
    skeleton = "search" if "search" in space.skeletons else None
    known = {} if name == USER else {"track": True}
    for seed in range(3):
        architecture = space.sample(generator)
        mix(model, single(space, architecture))
        model.train()
        model(images(name))  # statistics are not those of the start
        whole = inherited(model, single(space, architecture)).state_dict()
        own = space.build(architecture, skeleton, seed=seed + 1, **{**SMALL[name], **known, **options})
        if name == USER:
            whole = dict(zip(own.state_dict(), whole.values(), strict=True))
        own.load_state_dict(whole)
        for module in (model, own):
            module.train(training)
        assert torch.equal(model(images(name)), own(images(name)))


def test_what_is_not_chosen_does_not_run(name: str) -> None:
    space, model = made(name)
    ran = counted(model)
    copies = {part.name: 0 for part in model.modules() if isinstance(part, MixedModule)}
    for part in model.modules():
        if isinstance(part, MixedModule):
            copies[part.name] += 1
    for seed in range(5):
        architecture = space.sample(np.random.default_rng(seed))
        mix(model, single(space, architecture))
        ran.clear()
        model(images(name))
        if name == USER:
            pairs = zip(architecture.names, architecture.values, strict=True)
            wanted = [f"{choice} candidate {value}" for choice, value in pairs for _ in range(copies[choice])]
        else:
            cells = space.cells(architecture)
            wanted = [key for cell, of in cells.items() for key in running(cell, of) * copies[cell]]
        assert sorted(ran) == sorted(wanted)


def running(name: str, cell: Cell) -> list[str]:
    """The operations of a cell; where they sit on vertices, those that reach the output."""
    if not cell.ops:
        return [f"{name} {source}->{target} {op}" for source, target, op in cell.edges if op]
    used = {cell.output}
    for edge in reversed(cell.edges):
        if edge.target in used:
            used.add(edge.source)
    return [f"{name} {v} {op}" for v, op in zip(cell.intermediate, cell.ops, strict=True) if v in used]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_all_logits(name: str, kind: str) -> None:
    space, model = made(name)
    alphas = Distribution.uniform(space.form(kind))
    generator = np.random.default_rng(0)
    ways = [alphas.softmax, lambda: alphas.relaxed(generator, 0.7)]
    if not alphas.form.on_nodes:
        ways.append(lambda: alphas.gumbel(generator, whole=True))
    for way in ways:
        mix(model, alphas.mixtures(way()))
        gradients = torch.autograd.grad(model(images(name)).square().sum(), alphas.parameters())
        assert all(bool(torch.isfinite(g).all()) for g in gradients)
        reached = sum(bool(g.abs().max() > 0) for g in gradients)
        # What lies before an edge that was drawn as zero is not reached.
        assert reached == len(gradients) if way in ways[:2] else reached > 0


def test_a_straight_through_draw_is_a_candidate(name: str) -> None:
    """Its weights are one to the bit, so it computes what the candidate computes without them."""
    space, model = made(name)
    alphas = Distribution.uniform(space.form())
    for seed in range(4):
        mix(model, alphas.mixtures(alphas.gumbel(np.random.default_rng(seed), 0.5)))
        with_gates = model(images(name))
        mix(model, alphas.mixtures(alphas.drawn(np.random.default_rng(seed))))
        assert torch.equal(model(images(name)), with_gates)


@pytest.mark.parametrize("kind", KINDS)
def test_derived_architectures_are_of_the_space(name: str, kind: str) -> None:
    space = get_space(name)
    alphas = Distribution.uniform(space.form(kind))
    generator = np.random.default_rng(0)
    drawn = [alphas.derive(), *(alphas.draw(generator) for _ in range(20))]
    for architecture in drawn:
        assert space.decode(space.encode(architecture)) == architecture
    assert len(set(drawn)) > 10


def test_partial_channels(name: str) -> None:
    wide = {} if name == USER else {"channels": 16}
    space, whole = made(name, **wide)
    _, half = made(name, partial=2, **wide)
    assert sum(p.numel() for p in half.parameters()) < sum(p.numel() for p in whole.parameters())
    alphas = Distribution.uniform(space.form("normalised"))
    for model in (whole, half):
        mix(model, alphas.mixtures(alphas.softmax()))
        assert model(images(name)).shape == (3, 4)
    if name != USER:
        with pytest.raises(Theta0Error, match="one in 3 channels is asked for, and 16 initial channels do not divide"):
            made(name, partial=3, **wide)
    with pytest.raises(Theta0Error, match="partial is 1 or more, not 0"):
        made(name, partial=0)


def test_seeds(name: str) -> None:
    before = torch.get_rng_state()
    one, same = (made(name)[1].state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[key], same[key]) for key in one)
    space = get_space(name)
    other = supernet(space, seed=1, **SMALL[name]).state_dict()
    assert not all(torch.equal(one[key], other[key]) for key in one)


def test_weights_are_named_by_what_they_belong_to(name: str) -> None:
    """A state that is saved fits a supernet that is made anew."""
    _, model = made(name)
    _, again = made(name)
    again.load_state_dict(model.state_dict())


def test_a_mixture_of_something_else_is_named(name: str) -> None:
    space, model = made(name)
    with pytest.raises(Theta0Error, match="the supernet has nothing called 'nowhere' to mix"):
        mix(model, {"nowhere": {}})
    mixtures = single(space, space.sample(np.random.default_rng(0)))
    first = next(iter(mixtures))
    place = next(place for place, weights in mixtures[first].items() if set(weights) != {""})
    with pytest.raises(Theta0Error, match=r"the supernet has no operation '.*nor_konv_3x3'"):
        mix(model, {first: {place: {"nor_konv_3x3": 1.0}}})


def test_only_a_candidate_is_inherited(name: str) -> None:
    space, model = made(name)
    alphas = Distribution.uniform(space.form())
    with pytest.raises(Theta0Error, match="does not run one candidate but a mixture at"):
        inherited(model, alphas.mixtures(alphas.softmax()))
    assert GATE not in str(single(space, space.sample(np.random.default_rng(0))))
