"""One instrumented forward pass, and what backward passes through it tell of every sample: no Jacobian is ever kept.

Hooks note, for each call of a layer with weights, the layer's input and the place of its output in the autograd graph.
One backward pass to all those places gives the output gradients b; with the inputs a, the gradient of sample n with
respect to a layer's weight is the product of b_n and a_n, and the NTK's Gram matrix is the sum over layers of the inner
products of those. It is added up layer by layer, in float64, from pieces of a bounded size.

    with Recording(model) as recording:
        logits = model(x)
    gram = recording.gram(logits[torch.arange(len(y)), y].sum())        # (N, N) float64

What this computes where samples meet, as in batch normalisation while training, is the *contribution* of each sample's
activations to the gradient, as in the official HNAS code; the true gradients need frozen statistics (:func:`frozen`) or
one backward pass for each sample (:func:`coupled_gram`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.utils import parametrize

from theta0.errors import Theta0Error

Select = Callable[[nn.Module, str], bool]
"""Whether a layer's parameter of that name takes part."""

CHUNK = {"cpu": 2**22, "cuda": 2**30}
"""Numbers that a piece of unfolded input may have: on a CPU, at four bytes each, what a cache can hold."""
_CACHED = 2**20
"""Numbers of float64 that stay in a core's cache."""

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_NORMS = (*_BATCH_NORMS, nn.LayerNorm, nn.GroupNorm)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d)


class Call(NamedTuple):
    """One call of a layer: its input, and the place of its output in the graph; versions tell of changes in place."""

    layer: nn.Module
    name: str
    input: Tensor
    output: GradientEdge
    version: int
    value: Tensor
    value_version: int

    def activation(self) -> Tensor:
        """The output itself, without its graph."""
        if self.value._version != self.value_version:
            raise Theta0Error(
                f"the output of {self.name} was changed in place and is lost; use inplace=False behind it"
            )
        return self.value


def all_parameters(layer: nn.Module, name: str) -> bool:
    """Every trainable parameter."""
    return True


def weights(layer: nn.Module, name: str) -> bool:
    """The weights of convolutions and linear layers, which the zero-cost proxies look at."""
    return name == "weight" and isinstance(layer, (*_CONVOLUTIONS, nn.Conv3d, nn.Linear))


def official(layer: nn.Module, name: str) -> bool:
    """What the HNAS code takes for its NTK: convolutions and linear layers, and the bias of the latter."""
    return weights(layer, name) or (name == "bias" and isinstance(layer, nn.Linear))


def every_weight(layer: nn.Module, name: str) -> bool:
    """What the TE-NAS code takes: everything called weight, that of normalisation included."""
    return name == "weight"


SELECTIONS: dict[str, Select] = {
    "all": all_parameters,
    "weights": weights,
    "official": official,
    "every_weight": every_weight,
}


