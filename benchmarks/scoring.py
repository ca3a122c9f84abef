"""Our scores in one pass against separate naive passes, on the same networks in the same run; errors of each dtype.

The naive way is what the zero-cost code and its heirs do: for each score a copy of the network and a run of its own;
for the NTK all gradients as rows, then their products. Both ways are checked against each other before they are timed.
"""

from __future__ import annotations

import argparse
import copy
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.memory import keep_blocks
from theta0.pool import score_pool
from theta0.scoring import score
from theta0.space import get_space
from theta0.spaces.nasbench201 import NASBench201

sys.path.insert(0, str(Path(__file__).parent))
from record import RESULTS, save

SCORES = ["grad", "snip", "grasp", "fisher", "synflow", "naswot", "jacob_cov", "trace", "kappa"]
DENSE = (nn.Conv2d, nn.Linear)


def _weights(model: nn.Module) -> list[nn.Parameter]:
    return [p for m in model.modules() if isinstance(m, DENSE) for n, p in m.named_parameters() if n == "weight"]


def _gradients(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    torch.autograd.backward(F.cross_entropy(model(x), y))
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in _weights(model)]


def naive_grad(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Sum of the layers' gradient norms."""
    return float(sum(g.norm() for g in _gradients(model, x, y)))


def naive_snip(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Sum of absolute products of weights and gradients."""
    found = _gradients(model, x, y)
    return float(sum((p.detach() * g).abs().sum() for p, g in zip(_weights(model), found, strict=True)))


def naive_grasp(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Two forward passes, a plain and a second-order backward pass, as published."""
    values = _weights(model)
    first = torch.autograd.grad(F.cross_entropy(model(x), y), values, allow_unused=True)
    second = torch.autograd.grad(F.cross_entropy(model(x), y), values, create_graph=True, allow_unused=True)
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    torch.autograd.backward(torch.stack([(a * b).sum() for a, b in pairs]).sum())
    return abs(float(sum((p.detach() * p.grad).sum() for p in values if p.grad is not None)))


def naive_fisher(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Hooks on every layer, then one backward pass."""
    seen: list[tuple[nn.Module, Tensor]] = []

    def keep(module: nn.Module, inputs: tuple[Tensor], out: Tensor) -> None:
        out.retain_grad()
        seen.append((module, out))

    for module in model.modules():
        if isinstance(module, DENSE):
            module.register_forward_hook(keep)
    torch.autograd.backward(F.cross_entropy(model(x), y))
    total = 0.0
    for module, out in seen:
        if out.grad is not None:
            product = out.detach() * out.grad
            channels = product.flatten(2).sum(dim=2) if product.dim() > 2 else product
            weight: Any = module.weight
            total += float(0.5 * channels.square().mean(dim=0).sum()) * weight[0].numel()
    return total


def naive_synflow(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Float64, absolute weights, no normalisation."""
    model = model.double()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.forward = lambda input: input  # type: ignore[method-assign]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    torch.autograd.backward(model(torch.ones(1, *x.shape[1:], dtype=torch.float64, device=x.device)).sum())
    return float(np.log(float(sum((p.detach() * p.grad).abs().sum() for p in _weights(model) if p.grad is not None))))


def naive_naswot(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """A kernel added up on the CPU, layer by layer."""
    total = np.zeros((len(x), len(x)))

    def add(module: nn.Module, inputs: tuple[Tensor], out: Tensor) -> None:
        on = (inputs[0].flatten(1) > 0).float()
        total[:] += (on @ on.T + (1 - on) @ (1 - on).T).cpu().numpy()

    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(add)
    model(x)
    return float(np.linalg.slogdet(total)[1])


def naive_jacobian(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Correlations of input gradients."""
    x = x.clone().requires_grad_(True)
    torch.autograd.backward(model(x).sum())
    assert x.grad is not None
    values = np.linalg.eigvalsh(np.corrcoef(x.grad.flatten(1).double().cpu().numpy())).clip(0) + 1e-5
    return -float(np.sum(np.log(values) + 1 / values))


def _contributions(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """All rows N x P of the official code: activation times output gradient, unfolded at once and kept."""
    seen: list[tuple[nn.Module, Tensor, Tensor]] = []

    def keep(module: nn.Module, inputs: tuple[Tensor], out: Tensor) -> None:
        out.retain_grad()
        seen.append((module, inputs[0].detach(), out))

    for module in model.modules():
        if isinstance(module, DENSE):
            module.register_forward_hook(keep)
    torch.autograd.backward(model(x).gather(1, y[:, None]).sum())
    rows = []
    for module, a, out in seen:
        if out.grad is None:
            continue
        if isinstance(module, nn.Linear):
            rows += [torch.einsum("ni,nj->nij", out.grad, a).flatten(1), out.grad]
        elif isinstance(module, nn.Conv2d):
            columns = F.unfold(a, module.kernel_size, module.dilation, module.padding, module.stride)  # type: ignore[arg-type]
            rows.append(torch.einsum("nop,nkp->nok", out.grad.flatten(2), columns).flatten(1))
    return torch.cat(rows, dim=1)


def naive_trace(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """From the eigenvalues of the products of all rows, as the official code."""
    rows = _contributions(model, x, y)
    return float((torch.linalg.eigvalsh(rows @ rows.T).sum() / len(x)).sqrt())


def naive_kappa(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Ratio of the extreme eigenvalues, products in float64 so that it can be compared."""
    rows = _contributions(model, x, y).double()
    values = torch.linalg.eigvalsh(rows @ rows.T)
    return float(values[-1] / values[0])


NAIVE: dict[str, Callable[[nn.Module, Tensor, Tensor], float]] = {
    "grad": naive_grad,
    "snip": naive_snip,
    "grasp": naive_grasp,
    "fisher": naive_fisher,
    "synflow": naive_synflow,
    "naswot": naive_naswot,
    "jacob_cov": naive_jacobian,
    "trace": naive_trace,
    "kappa": naive_kappa,
}


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Seconds and result."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    result = function()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def separate(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Every score on a copy of its own."""
    return {name: NAIVE[name](copy.deepcopy(model), x, y) for name in SCORES}


def together(model: nn.Module, x: Tensor, y: Tensor, names: list[str] = SCORES) -> dict[str, float]:
    """Every score from one pass."""
    return {record.name: record.value for record in score(model, x, y, names)}


def compare(device: str, count: int, size: int, figures: dict[str, Any]) -> None:
    """Ratios over some random cells; medians, since machines are shared."""
    space, generator = NASBench201(), np.random.default_rng(0)
    x = torch.randn(size, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
    y = (torch.arange(size) % 10).to(device)
    rows = []
    worst: dict[str, float] = {}
    for i in range(count + 1):
        cell = space.sample(generator) if i else space.parse(space.notation)
        model = space.build(cell, seed=0, live=True).to(device)
        theirs_time, theirs = timed(lambda model=model: separate(model, x, y), device)  # type: ignore[misc]
        ours_time, ours = timed(lambda model=model: together(model, x, y), device)  # type: ignore[misc]
        one_time, _ = timed(lambda model=model: naive_grad(copy.deepcopy(model), x, y), device)  # type: ignore[misc]
        set_time, _ = timed(lambda model=model: together(model, x, y, ["grad", "snip", "fisher"]), device)  # type: ignore[misc]
        if i == 0:  # warms up
            continue
        rows.append((theirs_time, ours_time, one_time, set_time))
        for name in SCORES:
            if np.isfinite(ours[name]) and np.isfinite(theirs[name]) and theirs[name]:
                worst[name] = max(worst.get(name, 0.0), abs(ours[name] / theirs[name] - 1))
    theirs_time, ours_time, one_time, set_time = np.median(np.array(rows), axis=0)
    figures[f"{device}: nine scores, separate passes, ms"] = round(theirs_time * 1000, 1)
    figures[f"{device}: nine scores, one pass, ms"] = round(ours_time * 1000, 1)
    figures[f"{device}: ratio"] = round(theirs_time / ours_time, 2)
    figures[f"{device}: grad alone on a copy, ms"] = round(one_time * 1000, 1)
    figures[f"{device}: grad, snip and fisher in one pass, ms"] = round(set_time * 1000, 1)
    figures[f"{device}: largest relative difference of the two ways"] = {n: f"{v:.1e}" for n, v in worst.items()}


def accuracy(device: str, figures: dict[str, Any]) -> None:
    """Each dtype against float64 on the CPU. Scoring switches TF32 off, so it has no row here."""
    space = get_space("nasbench201")
    model = space.build(space.parse(space.notation), seed=0, cells=2)
    x, y = torch.randn(32, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 10
    names = ["grad", "snip", "snip:paper", "grasp", "trace", "kappa"]
    exact = score(model, x, y, names, dtype=torch.float64)
    model = model.to(device)
    for dtype in (torch.float32, torch.bfloat16):
        found = score(model, x, y, names, dtype=dtype)
        figures[f"{device}: relative error of {str(dtype).removeprefix('torch.')}"] = {
            f"{a.name}:{a.variant}": f"{abs(b.value / a.value - 1):.1e}" if b.validity == "ok" else b.validity
            for a, b in zip(exact, found, strict=True)
        }


def curves(device: str, figures: dict[str, Any]) -> None:
    """Milliseconds of nine scores of one network against the batch and against the channels; the best of three."""
    space = get_space("nasbench201")

    def cost(size: int, channels: int) -> float:
        model = space.build(space.parse(space.notation), seed=0, channels=channels).to(device)
        x, y = torch.randn(size, 3, 32, 32).to(device), (torch.arange(size) % 10).to(device)
        return round(min(timed(lambda: together(model, x, y), device)[0] for _ in range(3)) * 1000, 1)

    figures[f"{device}: nine scores, ms by batch, 16 channels"] = {str(n): cost(n, 16) for n in (8, 16, 32, 64, 128)}
    figures[f"{device}: nine scores, ms by channels, batch 64"] = {str(c): cost(64, c) for c in (4, 8, 16, 32)}


def memory(device: str, figures: dict[str, Any]) -> None:
    """The peak of NTK scores beside that of a training step."""
    space = get_space("nasbench201")
    model = space.build(space.parse(space.notation), seed=0).to(device)
    x, y = torch.randn(64, 3, 32, 32).to(device), (torch.arange(64) % 10).to(device)

    def peak(function: Callable[[], Any]) -> float:
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            function()
            return torch.cuda.max_memory_allocated() / 2**20
        function()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

    step = peak(lambda: torch.autograd.backward(F.cross_entropy(model(x), y)))
    ntk = peak(lambda: score(model, x, y, ["trace", "kappa"]))
    figures[f"{device}: peak of a training step, MiB"] = round(step)
    figures[f"{device}: peak of trace and kappa, MiB"] = round(ntk)


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--count", type=int, default=12, help="networks to compare on")
    parser.add_argument("--size", type=int, default=64, help="images in the batch")
    parser.add_argument("--pools", type=int, nargs="*", default=[], help="sizes of pools to time with processes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    torch.backends.cudnn.allow_tf32 = False  # for both ways
    keep_blocks()  # so too
    memory(arguments.device, figures)
    accuracy(arguments.device, figures)
    compare(arguments.device, arguments.count, arguments.size, figures)
    curves(arguments.device, figures)
    space, generator = NASBench201(), np.random.default_rng(1)
    x, y = torch.randn(arguments.size, 3, 32, 32), torch.arange(arguments.size) % 10
    rates = {}
    for pool in arguments.pools:
        cells = [space.sample(generator) for _ in range(pool)]
        for processes in sorted({1, arguments.processes}):
            facts = score_pool(space, cells, x, y, SCORES, device=arguments.device, processes=processes).facts
            rates[f"{pool} cells, {processes} processes"] = round(pool / facts["seconds"], 2)
    if rates:
        figures[f"{arguments.device}: cells a second, start-up included, equal ones once"] = rates
    save(f"scoring-{arguments.device}", figures, arguments.out)


if __name__ == "__main__":
    main()
