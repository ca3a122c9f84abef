from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.searchers.small import objective
from theta0.data import ImageDataset, load
from theta0.errors import Theta0Error
from theta0.forms import Mixtures
from theta0.gates import SCORES, GateScore, Pass, get_score
from theta0.nasi import Nasi, NasiSettings
from theta0.searchers import Budget
from theta0.searching import run
from theta0.space import get_space
from theta0.supernet import Distribution, mix, supernet

DIGITS = load("digits").train.subset(range(80))
USER = "examples/pick_space.py:PickNet"
SMALL: dict[str, dict[str, Any]] = {
    "nasbench201": {"channels": 2, "cells": 1},
    "nasbench1shot1_1": {"channels": 4, "stacks": 2, "cells": 1},
    "nasbench1shot1_2": {"channels": 4, "stacks": 2, "cells": 1},
    "nasbench1shot1_3": {"channels": 4, "stacks": 2, "cells": 1},
    "darts": {"channels": 2, "layers": 3},
    USER: {},
}


def search(space: str = "nasbench201", images: Any = DIGITS, seed: int = 0, **settings: Any) -> Nasi:
    settings = {"steps": 3, "batch": 4, "mu": 2.0, **settings}
    return Nasi(get_space(space), images, NasiSettings(**settings), seed=seed, **SMALL[space])


class Tiny(nn.Module):
    """What the scores are tested on: a gate on a layer, in float64."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 3)
        self.gate = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.second(torch.tanh(self.gate * self.first(x)))
        return logits


X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
Y = torch.arange(5) % 3


def naive(name: str, model: Tiny) -> float:
    """By one gradient after the other, without a graph of gradients."""

    def square(value: Tensor) -> float:
        parameters = list(model.parameters())
        return sum(float(g.square().sum()) for g in torch.autograd.grad(value, parameters, retain_graph=True))

    logits = model(X)
    losses = F.cross_entropy(logits, Y, reduction="none")
    if name == "trace":
        return square(losses.mean())
    if name == "grad":
        return math.sqrt(square(losses.mean()))
    if name == "samples":
        return sum(square(loss) for loss in losses)
    if name == "exact":
        return sum(square(logit) for logit in logits.flatten())
    if name == "projected":
        signs = torch.randint(2, logits.shape, generator=torch.Generator().manual_seed(7)) * 2 - 1
        return square((logits * signs).sum())
    assert name == "snip"
    gradients = torch.autograd.grad(losses.mean(), list(model.parameters()))
    return sum(float((p.detach() * g).abs().sum()) for p, g in zip(model.parameters(), gradients, strict=True))


@pytest.mark.parametrize("name", sorted(SCORES))
def test_scores_and_their_gradients_through_a_gate(name: str) -> None:
    model = Tiny()
    value = SCORES[name].compute(Pass(model, X, Y, seed=7))
    assert float(value.detach()) == pytest.approx(naive(name, model), rel=1e-12)
    (found,) = torch.autograd.grad(value, model.gate)
    step = 1e-5
    around = []
    for sign in (1, -1):
        moved = Tiny()
        with torch.no_grad():
            moved.gate += sign * step
        around.append(naive(name, moved))
    assert float(found) == pytest.approx((around[0] - around[1]) / (2 * step), rel=1e-6)


def test_the_projected_trace_is_the_trace_in_the_mean() -> None:
    model = Tiny()
    drawn = [float(SCORES["projected"].compute(Pass(model, X, None, seed)).detach()) for seed in range(3000)]
    exact = naive("exact", model)
    assert np.mean(drawn) == pytest.approx(exact, abs=4 * np.std(drawn) / math.sqrt(len(drawn)))


def test_the_first_steps_by_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1 in float64 by finite differences: each gate is moved, and the trace taken anew."""
    nasi = search(steps=3, mu=2.0, nu=0.01, constraint="adaptive")
    nasi.model.double()
    for value in nasi.alphas.logits.values():
        value.data = value.data.double()
    nasi.total = [total.double() for total in nasi.total]
    batches, mixtures = [], []
    inner, first = nasi._batch, nasi._value

    def batch(seed: int) -> tuple[Tensor, Tensor | None]:
        x, y = inner(seed)
        batches.append((x.double(), y))
        return batches[-1]

    def value(mixed: Mixtures, seed: int) -> Tensor:
        mixtures.append({cell: {p: {o: float(torch.as_tensor(w).detach()) for o, w in ws.items()} for p, ws in m.items()} for cell, m in mixed.items()})  # fmt: skip  # noqa: E501
        return first(mixed, seed)

    monkeypatch.setattr(nasi, "_batch", batch)
    monkeypatch.setattr(nasi, "_value", value)
    real = np.random.default_rng
    found = nasi.run()

    def trace(mixed: Mixtures, x: Tensor, y: Tensor) -> float:
        mix(nasi.model, mixed)
        loss = F.cross_entropy(nasi.model(x), y)
        gradients = torch.autograd.grad(loss, list(nasi.model.parameters()), allow_unused=True)
        return sum(float(g.square().sum()) for g in gradients if g is not None)

    from theta0.seeding import derived

    wanted = {name: torch.zeros(4, dtype=torch.float64) for name in nasi.alphas.logits}
    traces: list[float] = []
    highest = 0.0
    for t in range(3):
        generator = real(derived(0, "gumbel", t))
        (x, y), mixed = batches[t], mixtures[t]
        assert y is not None
        here = trace(mixed, x, y)
        nu = (0.01 + sum(traces)) / (t + 1)
        gradient = {}
        for decision in nasi.alphas.form.decisions:
            soft = torch.from_numpy(generator.gumbel(size=4)).softmax(dim=0)  # uniform logits shift all alike
            place = int(soft.argmax())
            pair = (int(decision.name[0]), int(decision.name[3]))
            moved = []
            for sign in (1, -1):
                weights = {decision.candidates[place]: 1 + sign * 1e-5}
                moved.append(trace({"cell": {**mixed["cell"], pair: weights}}, x, y))
            slope = (moved[0] - moved[1]) / 2e-5 * (1 - 2 * (here > nu))
            gradient[decision.name] = slope * soft[place] * (F.one_hot(torch.tensor(place), 4) - soft)
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
        highest = max(highest, norm)
        for name, g in gradient.items():
            wanted[name] += g / highest
        traces.append(here)
    assert nasi.traces == pytest.approx(traces, rel=1e-12)
    for name, total in wanted.items():
        torch.testing.assert_close(found.logits[name], total / 3, rtol=1e-4, atol=1e-7)


