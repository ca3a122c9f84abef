from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, batch, network
from theta0 import kernel
from theta0.errors import Theta0Error
from theta0.initialize import initialize
from theta0.kernel import SELECTIONS, Recording, coupled_gram, frozen

BATCH_NORM = {"residual", "cell"}
UNCOUPLED = sorted(set(NETWORKS) - BATCH_NORM)


def chosen(model: nn.Module, select: str) -> list[nn.Parameter]:
    found = {
        id(p): p for m in model.modules() for n, p in kernel._own_parameters(m).items() if SELECTIONS[select](m, n)
    }
    return list(found.values())


def naive_gram(outputs: list[Tensor], parameters: list[nn.Parameter]) -> Tensor:
    """All gradients, one backward pass each, kept as a Jacobian."""
    rows = []
    for output in outputs:
        found = torch.autograd.grad(output, parameters, retain_graph=True, allow_unused=True)
        rows.append(
            torch.cat(
                [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, found, strict=True)]
            )
        )
    jacobian = torch.stack(rows)
    return jacobian @ jacobian.T


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def close(ours: Tensor, naive: Tensor) -> None:
    assert ours.dtype == torch.float64
    assert float((ours - naive).norm() / naive.norm()) < 1e-12


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("name", UNCOUPLED)
def test_exact_where_samples_do_not_meet(name: str, select: str) -> None:
    model, (x, y) = without_dropout(network(name)), batch()
    with Recording(model) as recording:
        logits = model(x)
    target = logits.gather(1, y[:, None])[:, 0]
    naive = naive_gram(list(target), chosen(model, select))
    gram = recording.gram(target.sum(), SELECTIONS[select], extra=lambda: target)
    close(gram, naive)
    close(coupled_gram(model, target, SELECTIONS[select]), naive)
    close(recording.squares(target.sum(), SELECTIONS[select], extra=lambda: target), naive.diagonal())


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("name", sorted(BATCH_NORM))
def test_frozen_statistics_against_single_samples(name: str, select: str) -> None:
    """Each sample alone through a network whose normalisation has the batch's statistics as constants."""
    model, (x, y) = network(name), batch()
    reference = copy.deepcopy(model)
    for layer in reference.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0

            def keep(module: nn.BatchNorm2d, inputs: tuple[Tensor], output: Tensor) -> None:
                module.seen = torch.var_mean(inputs[0].detach(), dim=(0, 2, 3), correction=0)  # type: ignore[assignment]

            layer.register_forward_hook(keep)
    reference(x)
    for layer in reference.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_var, layer.running_mean = layer.seen  # type: ignore[misc]
    reference.eval()
    outputs = [reference(x[i : i + 1])[0, y[i]] for i in range(len(x))]
    naive = naive_gram(outputs, chosen(reference, select))
    with frozen(model), Recording(model) as recording:
        target = model(x).gather(1, y[:, None])[:, 0]
        gram = recording.gram(target.sum(), SELECTIONS[select], extra=lambda: target)
    close(gram, naive)
    assert all("forward" not in layer.__dict__ for layer in model.modules())
    assert all(layer.training for layer in model.modules())


