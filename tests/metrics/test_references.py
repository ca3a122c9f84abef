"""Every score and variant against a naive float64 version: a copy of the network for each, loops, full Jacobians."""

from __future__ import annotations

import copy
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.networks import NETWORKS, batch, network
from tests.test_kernel import chosen, naive_gram, without_dropout
from theta0.evidence import Evidence
from theta0.metrics import metrics
from theta0.metrics.aznas import combined
from theta0.scoring import chosen as all_scores
from theta0.scoring import score

DENSE = (nn.Conv1d, nn.Conv2d, nn.Linear)
NAMES = [name for name in sorted(NETWORKS) if name != "vit"]  # its attention has fused operations; see below
RECTIFIED = ["mlp", "plain", "residual", "shared", "cell"]


def prepared(name: str) -> nn.Module:
    return without_dropout(network(name)).train()


def weights(model: nn.Module) -> list[nn.Parameter]:
    return [m.weight for m in model.modules() if isinstance(m, DENSE)]


def gradients(model: nn.Module, parameters: list[nn.Parameter], x: Tensor, y: Tensor) -> list[Tensor]:
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def hessian_product(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """theta . H g by central differences of the gradient along g."""
    of = weights(model)
    first = gradients(model, of, x, y)
    step = 1e-5 / math.sqrt(sum(float(g.square().sum()) for g in first))

    def at(sign: float) -> list[Tensor]:
        moved = copy.deepcopy(model)
        with torch.no_grad():
            for p, g in zip(weights(moved), first, strict=True):
                p.add_(sign * step * g)
        return gradients(moved, weights(moved), x, y)

    differences = [(plus - minus) / (2 * step) for plus, minus in zip(at(1), at(-1), strict=True)]
    return sum(float((p.detach() * d).sum()) for p, d in zip(of, differences, strict=True))


def ours(name: str, spec: str, size: int = 6) -> float:
    records = score(prepared(name), *batch(size), [spec])
    assert records[0].validity == "ok", records[0]
    return records[0].value


@pytest.mark.parametrize("name", NAMES)
def test_grad_and_snip(name: str) -> None:
    model, (x, y) = prepared(name), batch()
    of = weights(model)
    found = gradients(model, of, x, y)
    assert ours(name, "grad:zerocost") == pytest.approx(sum(float(g.norm()) for g in found), rel=1e-12)
    assert ours(name, "snip") == pytest.approx(
        sum(float((p.detach() * g).abs().sum()) for p, g in zip(of, found, strict=True)), rel=1e-12
    )
    every = list(model.parameters())
    found = gradients(model, every, x, y)
    norm = math.sqrt(sum(float(g.square().sum()) for g in found))
    assert ours(name, "grad:paper") == pytest.approx(norm, rel=1e-12)
    assert ours(name, "trace_estimate:batch") == pytest.approx(norm**2, rel=1e-12)
    signed = sum(float((p.detach() * g).sum()) for p, g in zip(every, found, strict=True))
    assert ours(name, "snip:paper") == pytest.approx(abs(signed), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_grasp(name: str) -> None:
    expected = hessian_product(prepared(name), *batch())
    assert ours(name, "grasp:absolute") == pytest.approx(abs(expected), rel=2e-5)
    assert ours(name, "grasp:zerocost") == pytest.approx(-expected, rel=2e-5)


@pytest.mark.parametrize("name", ["mlp", "plain", "shared"])
def test_grasp_of_the_paper(name: str) -> None:
    """Per-sample Hessians, as dense matrices over all parameters, on a network small enough for them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2), nn.Tanh(), nn.Linear(2, 5)).double()
    x, y = batch(3)
    shapes = [p.shape for p in model.parameters()]
    theta = torch.cat([p.detach().flatten() for p in model.parameters()])

    def loss(flat: Tensor, i: int) -> Tensor:
        parts = torch.split(flat, [math.prod(s) for s in shapes])
        named = {n: v.reshape(s) for (n, _), v, s in zip(model.named_parameters(), parts, shapes, strict=True)}
        return F.cross_entropy(torch.func.functional_call(model, named, (x[i : i + 1],)), y[i : i + 1])

    total = 0.0
    for i in range(3):
        hessian = torch.autograd.functional.hessian(lambda flat, i=i: loss(flat, i), theta)
        gradient = torch.autograd.functional.jacobian(lambda flat, i=i: loss(flat, i), theta)
        total += float(theta @ hessian @ gradient)
    assert score(model, x, y, ["grasp:paper"])[0].value == pytest.approx(abs(total) / 3, rel=1e-10)


def test_free_oracle_of_scale_invariant_weights() -> None:
    """theta . H g = -|g|^2 over weights that batch normalisation makes scale-invariant (up to its epsilon)."""
    model, (x, y) = prepared("residual"), batch(12)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-12
    invariant = {id(model.stem[0].weight), id(model.body[0].weight), id(model.body[3].weight)}
    with Evidence(model, x, y) as e:
        products = dict(zip([id(w.value) for w in e.weights], e.hessian_gradient, strict=True))
        for weight in e.weights:
            g = e.gradient[id(weight.value)]
            left = float((weight.value * products[id(weight.value)]).sum().detach())
            right = -float(g.square().sum().detach())
            assert (left == pytest.approx(right, rel=1e-6)) == (id(weight.value) in invariant)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "plain"])
def test_fisher(name: str) -> None:
    model, (x, y) = prepared(name), batch()
    seen: list[tuple[nn.Module, Tensor]] = []
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
        if isinstance(module, DENSE):

            def keep(m: nn.Module, i: object, out: Tensor) -> Tensor:
                seen.append((m, out))
                return out.clone()

            module.register_forward_hook(keep)
    loss = F.cross_entropy(model(x), y)
    found = torch.autograd.grad(loss, [out for _, out in seen])
    total = 0.0
    for (module, out), g in zip(seen, found, strict=True):
        for channel in range(out.shape[1]):
            sums = [float((out[i, channel].detach() * g[i, channel]).sum()) for i in range(len(x))]
            total += 0.5 * float(np.mean(np.square(sums))) * module.weight[0].numel()
    assert ours(name, "fisher") == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("name", ["mlp", "plain", "shared", "lstm"])
def test_gradsign_and_sample_norms(name: str) -> None:
    model, (x, y) = prepared(name), batch()
    rows = []
    for i in range(len(x)):
        rows.append(
            torch.cat([g.flatten() for g in gradients(model, list(model.parameters()), x[i : i + 1], y[i : i + 1])])
        )
    jacobian = torch.stack(rows)
    assert ours(name, "gradsign") == pytest.approx(float(jacobian.sign().sum(0).abs().sum()), rel=1e-3)
    assert ours(name, "trace_estimate:sum") == pytest.approx(float(jacobian.norm(dim=1).sum()), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "kind", "select"),
    [
        (name, kind, select)
        for name in sorted(NETWORKS)
        for kind, select in (
            ("official", "official"),
            ("tenas", "every_weight"),
            ("logits", "official"),
            ("loss", "official"),
        )
        if kind == "tenas" or name not in ("residual", "cell")  # tests/test_kernel.py has contributions
    ],
)
def test_ntk_scores_where_modes_agree(name: str, kind: str, select: str) -> None:
    """On networks without batch normalisation the Gram matrix has one meaning; coupled mode has it everywhere."""
    model, (x, y) = prepared(name), batch()
    logits = model(x)
    outputs = {
        "official": [logits.gather(1, y[:, None])[:, 0]],
        "tenas": [logits.sum(dim=1)],
        "logits": list(logits.unbind(dim=1)),
        "loss": [F.cross_entropy(logits, y, reduction="none")],
    }[kind]
    gram = sum(naive_gram(list(out), chosen(model, select)) for out in outputs).numpy()  # type: ignore[union-attr]
    values = np.linalg.eigvalsh(gram)
    n = len(x)
    assert ours(name, f"trace:{kind}") == pytest.approx(math.sqrt(values.sum() / n), rel=1e-10)
    assert ours(name, f"knas:{kind}") == pytest.approx(math.sqrt(abs(gram.mean())), rel=1e-9)
    assert ours(name, f"frobenius:{kind}") == pytest.approx(np.linalg.norm(gram), rel=1e-10)
    assert ours(name, f"eigen_bound:{kind}") == pytest.approx(np.trace(gram) / 192, rel=1e-10)
    assert ours(name, f"kappa:{kind}") == pytest.approx(values[-1] / values[0], rel=1e-6)
    assert ours(name, f"lambda_min:{kind}") == pytest.approx(values[0], rel=1e-6)


@pytest.mark.parametrize("name", ["residual", "cell"])
def test_knas_is_the_norm_of_the_mean_contribution(name: str) -> None:
    """A fact of the kernel: the mean of K is the squared norm of the mean gradient, also for contributions."""
    model, (x, y) = prepared(name), batch()
    of = chosen(model, "official")
    target = model(x).gather(1, y[:, None]).mean()
    norm = math.sqrt(sum(float(g.square().sum()) for g in torch.autograd.grad(target, of)))
    assert ours(name, "knas") == pytest.approx(norm, rel=1e-10)


def patterns(model: nn.Module, x: Tensor) -> np.ndarray:  # type: ignore[type-arg]
    """Signs of all inputs of rectifiers, (N, units), by replacing torch's function."""
    seen: list[np.ndarray] = []  # type: ignore[type-arg]
    relu = torch.relu

    def noting(value: Tensor, *rest: object, **more: object) -> Tensor:
        seen.append((value.detach().flatten(1) > 0).numpy())
        return relu(value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "relu", noting)
        patch.setattr(F, "relu", noting)
        model(x)
    return np.concatenate(seen, axis=1)


@pytest.mark.parametrize("name", RECTIFIED)
def test_scores_of_activation_patterns(name: str) -> None:
    x, _ = batch()
    codes = patterns(prepared(name), x)
    agree = np.array([[float((a == b).sum()) for b in codes] for a in codes])
    assert ours(name, "naswot") == pytest.approx(float(np.linalg.slogdet(agree)[1]), rel=1e-10)
    assert ours(name, "regions") == len({tuple(row) for row in codes.tolist()})
    assert ours(name, "swap") == len({tuple(column) for column in codes.T.tolist()})


def test_patterns_of_more_samples_than_a_word_has_bits() -> None:
    codes = patterns(prepared("mlp"), batch(130)[0])
    assert ours("mlp", "swap", 130) == len({tuple(column) for column in codes.T.tolist()})


@pytest.mark.parametrize("name", NAMES)
def test_jacobian_covariance(name: str) -> None:
    model, (x, _) = prepared(name), batch()
    x = x.requires_grad_(True)
    (found,) = torch.autograd.grad(model(x).sum(), x)
    values = np.linalg.eigvalsh(np.corrcoef(found.reshape(6, -1).numpy()))
    values = np.clip(values, 0, None) + 1e-5
    expected = -float(np.sum(np.log(values) + 1 / values))
    assert ours(name, "jacob_cov") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["mlp", "plain", "residual", "cell"])
def test_synflow(name: str) -> None:
    model = prepared(name)

    def strip(module: nn.Module) -> None:
        for child_name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(module, child_name, nn.Identity())
            strip(child)

    strip(model)
    with torch.no_grad():
        for p in model.parameters():
            p.abs_()
    model.zero_grad()
    model(torch.ones(1, 3, 8, 8, dtype=torch.float64)).sum().backward()
    total = sum(float((p.detach() * p.grad).abs().sum()) for p in weights(model) if p.grad is not None)
    assert ours(name, "synflow:zerocost") == pytest.approx(total, rel=1e-10)
    assert ours(name, "synflow:log") == pytest.approx(math.log(total), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_zico(name: str) -> None:
    model, (x, y) = prepared(name), batch()
    of = weights(model)
    halves = [gradients(model, of, x[:3], y[:3]), gradients(model, of, x[3:], y[3:])]
    total = 0.0
    for pair in zip(*halves, strict=True):
        array = np.stack([g.numpy().reshape(-1) for g in pair])
        deviation = array.std(axis=0)
        kept = deviation > 0
        total += math.log(float(np.sum(np.abs(array).mean(axis=0)[kept] / deviation[kept])))
    assert ours(name, "zico") == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("spec", ["fisher", "meco"])
def test_values_lost_to_operations_in_place_are_refused(spec: str) -> None:
    (record,) = score(prepared("plain"), *batch(), [spec])  # a convolution with nothing between it and an in-place ReLU
    assert record.validity == "refused"
    assert math.isnan(record.value)
    assert "output of stem.0 was changed in place and is lost; use inplace=False" in record.note


@pytest.mark.parametrize("name", ["residual", "cell", "shared"])
def test_meco(name: str) -> None:
    model, (x, _) = prepared(name), batch()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    maps: list[np.ndarray] = []  # type: ignore[type-arg]
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda m, i, out: maps.append(out.detach()[0].clone().numpy()))
    model(noise)
    total = 0.0
    for value in maps:
        if value.ndim == 3:
            total += float(np.linalg.eigvalsh(np.corrcoef(value.reshape(len(value), -1)))[0])
    assert ours(name, "meco") == pytest.approx(total, rel=1e-6, abs=1e-9)


def test_knas_series() -> None:
    model, (x, y) = prepared("residual"), batch(150)
    of = [p for p in model.parameters() if p.numel() >= 50][:11]
    series = []
    for i in range(50):
        found = gradients(model, of, x[3 * i : 3 * i + 3], y[3 * i : 3 * i + 3])
        series.append([float(value) for g in found for value in g.flatten()[:50]])
    array = np.array(series)
    total = 0.0
    for entry in range(array.shape[1]):
        early, late = array[:25, entry], array[25:, entry]
        total += float(np.dot(early - early.mean(), late - late.mean())) / 2500
    assert ours("residual", "knas:series", size=150) == pytest.approx(total, rel=1e-9)
    (record,) = score(model, x[:99], y[:99], ["knas:series"])
    assert (record.validity, "at least 100, not 99" in record.note) == ("refused", True)


@pytest.mark.parametrize("name", ["plain", "residual", "cell"])
def test_zen(name: str) -> None:
    model, (x, _) = prepared(name), batch()
    generator = torch.Generator().manual_seed(0)

    def noise(shape: torch.Size) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    dense = {id(m.weight) for m in model.modules() if isinstance(m, DENSE)}
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(noise(p.shape) if id(p) in dense else p * 0 + float(any(p is m.weight for m in norms)))
    seen: list[Tensor] = []
    spreads: dict[nn.Module, float] = {}
    for m in model.modules():
        if not list(m.children()):
            m.register_forward_hook(lambda m, i, out: seen.append(out.clone()) if out.dim() == 4 else None)
    for m in norms:
        m.register_forward_pre_hook(
            lambda m, i: spreads.update({m: float(i[0].detach().var((0, 2, 3), correction=0).mean())})
        )
    distances = []
    for _ in range(4):
        start = noise(x.shape)
        results = []
        for images in (start + 0.01 * noise(x.shape), start):
            seen.clear()
            model(images)
            results.append(seen[-1].detach())
        distances += [float((a - b).square().sum().sqrt()) for a, b in zip(*results, strict=True)]
    total = math.log(np.mean(distances)) + sum(0.5 * math.log(value + 1e-5) for value in spreads.values())
    assert ours(name, "zen") == pytest.approx(total, rel=1e-9)


def test_zen_of_a_perceptron_is_refused() -> None:
    (record,) = score(prepared("mlp"), *batch(), ["zen"])
    assert (record.validity, "gives any" in record.note) == ("refused", True)


def test_aznas() -> None:
    model, (x, _) = prepared("cell"), batch()
    blocks = [x]
    for child in list(model)[:-1]:
        blocks.append(child(blocks[-1]))
    blocks = blocks[1:]
    entropies = []
    for block in blocks:
        values = np.linalg.eigvalsh(np.cov(block.detach().transpose(0, 1).flatten(1).numpy(), bias=True)).clip(0)
        share = values[values > 0] / values.sum()
        entropies.append(-float((share * np.log(share)).sum()))
    assert ours("cell", "aznas:expressivity") == pytest.approx(sum(entropies), rel=1e-9)
    assert ours("cell", "aznas:progressivity") == pytest.approx(float(np.diff(entropies).min()), rel=1e-8)
    generator = torch.Generator().manual_seed(0)
    terms = []
    for before, after in itertools.pairwise(blocks):
        signs = torch.randint(2, after.shape, generator=generator).double() * 2 - 1
        (back,) = torch.autograd.grad(after, before, signs, retain_graph=True)
        stride = before.shape[2] // after.shape[2]
        total = np.zeros((back.shape[1] * stride**2, after.shape[1]))
        for n in range(len(x)):
            for i in range(after.shape[2]):
                for j in range(after.shape[3]):
                    patch = back[n, :, i * stride : (i + 1) * stride, j * stride : (j + 1) * stride]
                    total += np.outer(patch.flatten().numpy(), signs[n, :, i, j].numpy())
        norm = float(np.linalg.norm(total / (len(x) * after[0, 0].numel()), 2))
        terms.append(2 - norm - 1 / norm)
    assert ours("cell", "aznas:trainability") == pytest.approx(float(np.mean(terms)), rel=1e-9)


def test_aznas_needs_blocks() -> None:
    for name, said in (("residual", "children of a nn.Sequential"), ("mlp", "feature maps")):
        (record,) = score(prepared(name), *batch(), ["aznas:trainability"])
        assert (record.validity, said in record.note) == ("refused", True)


def test_aznas_ranks_its_parts() -> None:
    first, second = np.array([1.0, 2.0, 2.0, math.nan]), np.array([4.0, 3.0, 2.0, 1.0])
    expected = np.log([2 / 4, 4 / 4, 4 / 4, 1 / 4]) + np.log([4 / 4, 3 / 4, 2 / 4, 1 / 4])
    assert combined([first, second]) == pytest.approx(expected)


def test_every_score_has_a_reference_here() -> None:
    """The names that this file, or another test, compares; a new score is missing until it has a test."""
    elsewhere = {"parameters", "flops", "latency"}
    compared = set(Path(__file__).read_text(encoding="utf-8").split('"'))
    for name in metrics.names():
        assert name in elsewhere or any(text.split(":")[0] == name or f"{name}:" in text for text in compared), name
    assert all_scores("all")
