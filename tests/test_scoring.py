"""What is true of every score: validity, nothing changed, order of samples, one network or many."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, batch, network
from theta0.errors import Theta0Error
from theta0.scoring import USUAL, Records, chosen, score

GRADIENTS = ["grad", "grad:paper", "snip", "snip:paper", "grasp", "fisher", "gradsign"]
KERNELS = ["trace", "knas", "kappa", "lambda_min", "frobenius", "eigen_bound"]


def state(model: nn.Module) -> dict[str, Any]:
    return {
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
        "gradients": {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()},
        "modes": [module.training for module in model.modules()],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()],
        "own": hash(str([sorted(module.__dict__) for module in model.modules()])),
        "flags": [p.requires_grad for p in model.parameters()],
        "random": torch.get_rng_state(),
        "grad": torch.is_grad_enabled(),
        "tf32": (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32),
    }


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_the_network_comes_back_as_it_went_in(name: str) -> None:
    model, (x, y) = network(name), batch()
    for i, module in enumerate(model.modules()):
        module.training = bool(i % 2)
    for i, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, 3.0) if i % 2 else None
    before, images = state(model), x.clone()
    with torch.no_grad():
        score(model, x, y, "all")
    torch.testing.assert_close(state(model), before, rtol=0, atol=0)
    assert torch.equal(x, images)


class Breaks(nn.Module):
    """Fails in its second call."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.calls = network("residual"), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > 1:
            raise RuntimeError("boom")
        return self.body(x)