class Recording:
    """A forward pass whose layers are noted; use as a context around it, ask afterwards."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.calls: list[Call] = []
        self._handles: list[Any] = []

    def __enter__(self) -> Recording:
        for name, module in self.model.named_modules():
            if any(p.requires_grad for p in _own_parameters(module).values()):
                self._handles.append(module.register_forward_hook(self._noter(name), with_kwargs=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _noter(self, name: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
            value = inputs[0] if inputs else next(iter(options.values()), None)
            if isinstance(output, Tensor) and output.requires_grad and isinstance(value, Tensor):
                # The edge, not the tensor: an operation in place gives the tensor another meaning afterwards.
                edge, plain = get_gradient_edge(output), output.detach()
                self.calls.append(Call(module, name, value.detach(), edge, value._version, plain, plain._version))

        return note

    def gram(self, head: Tensor, select: Select = official, *, extra: Callable[[], Tensor] | None = None) -> Tensor:
        """The Gram matrix (N, N), float64, of the samples' gradients of ``head``, a sum over samples.

        ``extra`` gives the per-sample outputs (N,) of which ``head`` is the sum; it is asked for only where the model
        has parameters that no rule covers, which then take a backward pass for each sample.
        """
        size = self._samples()
        gram = torch.zeros(size, size, dtype=torch.float64, device=head.device)
        for piece in self.pieces(head, select, extra=extra):
            _add_products(gram, piece)
        return gram

    def squares(self, head: Tensor, select: Select = official, *, extra: Callable[[], Tensor] | None = None) -> Tensor:
        """The diagonal of :meth:`gram`, (N,) float64: squared gradient norms, without the products between samples."""
        total = torch.zeros(self._samples(), dtype=torch.float64, device=head.device)
        for piece in self.pieces(head, select, extra=extra):
            total += piece.double().square().sum(dim=1)
        return total

    def rows(self, head: Tensor, select: Select = official, *, extra: Callable[[], Tensor] | None = None) -> Tensor:
        """The samples' gradients themselves, (N, P): for tests and small models."""
        return torch.cat(list(self.pieces(head, select, extra=extra)), dim=1)

    def _samples(self) -> int:
        if not self.calls:
            raise Theta0Error("no layer with trainable parameters took part in the forward pass; there is no NTK")
        return len(self.calls[0].input)

    def pieces(self, head: Tensor, select: Select, *, extra: Callable[[], Tensor] | None = None) -> Iterator[Tensor]:
        """The gradients (N, p) of one parameter after the other; within one, the order is the same for all samples."""
        groups: dict[int, list[Call]] = {}
        for call in self.calls:
            if call.layer in _ruled(call.layer) and any(select(call.layer, n) for n in _own_parameters(call.layer)):
                groups.setdefault(id(call.layer), []).append(call)
        covered = {id(p) for calls in groups.values() for p in _own_parameters(calls[0].layer).values()}
        rest = [
            parameter
            for module in self.model.modules()
            for name, parameter in _own_parameters(module).items()
            if parameter.requires_grad and id(parameter) not in covered and select(module, name)
        ]
        used = [call for calls in groups.values() for call in calls]
        places = [call.output for call in used]
        gradients = torch.autograd.grad(head, places, retain_graph=True, allow_unused=True) if places else ()
        found = {id(call): gradient for call, gradient in zip(used, gradients, strict=True)}
        for calls in groups.values():
            live = [(call, found[id(call)]) for call in calls if found[id(call)] is not None]
            if live:
                yield from _layer_pieces(live, select)
        if rest:
            yield from self._fallback(rest, extra)

    def _fallback(self, parameters: list[nn.Parameter], extra: Callable[[], Tensor] | None) -> Iterator[Tensor]:
        """One backward pass for each sample, where it is exact."""
        if extra is None:
            raise Theta0Error("this model has parameters without a rule; per-sample outputs are needed for them")
        mixing = [name for name, m in self.model.named_modules() if isinstance(m, _BATCH_NORMS) and m.training]
        if mixing:
            owners = {id(p): n for n, p in self.model.named_parameters()}
            names = ", ".join(owners.get(id(p), "?") for p in parameters[:3])
            raise Theta0Error(
                f"the contributions of single samples to {names} are not defined here: {mixing[0]} mixes the samples, "
                f"and these parameters belong to no layer with a rule; use the frozen or coupled mode"
            )
        outputs = extra()
        for parameter in parameters:
            rows = []
            for output in outputs:
                (gradient,) = torch.autograd.grad(output, parameter, retain_graph=True, allow_unused=True)
                rows.append(torch.zeros_like(parameter) if gradient is None else gradient)
            yield torch.stack(rows).flatten(1)


