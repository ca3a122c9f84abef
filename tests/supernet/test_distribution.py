from __future__ import annotations

import numpy as np
import pytest
import torch

from theta0.errors import Theta0Error
from theta0.space import get_space
from theta0.supernet import Distribution

space = get_space("nasbench201")
FORM = space.form()


def sharp() -> Distribution:
    """Of each edge the last operation has a half."""
    return Distribution(FORM, {d.name: torch.tensor([0, 0, 0, 0, 4.0]).log1p() for d in FORM.decisions})


def test_draws_follow_the_probabilities() -> None:
    alphas, generator = sharp(), np.random.default_rng(0)
    wanted = np.array([1, 1, 1, 1, 5]) / 9
    counts = np.zeros(5)
    soft = np.zeros(5)
    architectures = np.zeros(5)
    for _ in range(2000):
        weights = alphas.gumbel(generator)["0->1"]
        (name,) = weights
        counts[FORM.decisions[0].candidates.index(name)] += 1
        soft += torch.stack(list(alphas.relaxed(generator, 1e-3)["0->1"].values())).numpy()
        architectures[space.encode(alphas.draw(generator))[0]] += 1
    for found in (counts, soft, architectures):
        assert np.abs(found / 2000 - wanted).max() < 0.04  # 3.5 deviations


def test_the_gradient_of_a_straight_through_draw_is_that_of_the_soft_weight() -> None:
    logits = {d.name: torch.randn(5, dtype=torch.float64, requires_grad=True) for d in FORM.decisions}
    alphas = Distribution(FORM, logits)
    noise = torch.from_numpy(np.random.default_rng(3).gumbel(size=5))
    for whole in (False, True):
        weights = alphas.gumbel(np.random.default_rng(3), 0.7, whole=whole)["0->1"]
        soft = ((logits["0->1"].log_softmax(dim=0) + noise) / 0.7).softmax(dim=0)
        assert len(weights) == (5 if whole else 1)
        for name, weight in weights.items():
            place = FORM.decisions[0].candidates.index(name)
            assert weight.item() == float(place == int(soft.argmax()))
            (found,) = torch.autograd.grad(weight, logits["0->1"], retain_graph=True)
            (wanted,) = torch.autograd.grad(soft[place], logits["0->1"], retain_graph=True)
            torch.testing.assert_close(found, wanted)


def test_inputs_are_drawn_without_repetition() -> None:
    form = get_space("nasbench1shot1_1").form()
    alphas, generator = Distribution.uniform(form), np.random.default_rng(0)
    for _ in range(20):
        weights = alphas.gumbel(generator)
        assert len(weights["3 input"]) == 2
        assert all(weight.item() == 1 for weight in weights["3 input"].values())


def test_nasi_draws_one_input_and_one_operation_for_each_node() -> None:
    """And keeps the two strongest of each (NASI, appendix B.2)."""
    form = get_space("darts").form("nodes")
    alphas = Distribution.uniform(form)
    weights = alphas.gumbel(np.random.default_rng(0))
    assert all(len(taken) == 1 for taken in weights.values())
    assert len(weights) == 16
    mixture = form.mixtures(alphas.drawn(np.random.default_rng(0)))["normal"]
    joined = [place for place, ops in mixture.items() if "" not in ops]
    assert sorted(target for _, target in joined) == [2, 3, 4, 5]  # type: ignore[misc]
    strengths = {d.name: [float(i) for i in range(len(d.candidates))] for d in form.decisions}
    genotype = form.derive(strengths)
    assert [(e.op, e.source) for e in genotype.normal.into(5)] == [("dil_conv_3x3", 3), ("dil_conv_5x5", 4)]


def test_darts_keeps_the_edges_of_the_strongest_operations() -> None:
    form = get_space("darts").form("edges")
    assert form.decisions[0].candidates[0] == "none"
    strengths = {d.name: [0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1] for d in form.decisions}
    strengths["normal 1->4"] = [0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    strengths["normal 3->4"] = [0.7, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0]
    genotype = form.derive(strengths)
    assert [(e.op, e.source) for e in genotype.normal.into(4)] == [("avg_pool_3x3", 1), ("skip_connect", 3)]
    assert [(e.op, e.source) for e in genotype.normal.into(3)] == [("dil_conv_5x5", 0), ("dil_conv_5x5", 1)]


def test_edge_normalisation_weighs_edges() -> None:
    form = get_space("darts").form("normalised")
    strengths = {d.name: [1.0] * len(d.candidates) for d in form.decisions}
    strengths["reduce 5 input"] = [0.1, 0.2, 0.9, 0.8, 0.3]
    assert [e.source for e in form.derive(strengths).reduce.into(5)] == [2, 3]


def test_what_comes_after_the_most_probable() -> None:
    alphas, generator = sharp(), np.random.default_rng(0)
    found = list(alphas.near(generator))
    assert found[0] == alphas.derive()
    assert len(found) == len(set(found)) > 1000
    first = [sum(code == 4 for code in space.encode(cell)) for cell in found]
    assert first[0] == 6
    assert np.mean(first[1:20]) > np.mean(first[-1000:])


def test_share() -> None:
    assert sharp().share(frozenset({"avg_pool_3x3"})) == pytest.approx(5 / 9)
    assert sharp().share(frozenset({"none", "skip_connect"})) == pytest.approx(2 / 9)
    assert sharp().share(frozenset()) == 0


def test_states_are_copies_that_load() -> None:
    one, other = sharp(), Distribution.uniform(FORM)
    other.load(one.state())
    assert other.strengths() == one.strengths()
    with torch.no_grad():
        other.logits["0->1"].zero_()
    assert other.strengths() != one.strengths()


def test_nonsense() -> None:
    with pytest.raises(Theta0Error, match=r"the decision '0->1' needs 5 logits, .*; found nothing"):
        Distribution(FORM, {})
    with pytest.raises(Theta0Error, match=r"found \(3,\): these logits are of another space or form"):
        Distribution(FORM, {d.name: torch.zeros(3) for d in FORM.decisions})
    for temperature in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(Theta0Error, match="a temperature is finite and more than 0"):
            sharp().gumbel(np.random.default_rng(0), temperature)
    with pytest.raises(Theta0Error, match="take whole=False"):
        Distribution.uniform(get_space("nasbench1shot1_1").form()).gumbel(np.random.default_rng(0), whole=True)
