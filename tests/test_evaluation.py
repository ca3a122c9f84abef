"""Against loops over single images in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.trainings import cell, digits
from theta0.data.sampling import normalize
from theta0.errors import DivergedError, Theta0Error
from theta0.evaluation import BINS, Evaluation, Tally, evaluate


def naive(logits: Tensor, labels: Tensor) -> Evaluation:
    values, classes = logits.double().numpy(), logits.shape[1]
    confusion = [[0] * classes for _ in range(classes)]
    nll, hits, bins = 0.0, 0, [[] for _ in range(BINS)]
    for row, label in zip(values, labels.tolist(), strict=True):
        probabilities = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        predicted = int(row.argmax())
        confusion[label][predicted] += 1
        hits += predicted == label
        nll -= math.log(probabilities[label])
        for i in range(BINS):
            if i / BINS < probabilities.max() <= (i + 1) / BINS:
                bins[i].append((probabilities.max(), predicted == label))
    assert sum(map(len, bins)) == len(labels)
    gaps = [len(one) * abs(np.mean([c for c, _ in one]) - np.mean([h for _, h in one])) for one in bins if one]
    count = len(labels)
    return Evaluation(count, 100 * hits / count, nll / count, 100 * sum(gaps) / count, tuple(map(tuple, confusion)))


def close(found: Evaluation, wanted: Evaluation, tolerance: float = 1e-12) -> None:
    assert (found.images, found.confusion) == (wanted.images, wanted.confusion)
    numbers = (found.accuracy, found.nll, found.ece)
    assert numbers == pytest.approx((wanted.accuracy, wanted.nll, wanted.ece), rel=tolerance)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_against_loops(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, labels = scale * torch.randn(200, 7, generator=generator), torch.randint(7, (200,), generator=generator)
    tally = Tally(7)
    for part in range(0, 200, 64):
        tally.add(logits[part : part + 64], labels[part : part + 64])
    close(tally.evaluation(), naive(logits, labels))


def test_by_hand() -> None:
    """Two of three right, with confidences 0.6 (wrong), 0.8 and 0.8."""
    tally = Tally(2)
    tally.add(torch.tensor([[0.6, 0.4], [0.2, 0.8], [0.2, 0.8]], dtype=torch.float64).log(), torch.tensor([1, 1, 1]))
    found = tally.evaluation()
    assert found.confusion == ((0, 0), (1, 2))
    assert found.accuracy == pytest.approx(200 / 3)
    assert found.error == pytest.approx(100 / 3)
    assert found.nll == pytest.approx(-(math.log(0.4) + 2 * math.log(0.8)) / 3)
    assert found.ece == pytest.approx(100 * (0.6 + 2 * 0.2) / 3)


@pytest.mark.parametrize("batch", [7, 100, 1000])
def test_a_network_on_a_data_set(batch: int) -> None:
    train_set, validation = digits()
    model = cell()
    normalization = train_set.mean_std()
    for i, module in enumerate(model.modules()):
        module.training = bool(i % 2)
    modes, random = [module.training for module in model.modules()], torch.get_rng_state()
    found = evaluate(model, validation, normalization=normalization, batch=batch)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    with torch.no_grad():
        logits = model.eval()(normalize(validation.images, normalization))
    close(found, naive(logits, validation.labels), 1e-5)


def test_bf16_is_near() -> None:
    train_set, validation = digits()
    model, normalization = cell(), train_set.mean_std()
    exact = evaluate(model, validation, normalization=normalization)
    rounded = evaluate(model, validation, normalization=normalization, precision="bf16")
    assert rounded.nll != exact.nll
    assert rounded.nll == pytest.approx(exact.nll, rel=0.05)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_finite(value: float) -> None:
    tally = Tally(3)
    tally.add(torch.tensor([[0.0, 1.0, value], [0.0, 1.0, 2.0]]), torch.tensor([0, 1]))
    with pytest.raises(DivergedError, match="not all finite"):
        tally.evaluation()


def test_a_network_of_other_classes() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(Theta0Error, match=r"need logits \(100, 10\), but the network gives a tensor \(100, 3\)"):
        evaluate(model, digits()[1], normalization=digits()[0].mean_std())
    with pytest.raises(Theta0Error, match="at least one image"):
        Tally(3).evaluation()