def test_the_network_comes_back_after_an_exception() -> None:
    model = Breaks()
    before = state(model)
    with pytest.raises(RuntimeError, match="boom"):
        score(model, *batch(), ["snip", "zico"])
    torch.testing.assert_close(state(model), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_order_of_samples_does_not_matter(name: str) -> None:
    model, (x, y) = network(name), batch(8)
    specs = [f"{n}:{v}" for n, v, _ in chosen("all") if n not in ("latency", "zico", "meco", "aznas")]
    # Halves of the batch, a noise image and random signs know an order; a near-singular covariance magnifies rounding.
    first, second = score(model, x, y, specs), score(model, x.flip(0), y.flip(0), specs)
    for one, other in zip(first, second, strict=True):
        assert one.validity == other.validity
        if one.validity == "ok":
            rough = 1e-3 if one.name in ("gradsign", "jacob_cov") else 1e-6
            assert other.value == pytest.approx(one.value, rel=rough), one.name


def test_many_networks_are_scored_as_one_by_one() -> None:
    models, (x, y) = [network("mlp"), network("cell")], batch()
    together = score(models, x, y)
    alone = [score(model, x, y) for model in models]
    assert [r.value for r in together] == [r.value for records in alone for r in records]
    assert {r.model for r in together} == {"0", "1"}


def test_records_say_how_they_were_made() -> None:
    records = score(network("mlp"), *batch(), ["kappa:frozen"], seed=5)
    (record,) = records
    assert (record.name, record.variant, record.direction) == ("kappa", "frozen", "lower")
    assert (record.dtype, record.batch, record.seed, record.validity) == ("float64", 6, 5, "ok")
    assert record.seconds > 0
    assert records.value("kappa") == record.value
    with pytest.raises(Theta0Error, match="0 records are called 'kapa'; did you mean kappa"):
        records.value("kapa")


def test_the_usual_scores_and_their_baseline() -> None:
    names = [record.name for record in score(network("cell"), *batch())]
    assert names == [*USUAL, "parameters", "flops"]


def test_table_frame_and_files(tmp_path: Path) -> None:
    records = score(network("mlp"), *batch(), ["snip", "naswot"])
    assert "snip" in str(records).splitlines()[1]
    assert records.frame()["name"].to_list() == ["snip", "naswot"]
    for suffix in (".csv", ".parquet"):
        path = tmp_path / f"scores{suffix}"
        records.save(path)
        read = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
        assert read["value"].to_list() == [r.value for r in records]
    with pytest.raises(Theta0Error, match=r"not to 'scores\.txt'"):
        records.save(tmp_path / "scores.txt")
    assert str(Records()).startswith("score")


def values(model: nn.Module, x: Tensor, y: Tensor, specs: list[str], **more: Any) -> dict[str, tuple[float, str]]:
    return {f"{r.name}:{r.variant}": (r.value, r.validity) for r in score(model, x, y, specs, **more)}


def test_dead_network() -> None:
    """Weights of zero behind the first layer: no gradient gets through, and nothing is called ok."""
    model, (x, y) = network("plain"), batch()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = values(model, x, y, ["grad", "snip", "grasp", "trace", "kappa", "lambda_min", "synflow", "zico"])
    assert {validity for _, validity in found.values()} == {"dead"}
    assert found["kappa:official"][0] == math.inf
    assert found["snip:zerocost"][0] == 0
    assert values(model, x, y, ["jacob_cov"])["jacob_cov:zerocost"][1] == "dead"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_duplicated_image_is_singular(name: str, dtype: torch.dtype) -> None:
    model, (x, y) = network(name), batch(8)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0
    x[5], y[5] = x[2], y[2]
    found = values(model, x, y, ["kappa", "lambda_min", "kappa:frozen"], dtype=dtype)
    assert found["kappa:official"] == (math.inf, "singular")
    assert found["lambda_min:official"] == (0.0, "singular")
    assert found["kappa:frozen"] == (math.inf, "singular")
    if name in ("mlp", "cell"):
        assert values(model, x, y, ["naswot"])["naswot:paper"] == (-math.inf, "singular")


def test_constant_images_are_singular() -> None:
    model, (_, y) = network("cell"), batch()
    found = values(model, torch.ones(6, 3, 8, 8, dtype=torch.float64), y, ["kappa", "naswot"])
    assert found["kappa:official"][1] in ("singular", "dead")
    assert found["naswot:paper"][1] == "singular"


def test_weights_that_are_not_finite() -> None:
    model, (x, y) = network("cell"), batch()
    with torch.no_grad():
        next(model.parameters())[0, 0, 0, 0] = math.nan
    for value, validity in values(model, x, y, [*GRADIENTS, *KERNELS]).values():
        assert math.isnan(value)
        assert validity == "overflow"


def test_overflow_in_half_precision() -> None:
    model, (x, y) = network("plain"), batch()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(300)
    found = values(model, x, y, ["snip", "kappa"], dtype=torch.float16)
    assert {validity for _, validity in found.values()} == {"overflow"}
    assert all(validity == "ok" for _, validity in values(model, x, y, ["snip", "kappa"]).values())


def test_synflow_beyond_float64() -> None:
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(192, 8)]
    for _ in range(120):
        layers += [nn.Linear(8, 8), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(8, 5)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(100.0)
    found = values(model, *batch(), ["synflow:log", "synflow:zerocost"])
    assert found["synflow:zerocost"] == (math.inf, "overflow")
    value, validity = found["synflow:log"]
    assert validity == "ok"
    # All weights are 100: a hidden layer multiplies by 800; biases add about 1/800 of what comes in.
    assert value == pytest.approx(120 * math.log(800), rel=0.05)


class Says(nn.Module):
    """Gives whatever a function makes of the logits."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self.body, self.make = network("mlp"), make

    def forward(self, x: Tensor) -> Any:
        return self.make(self.body(x))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda out: (out, out), "returns a tuple"),
        (lambda out: {"logits": out}, "returns a dict"),
        (lambda out: out[:, :, None], r"shape \(6, 5, 1\)"),
        (lambda out: out[:3], r"shape \(3, 5\)"),
        (lambda out: out.sum(), r"shape \(\)"),
        (lambda out: out.detach(), "do not depend on any trainable parameter"),
    ],
)
def test_wrong_outputs_are_named(make: Any, words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        score(Says(make), *batch(), ["snip"])


class Learns(nn.Module):
    """Changes its own weights in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network("mlp")

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            next(self.body.parameters()).mul_(0.9)
        return self.body(x)


X, Y = batch()


@pytest.mark.parametrize(
    ("model", "x", "y", "words"),
    [
        (nn.Flatten(), X, Y, "no trainable parameters"),
        (Learns(), X, Y, "changes its own parameters in forward"),
        (network("mlp"), X, Y + 1, "labels run from 0 to 4 for 5 logits; found 5"),
        (network("mlp"), X, Y - 1, "labels begin at 0; found -1"),
        (network("mlp"), X, Y[:3], r"one for each of the 6 samples; these are \(3,\)"),
        (network("mlp"), X, Y.float(), "labels are integers"),
        (network("mlp"), X[:0], Y[:0], "at least one sample"),
        (network("mlp"), X.long(), Y, "floating point tensor"),
        (network("mlp"), X * math.nan, Y, "not finite"),
    ],
)
def test_bad_input_is_named(model: nn.Module, x: Tensor, y: Tensor, words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        score(model, x, y, ["snip"])


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (["snipp"], "no score is called 'snipp'; did you mean snip"),
        (["snip:official"], "the score snip has no variant 'official'"),
        ([], "no score was asked for"),
    ],
)
def test_unknown_scores_get_the_nearest(request_: list[str], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        chosen(request_)


def test_a_batch_of_one_is_refused_where_it_has_no_meaning() -> None:
    x, y = batch(1)
    found = values(network("mlp"), x, y, ["snip", "kappa", "zico"])
    assert found["snip:zerocost"][1] == "ok"
    assert found["kappa:official"][1] == found["zico:paper"][1] == "refused"
    (record,) = score(network("mlp"), x, y, ["kappa"])
    assert "at least two samples; this batch has one" in record.note


def test_one_class_only_is_scored() -> None:
    x, y = batch()
    assert all(v == "ok" for _, v in values(network("cell"), x, torch.zeros_like(y), ["snip", "kappa"]).values())


def test_operations_in_place_on_the_images() -> None:
    """A network that changes its input: the images stay as they are, and every pass sees the same ones."""
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 5)).double()
    plain = nn.Sequential(nn.ReLU(), *list(model)[1:])
    (x, y), specs = batch(), ["snip", "zico", "kappa:frozen", "meco", "naswot"]
    images = x.clone()
    first, second = score(model, x, y, specs), score(plain, images, y, specs)
    assert torch.equal(x, images)
    assert [r.value for r in first] == [r.value for r in second]