def _add_products(gram: Tensor, rows: Tensor) -> None:
    """Adds rows . rows^T in float64; on a CPU through a buffer that stays in the cache."""
    if rows.device.type != "cpu" or rows.dtype == gram.dtype:
        wide = rows.double()
        gram.addmm_(wide, wide.T)
        return
    step = max(1, _CACHED // len(rows))
    buffer = gram.new_empty(len(rows), min(step, rows.shape[1]))
    for start in range(0, rows.shape[1], step):
        part = rows[:, start : start + step]
        wide = buffer[:, : part.shape[1]].copy_(part)
        gram.addmm_(wide, wide.T)


def _own_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a module itself; under a parametrization, the originals by the name of what they make."""
    own = {name: p for name, p in module._parameters.items() if p is not None and p.requires_grad}
    if parametrize.is_parametrized(module):
        for name, maker in module.parametrizations.items():  # type: ignore[union-attr, operator]
            own[name] = maker.original
    return own


def _ruled(layer: nn.Module) -> tuple[nn.Module, ...]:
    """``layer`` itself, if its gradients follow from input and output gradient; nothing otherwise."""
    plain = type(layer) if not parametrize.is_parametrized(layer) else type(layer).__mro__[1]
    known = plain in (*_CONVOLUTIONS, nn.Linear, *_NORMS)  # a derived class may compute something else
    if isinstance(layer, _CONVOLUTIONS):
        known = known and layer.padding_mode == "zeros"
    return (layer,) if known and _scale(layer) is not None else ()


def _scale(layer: nn.Module) -> float | None:
    """What a linear parametrization multiplies the weight by; None for any other parametrization."""
    from theta0.initialize import Scaled

    if not parametrize.is_parametrized(layer):
        return 1.0
    makers = layer.parametrizations
    if set(makers) != {"weight"} or len(makers["weight"]) != 1 or not isinstance(makers["weight"][0], Scaled):  # type: ignore[arg-type, index]
        return None
    return float(makers["weight"][0].scale)  # type: ignore[index]


def _layer_pieces(calls: Sequence[tuple[Call, Tensor]], select: Select) -> Iterator[Tensor]:
    """Gradients (N, p) of the parameters of one layer; a layer that is called twice adds them up."""
    layer, name = calls[0][0].layer, calls[0][0].name
    for call, _ in calls:
        if call.input._version != call.version:
            raise Theta0Error(
                f"the input of {name} was changed in place after {name} had read it; its gradient is lost"
            )
        if call.input.shape[0] != calls[0][0].input.shape[0]:
            raise Theta0Error(f"{name} was called with different batch sizes; samples cannot be told apart")
    own = _own_parameters(layer)
    if "weight" in own and select(layer, "weight"):
        parts = [_weight_gradient(layer, call.input, gradient) for call, gradient in calls]
        total = parts[0] if len(parts) == 1 else torch.stack(parts).sum(dim=0)
        scale = _scale(layer)
        yield total if scale is None or scale == 1.0 else total * scale
    if "bias" in own and select(layer, "bias"):
        yield sum((_bias_gradient(layer, gradient) for _, gradient in calls[1:]), _bias_gradient(layer, calls[0][1]))


def _bias_gradient(layer: nn.Module, gradient: Tensor) -> Tensor:
    """(N, p) from the output gradient."""
    if isinstance(layer, (nn.Linear, nn.LayerNorm)):
        kept = 1 if isinstance(layer, nn.Linear) else len(layer.normalized_shape)
        lead = gradient.shape[: gradient.dim() - kept]
        return gradient.reshape(lead[0], -1, math.prod(gradient.shape[len(lead) :])).sum(dim=1)
    return gradient.flatten(2).sum(dim=2) if gradient.dim() > 2 else gradient


def _weight_gradient(layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
    """(N, p) from the input ``a`` and the output gradient ``b`` of one call."""
    if isinstance(layer, nn.Linear):
        a, b = a.reshape(len(a), -1, a.shape[-1]), b.reshape(len(b), -1, b.shape[-1])
        return torch.bmm(b.transpose(1, 2), a).flatten(1)
    if isinstance(layer, _CONVOLUTIONS):
        return _convolution_gradient(layer, a, b)
    normed = _normalised(layer, a)
    return _bias_gradient(layer, normed * b)


def _normalised(layer: nn.Module, a: Tensor) -> Tensor:
    """What a normalisation layer multiplies by its weight."""
    if isinstance(layer, nn.LayerNorm):
        return F.layer_norm(a, layer.normalized_shape, eps=layer.eps)
    if isinstance(layer, nn.GroupNorm):
        return F.group_norm(a, layer.num_groups, eps=layer.eps)
    assert isinstance(layer, _BATCH_NORMS)
    if layer.training or not layer.track_running_stats or getattr(layer, "_theta0_frozen", False):
        return F.batch_norm(a, None, None, training=True, eps=layer.eps)
    return F.batch_norm(a, layer.running_mean, layer.running_var, training=False, eps=layer.eps)


def _convolution_gradient(layer: nn.Conv1d | nn.Conv2d, a: Tensor, b: Tensor) -> Tensor:
    """Per-sample gradients of a convolution's weight, from unfolded inputs in pieces that fit the cache."""
    if isinstance(layer, nn.Conv1d):
        a, b = a.unsqueeze(2), b.unsqueeze(2)
    flat = isinstance(layer, nn.Conv1d)
    kernel, stride, dilation = ((1, *v) if flat else v for v in (layer.kernel_size, layer.stride, layer.dilation))
    padding: Any = layer.padding
    if isinstance(padding, str):
        if padding == "same":
            total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            a = F.pad(a, (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2))
        padding = (0, 0)
    elif flat:
        padding = (0, *padding)
    samples, groups = len(a), layer.groups
    if groups == 1 and a.is_contiguous(memory_format=torch.channels_last):
        padded = F.pad(a, (padding[1],) * 2 + (padding[0],) * 2)
        if stride == (1, 1):
            return _rows_last(padded, b, kernel, dilation)
        return _strided_products(padded, b, kernel, dilation, stride)
    b = b.reshape(samples * groups, b.shape[1] // groups, -1)
    if all(k == 1 for k in kernel) and not any(padding):
        a = a[:, :, :: stride[0], :: stride[1]]
        columns = a.reshape(samples * groups, a.shape[1] // groups, -1)
        return torch.bmm(b, columns.transpose(1, 2)).reshape(samples, -1)
    if stride == (1, 1):
        return _shifted_products(F.pad(a, (padding[1],) * 2 + (padding[0],) * 2), b, kernel, dilation, groups)
    per_sample = a.shape[1] * math.prod(kernel) * b.shape[2]
    step = max(1, CHUNK[a.device.type] // per_sample)
    pieces = []
    for start in range(0, samples, step):
        part = F.unfold(a[start : start + step], kernel, dilation, padding, stride)
        part = part.reshape(len(part) * groups, -1, part.shape[2])
        pieces.append(torch.bmm(b[start * groups : (start + step) * groups], part.transpose(1, 2)))
    return torch.cat(pieces).reshape(samples, -1)


def _shifted_products(a: Tensor, b: Tensor, kernel: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> Tensor:
    """The same for stride 1 without unfolding: on flat padded rows, a shift of the kernel is an offset.

    ``a`` is padded, (N, C, H, W); ``b`` (N groups, C_out / groups, pixels) gets zeros where its rows end before those
    of ``a``, so that both step alike.
    """
    samples, channels, height, width = a.shape
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    rows, columns = height - reach[0], width - reach[1]
    b = F.pad(b.reshape(*b.shape[:2], rows, columns), (0, reach[1])).flatten(2)[:, :, : rows * width - reach[1]]
    flat = a.reshape(samples * groups, channels // groups, height * width)
    products = [
        torch.bmm(b, flat[:, :, i * dilation[0] * width + j * dilation[1] :][:, :, : b.shape[2]].transpose(1, 2))
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return torch.cat([product.reshape(samples, -1) for product in products], dim=1)


def _rows_last(a: Tensor, b: Tensor, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """The same where channels are the last dimension in memory, so that nothing is copied but the padding."""
    samples, _, height, width = a.shape
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    length = (height - reach[0]) * width - reach[1]
    right = F.pad(b, (0, reach[1])).permute(0, 2, 3, 1).reshape(samples, -1, b.shape[1])[:, :length].transpose(1, 2)
    flat = a.permute(0, 2, 3, 1).reshape(samples, height * width, -1)
    shifts = [i * dilation[0] * width + j * dilation[1] for i in range(kernel[0]) for j in range(kernel[1])]
    products = [torch.bmm(right, flat[:, shift : shift + length]).reshape(samples, -1) for shift in shifts]
    return products[0] if len(products) == 1 else torch.cat(products, dim=1)


def _strided_products(
    a: Tensor, b: Tensor, kernel: tuple[int, ...], dilation: tuple[int, ...], stride: tuple[int, ...]
) -> Tensor:
    """The same for other strides: for each place of the kernel the pixels that it meets."""
    samples, _, rows, columns = b.shape
    right = b.permute(0, 2, 3, 1).reshape(samples, rows * columns, -1).transpose(1, 2)
    last, products = a.permute(0, 2, 3, 1), []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            met = last[:, top : top + (rows - 1) * stride[0] + 1 : stride[0]]
            met = met[:, :, left : left + (columns - 1) * stride[1] + 1 : stride[1]]
            products.append(torch.bmm(right, met.reshape(samples, rows * columns, -1)).reshape(samples, -1))
    return products[0] if len(products) == 1 else torch.cat(products, dim=1)


@contextlib.contextmanager
def small_pieces() -> Iterator[None]:
    """Works on a GPU in pieces as small as on a CPU, where memory ran out."""
    usual = CHUNK["cuda"]
    CHUNK["cuda"] = CHUNK["cpu"]
    try:
        yield
    finally:
        CHUNK["cuda"] = usual


@contextlib.contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Batch normalisation by the statistics of the batch, taken as constants: samples do not mix in gradients."""

    def forward(layer: Any) -> Callable[[Tensor], Tensor]:
        def normalise(x: Tensor) -> Tensor:
            dims = [0, *range(2, x.dim())]
            variance, mean = torch.var_mean(x.detach(), dim=dims, correction=0)
            return F.batch_norm(x, mean, variance, layer.weight, layer.bias, training=False, eps=layer.eps)

        return normalise

    layers: list[Any] = [m for m in model.modules() if isinstance(m, _BATCH_NORMS)]
    modes = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.forward, layer.training, layer._theta0_frozen = forward(layer), False, True
        yield
    finally:
        for layer, mode in zip(layers, modes, strict=True):
            layer.training = mode
            layer.__dict__.pop("forward", None)
            layer.__dict__.pop("_theta0_frozen", None)


def coupled_gram(model: nn.Module, outputs: Tensor, select: Select = official) -> Tensor:
    """The Gram matrix (N, N), float64, of the true gradients of ``outputs`` (N,), through the batch statistics.

    One backward pass for each sample; the rows are kept in the dtype of the model, N times its size.
    """
    chosen = [p for m in model.modules() for n, p in _own_parameters(m).items() if p.requires_grad and select(m, n)]
    chosen = list({id(p): p for p in chosen}.values())
    rows = []
    for output in outputs:
        gradients = torch.autograd.grad(output, chosen, retain_graph=True, allow_unused=True)
        rows.append([torch.zeros_like(p) if g is None else g for p, g in zip(chosen, gradients, strict=True)])
    gram = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=outputs.device)
    for parameter in range(len(chosen)):
        wide = torch.stack([row[parameter].flatten() for row in rows]).double()
        gram.addmm_(wide, wide.T)
    return gram