def test_nu() -> None:
    adaptive = search(nu=5.0)
    assert adaptive.nu() == 5
    adaptive.run()
    assert adaptive.nu() == pytest.approx((5 + sum(adaptive.traces)) / 4)
    fixed = search(nu=5.0, constraint="fixed")
    fixed.run()
    assert fixed.nu() == 5
    mean = search(nu=0.0, constraint="fixed")
    mean.step()
    drawn = [
        float(mean._value(mean.alphas.mixtures(mean.alphas.drawn(np.random.default_rng(seed))), seed).detach())
        for seed in range(60)
    ]
    assert mean.nu() == pytest.approx(np.mean(drawn), rel=0.5)


@pytest.mark.parametrize("space", sorted(SMALL))
@pytest.mark.parametrize(
    "settings",
    [{}, {"labels": "random"}, {"data": "random"}, {"score": "projected"}, {"score": "snip", "constraint": "fixed"}],
    ids=str,
)
def test_every_space_in_every_mode(space: str, settings: dict[str, Any]) -> None:
    if space == "darts":
        images: Any = ImageDataset(torch.randint(256, (20, 3, 16, 16), dtype=torch.uint8), torch.arange(20) % 4, tuple("abcd"), "")  # fmt: skip  # noqa: E501
    else:
        images = DIGITS
    found = search(space, images, steps=2, **settings)
    architecture = found.run().derive()
    assert get_space(space).encode(architecture)
    assert len(found.traces) == 2


def test_its_search_network_of_darts_pools_between_cells() -> None:
    """NASI, appendix B.2."""
    nasi = search("darts", None, labels="random")
    assert nasi.skeleton == get_space("darts").options("nasi", **SMALL["darts"])
    pools = [module for module in nasi.model.modules() if isinstance(module, nn.MaxPool2d) and module.kernel_size == 2]
    assert len(pools) == 2
    assert all(getattr(m, "stride", 1) == 1 for n, m in nasi.model.named_modules() if n.endswith("cell"))