@pytest.mark.parametrize("name", sorted(BATCH_NORM))
def test_coupled_statistics_against_the_jacobian(name: str) -> None:
    model, (x, y) = network(name), batch()
    target = model(x).gather(1, y[:, None])[:, 0]
    close(coupled_gram(model, target, SELECTIONS["all"]), naive_gram(list(target), chosen(model, "all")))


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("name", sorted(BATCH_NORM))
def test_contributions_layer_by_layer(name: str, select: str) -> None:
    """One backward of the sum; then for each layer and sample autograd's own weight gradient of that sample's part."""
    model, (x, y) = network(name), batch()
    seen: list[tuple[nn.Module, Tensor, Tensor]] = []
    handles = [
        m.register_forward_hook(lambda m, i, o: seen.append((m, i[0].detach().clone(), o)))
        for m in model.modules()
        if isinstance(m, (nn.Conv2d, nn.Linear, nn.BatchNorm2d))
    ]
    plain = copy.deepcopy(model)
    for module in model.modules():  # the naive way keeps tensors, which operations in place would change
        if isinstance(module, nn.ReLU):
            module.inplace = False
    logits = model(x)
    for handle in handles:
        handle.remove()
    gradients = torch.autograd.grad(logits.gather(1, y[:, None]).sum(), [o for _, _, o in seen])
    rows = [[] for _ in x]  # type: ignore[var-annotated]
    for (module, a, _), b in zip(seen, gradients, strict=True):
        own = [p for n, p in module.named_parameters() if SELECTIONS[select](module, n)]
        for i in range(len(x)):
            if own:
                mask = torch.zeros(len(x), *[1] * (b.dim() - 1), dtype=b.dtype)
                mask[i] = 1
                rows[i] += [g.flatten() for g in torch.autograd.grad((module(a) * b * mask).sum(), own)]
    jacobian = torch.stack([torch.cat(row) for row in rows])
    with Recording(plain) as recording:
        logits = plain(x)
    ours = recording.gram(logits.gather(1, y[:, None]).sum(), SELECTIONS[select])
    close(ours, jacobian @ jacobian.T)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3),
        nn.Conv2d(4, 6, 3, stride=2, padding=2, dilation=(2, 1)),
        nn.Conv2d(4, 6, 3, padding="same", dilation=2),
        nn.Conv2d(4, 6, (2, 3), padding="same", dilation=(2, 1)),
        nn.Conv2d(4, 6, 3, padding="valid", groups=2),
        nn.Conv2d(4, 8, 5, stride=(2, 1), padding=(2, 1), groups=4),
        nn.Conv2d(4, 6, 1, stride=2),
        nn.Conv2d(4, 6, 1, padding=1),
        nn.Conv2d(4, 6, (1, 7), padding=(0, 3)),
        nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"),
        nn.BatchNorm2d(4).eval(),
        nn.InstanceNorm2d(4, affine=True),
        nn.GroupNorm(4, 4),
        nn.LayerNorm([4, 7, 6]),
        nn.Linear(6, 3),
        nn.PReLU(4),
        nn.ConvTranspose2d(4, 3, 3),
    ],
    ids=str,
)
def test_every_layer_by_rule_or_by_fallback(layer: nn.Module, memory: torch.memory_format) -> None:
    if isinstance(layer, nn.GroupNorm) and memory == torch.channels_last:
        pytest.skip("torch 2.13 crashes in the reference: group normalisation backward, channels last")
    layer = copy.deepcopy(layer).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(4, 4, 7, 6, dtype=torch.float64).contiguous(memory_format=memory)
    with Recording(layer) as recording:
        outputs = layer(x).square().flatten(1).sum(dim=1)
    close(
        recording.gram(outputs.sum(), SELECTIONS["all"], extra=lambda: outputs),
        naive_gram(list(outputs), list(layer.parameters())),
    )


def test_one_dimensional_convolution_and_sequences() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(3, 4, 3, stride=2, padding=1, groups=1), nn.Conv1d(4, 4, 3, padding="same"), nn.Linear(5, 2)
    ).double()
    x = torch.randn(4, 3, 9, dtype=torch.float64)
    with Recording(model) as recording:
        outputs = model(x).square().flatten(1).sum(dim=1)
    close(recording.gram(outputs.sum(), SELECTIONS["all"]), naive_gram(list(outputs), list(model.parameters())))


def test_ntk_parameterization_scales_the_kernel() -> None:
    model, (x, y) = network("plain"), batch()
    initialize(model, "ntk", seed=0)
    with Recording(model) as recording:
        target = model(x).gather(1, y[:, None])[:, 0]
    for select in ("official", "all"):
        close(recording.gram(target.sum(), SELECTIONS[select]), naive_gram(list(target), chosen(model, select)))


def test_pieces_are_bounded_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(6, 4, 9, 9, dtype=torch.float64), torch.randn(6, 6, 5, 5, dtype=torch.float64)
    layer = nn.Conv2d(4, 6, 3, stride=2, padding=1)
    whole = kernel._convolution_gradient(layer, a, b)
    monkeypatch.setitem(kernel.CHUNK, "cpu", 1)
    torch.testing.assert_close(kernel._convolution_gradient(layer, a, b), whole)


def test_what_cannot_be_done_is_refused() -> None:
    x, y = batch()
    mixed = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.PReLU(4), nn.Flatten(), nn.Linear(144, 5)).double()
    with Recording(mixed) as recording:
        target = mixed(x).gather(1, y[:, None])[:, 0]
    with pytest.raises(Theta0Error, match=r"contributions of single samples to 2.weight are not defined here: 1 mixes"):
        recording.gram(target.sum(), SELECTIONS["all"], extra=lambda: target)
    recording.gram(target.sum(), SELECTIONS["official"])  # the PReLU is not asked for
    with Recording(nn.ReLU()) as empty:
        pass
    with pytest.raises(Theta0Error, match="no layer with trainable parameters"):
        empty.gram(x.sum())


def test_changes_in_place_are_seen() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    x = torch.randn(3, 4)
    with Recording(model) as recording:
        out = model(x)
    recording.calls[0].input.add_(1)
    with pytest.raises(Theta0Error, match="changed in place after 0 had read it"):
        recording.gram(out.sum(), SELECTIONS["all"], extra=lambda: out.sum(1))


def test_hooks_are_gone_after_an_error() -> None:
    model = network("plain")
    with pytest.raises(RuntimeError), Recording(model):
        model(torch.zeros(1, 4, 8, 8))
    assert not any(module._forward_hooks for module in model.modules())