def test_dropout_is_off_and_other_randomness_is_seeded() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(192, 8), nn.RReLU(), nn.Linear(8, 5)).double()
    one = score(model, *batch(), ["snip"], seed=1).value("snip")
    assert one == score(model, *batch(), ["snip"], seed=1).value("snip")
    assert one != score(model, *batch(), ["snip"], seed=2).value("snip")


def test_own_loss() -> None:
    model, (x, y) = network("mlp"), batch()

    def squared(logits: Tensor, labels: Tensor) -> Tensor:
        return (logits - torch.nn.functional.one_hot(labels, 5)).square().sum(dim=1)

    squared_value = score(model, x, y, ["grad:paper"], loss=squared).value("grad")
    loss = squared(model(x), y).mean()
    norm = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]).norm()
    assert squared_value == pytest.approx(float(norm), rel=1e-12)


def test_float32_is_near_float64() -> None:
    model, (x, y) = network("cell"), batch(16)
    exact = values(model, x, y, ["grad", "snip", "grasp", "trace", "kappa"])
    single = values(model, x, y, ["grad", "snip", "grasp", "trace", "kappa"], dtype=torch.float32)
    for name, (value, _) in exact.items():
        assert single[name][0] == pytest.approx(value, rel=2e-2), name
    assert next(model.parameters()).dtype == torch.float64


def test_group_normalisation_of_the_images() -> None:
    """Channels last, this crashes torch 2.13's backward pass; it must not be scored in that format."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.GroupNorm(1, 3), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    x, y = torch.randn(6, 3, 8, 8), torch.arange(6) % 5
    assert all(record.validity == "ok" for record in score(model, x, y, ["grad", "grasp", "trace", "kappa"]))