def test_modes_without_labels_or_images() -> None:
    pixels = torch.randn(10, 1, 8, 8)
    assert search(images=pixels, labels="random").run().derive()
    assert search(images=pixels, score="projected").run().derive()
    assert search(images=None).run().derive()
    with pytest.raises(Theta0Error, match="the score trace needs labels, and these images have none; take labels=rand"):
        search(images=pixels)
    with pytest.raises(Theta0Error, match=r"floats \(N, C, H, W\), not torch.uint8"):
        search(images=torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    with pytest.raises(Theta0Error, match="a batch of 4 images is more than the 3 there are"):
        search(images=pixels[:3], labels="random").run()
    with pytest.raises(Theta0Error, match="this score needs the labels of images"):
        _ = Pass(Tiny(), X, None, 0).losses


def test_random_labels_do_not_see_the_labels() -> None:
    other = ImageDataset(DIGITS.images, (DIGITS.labels + 1) % 10, DIGITS.classes, "turned")
    assert search(labels="random").run().state().keys() == search().run().state().keys()
    one, two = (search(images=images, labels="random").run().strengths() for images in (DIGITS, other))
    assert one == two
    assert search().run().strengths() != search(images=other).run().strengths()


def test_a_search_goes_on_after_a_stop() -> None:
    whole = search(steps=4)
    wanted = whole.run().strengths()
    first = search(steps=4)
    asked = iter([False, False, True])
    first.run(lambda: next(asked))
    assert len(first.traces) == 2
    second = search(steps=4)
    second.load(first.state())
    assert second.run().strengths() == wanted
    assert second.traces == whole.traces


def test_a_searcher_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    options = {"batch": 4, "skeleton": ("channels=2", "cells=1")}
    path = str(tmp_path / "nasi")
    whole = run("nasi", objective(), Budget(1), seed=1, images=DIGITS, steps=3, **options)
    first = run("nasi", objective(), Budget(1), seed=1, images=DIGITS, steps=3, checkpoint=path, **options)
    again = run("nasi", objective(), Budget(1), seed=1, images=DIGITS, steps=3, checkpoint=path, **options)
    assert first.chosen == again.chosen == whole.chosen
    assert first.trials[0].why == again.trials[0].why
    other = {**options, "skeleton": ("channels=3", "cells=1")}
    with pytest.raises(Theta0Error, match="skeleton"):
        run("nasi", objective(), Budget(1), seed=1, images=DIGITS, steps=3, checkpoint=path, **other)
    with pytest.raises(Theta0Error, match="mu"):
        run("nasi", objective(), Budget(1), seed=1, images=DIGITS, steps=3, mu=0.5, checkpoint=path, **options)


def test_a_score_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "from theta0.gates import GateScore\n"
        "OWN = GateScore(lambda run: run.logits.square().mean(), 'mean square', labels=False)\n"
        "WRONG = 3\n"
    )
    assert isinstance(get_score(f"{path}:OWN"), GateScore)
    assert search(images=None, score=f"{path}:OWN").run().derive()
    with pytest.raises(Theta0Error, match=r"is no theta0.gates.GateScore but 3"):
        get_score(f"{path}:WRONG")
    with pytest.raises(Theta0Error, match="is called 'tracee'; did you mean trace"):
        get_score("tracee")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 0}, "steps of NASI is an integer of 1 or more, not 0"),
        ({"steps": 2.5}, "steps of NASI is an integer of 1 or more, not 2.5"),
        ({"batch": -1}, "batch of NASI is an integer of 1 or more, not -1"),
        ({"nu": -1.0}, "nu of NASI is a finite number of 0 or more, not -1.0"),
        ({"nu": math.nan}, "nu of NASI is a finite number of 0 or more, not nan"),
        ({"mu": math.inf}, "mu of NASI is a finite number"),
        ({"constraint": "both"}, "nu of NASI is adaptive or fixed, not 'both'"),
        ({"labels": "none"}, "labels of NASI are given or random, not 'none'"),
        ({"temperature": 0.0}, "temperature of NASI is finite and more than 0"),
    ],
)
def test_settings_of_nonsense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Theta0Error, match=said):
        NasiSettings(**settings)


def test_no_gradient_at_all() -> None:
    """mu = 1 beyond nu: the reward is constant."""
    with pytest.raises(
        Theta0Error, match=r"3 steps of NASI gave no gradient: with mu=1 .* raise nu, or take another mu"
    ):
        search(mu=1.0, nu=1e-30, constraint="fixed").run()


def test_a_gradient_that_is_not_finite() -> None:
    nasi = search(mu=0.0)
    with torch.no_grad():
        next(nasi.model.parameters()).fill_(math.nan)
    with pytest.raises(Theta0Error, match=r"in step 0 of NASI trace is nan .* must be finite; use normalised images"):
        nasi.run()
    with pytest.raises(Theta0Error, match="nu would be the mean of traces that are not all finite"):
        nasi._mean_of_random()


def test_the_distribution_of_another_space() -> None:
    found = search().run().state()
    with pytest.raises(Theta0Error, match="these logits are of another space or form"):
        Distribution(get_space("darts").form(), found)
    assert supernet(get_space("nasbench201"), seed=0, **SMALL["nasbench201"])
