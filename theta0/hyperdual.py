"""theta . H g by hyper-dual numbers: one forward pass with four parts, no graph and no second backward pass.

For weights that move to W + a W + b g with a^2 = b^2 = 0, the part of the loss at ab is W . H g exactly (Fike and
Alonso, 2011). A convolution takes the parts (v, a, b, ab) by two calls: all four with W, and v and a with g. Batch
normalisation takes its part at ab from its own backward pass, whose Jacobian is symmetric.

Rules exist for what convolutional networks and perceptrons are made of. Everything else raises
:class:`UnsupportedError`, and the caller takes the double backward pass; so does a pass whose values are not those of
the network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.errors import Theta0Error


class UnsupportedError(Theta0Error):
    """The network uses a function that has no rule here."""


class HyperDual:
    """A tensor (N, ...) with four parts, stacked along its first dimension: value, along a, along b, along both."""

    def __init__(self, parts: Tensor, directions: Mapping[int, Tensor]) -> None:
        self.parts, self.directions = parts, directions

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        rule = _RULES.get(func)
        if rule is None:
            raise UnsupportedError(f"{getattr(func, '__name__', func)} has no hyper-dual rule")
        return rule(*args, **(kwargs or {}))

    def like(self, parts: Tensor) -> HyperDual:
        """Other parts, the same directions."""
        return HyperDual(parts, self.directions)

    def split(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The parts v, a, b and ab."""
        v, a, b, ab = self.parts.chunk(4)
        return v, a, b, ab

    @property
    def shape(self) -> torch.Size:
        """That of the value."""
        return torch.Size((len(self.parts) // 4, *self.parts.shape[1:]))

    def size(self, dim: int | None = None) -> Any:
        """As of a tensor."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """As of a tensor."""
        return self.parts.dim()

    def __len__(self) -> int:
        return len(self.parts) // 4

    @property
    def dtype(self) -> torch.dtype:
        """As of a tensor."""
        return self.parts.dtype

    @property
    def device(self) -> torch.device:
        """As of a tensor."""
        return self.parts.device

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> HyperDual:
        """As of a tensor, from the second dimension on."""
        if start_dim < 1:
            raise UnsupportedError("flattening over the samples has no hyper-dual rule")
        return self.like(self.parts.flatten(start_dim, end_dim))

    def reshape(self, *shape: Any) -> HyperDual:
        """As of a tensor, where the samples stay the first dimension."""
        sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        if sizes[0] != len(self) and (sizes[0] != -1 or math.prod(sizes[1:]) != math.prod(self.shape[1:])):
            raise UnsupportedError("reshaping over the samples has no hyper-dual rule")
        return self.like(self.parts.reshape(len(self.parts), *sizes[1:]))

    view = reshape

    def new_zeros(self, *shape: Any) -> HyperDual:
        """As of a tensor, for the same samples."""
        if shape[0] != len(self):
            raise UnsupportedError("zeros of another batch have no hyper-dual rule")
        return self.like(self.parts.new_zeros(len(self.parts), *shape[1:]))

    def contiguous(self) -> HyperDual:
        """As of a tensor."""
        return self

    def mean(self, dim: Any = None, keepdim: bool = False) -> HyperDual:
        """As of a tensor, over other dimensions than the samples."""
        dims = (dim,) if isinstance(dim, int) else dim
        if dims is None or any(d % self.dim() == 0 for d in dims):
            raise UnsupportedError("a mean over the samples has no hyper-dual rule")
        return self.like(self.parts.mean(dim=dim, keepdim=keepdim))

    def __getitem__(self, index: Any) -> HyperDual:
        if not isinstance(index, tuple) or index[0] != slice(None):
            raise UnsupportedError("picking samples has no hyper-dual rule")
        return self.like(self.parts[index])

    def __add__(self, other: Any) -> HyperDual:
        if isinstance(other, HyperDual) and other.shape == self.shape:
            return self.like(self.parts + other.parts)
        if isinstance(other, (int, float)):
            shifted = self.parts.clone()
            shifted[: len(self)] += other
            return self.like(shifted)
        raise UnsupportedError("a sum with this has no hyper-dual rule")

    __radd__ = __add__

    def __iadd__(self, other: Any) -> HyperDual:
        self.parts = (self + other).parts
        return self

    def __sub__(self, other: Any) -> HyperDual:
        return self.__add__(other * -1)

    def __mul__(self, other: Any) -> HyperDual:
        if isinstance(other, (int, float)):
            return self.like(self.parts * other)
        if not isinstance(other, HyperDual):
            raise UnsupportedError("a product with this has no hyper-dual rule")
        (v, a, b, ab), (w, c, d, cd) = self.split(), other.split()
        return self.like(torch.cat([v * w, a * w + v * c, b * w + v * d, ab * w + a * d + b * c + v * cd]))

    __rmul__ = __mul__

    def elementwise(self, value: Tensor, first: Tensor, second: Tensor | None) -> HyperDual:
        """A function of each element, from its value and its first two derivatives (None for zero) at v."""
        _, a, b, ab = self.split()
        both = ab * first if second is None else torch.addcmul(ab * first, second * a, b)
        return self.like(torch.cat([value, a * first, b * first, both]))


def mixed_derivative(
    model: nn.Module,
    x: Tensor,
    losses: Callable[[Tensor], Tensor],
    directions: Mapping[int, Tensor],
    expected: Tensor,
) -> float:
    """W . H g for weights W that move along themselves and along ``directions`` g, by the identity of the weight.

    ``losses`` takes logits to the losses of the samples, of whose mean H is the Hessian; ``expected`` are the logits.
    """
    try:
        out = model(HyperDual(torch.cat([x, *[torch.zeros_like(x)] * 3]), directions))
    except (UnsupportedError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # whatever is wrong, the other way will tell
        raise UnsupportedError(f"the network takes nothing but tensors: {error}") from error
    if not isinstance(out, HyperDual):
        raise UnsupportedError("the network lost the parts on the way")
    v, a, b, ab = (part.detach() for part in out.split())
    bound = 1e4 * torch.finfo(v.dtype).eps * float(expected.norm())
    if v.shape != expected.shape or float((v - expected).norm()) > bound:
        raise UnsupportedError("the values are not those of the network")
    v = v.requires_grad_(True)
    (first,) = torch.autograd.grad(losses(v).mean(), v, create_graph=True)
    (curved,) = torch.autograd.grad((first * a).sum(), v) if first.requires_grad else (torch.zeros_like(v),)
    return float((first.detach().double() * ab).sum() + (curved.double() * b).sum())


def _weight(weight: Tensor, directions: Mapping[int, Tensor]) -> tuple[Tensor, Tensor | None]:
    """A weight and how it moves, without graph."""
    return _fixed(weight, directions, moves=True), directions.get(id(weight))


def _fixed(value: Any, directions: Mapping[int, Tensor], *, moves: bool = False) -> Any:
    """A tensor that must not depend on moving weights."""
    if value is None or isinstance(value, (int, float)):
        return value
    if not isinstance(value, Tensor) or (value.requires_grad and not value.is_leaf):
        raise UnsupportedError("a weight that is computed from others has no hyper-dual rule")
    if id(value) in directions and not moves:
        raise UnsupportedError("a weight used in another place has no hyper-dual rule")
    return value.detach()


def _bilinear(
    x: Any, weight: Tensor, bias: Tensor | None, apply: Callable[[Tensor, Tensor], Tensor], shape: tuple[int, ...]
) -> HyperDual:
    """What is linear in x and in the weight; ``shape`` is how a bias is added."""
    if not isinstance(x, HyperDual):
        raise UnsupportedError("a weight that is computed has no hyper-dual rule")
    weight, direction = _weight(weight, x.directions)
    offset = _fixed(bias, x.directions)
    out, n = apply(x.parts, weight), len(x)
    if direction is not None:
        along = apply(x.parts[: 2 * n], direction)
        out[3 * n :] += out[2 * n : 3 * n]
        out[n : 2 * n] += out[:n]
        out[2 * n :] += along
    if offset is not None:
        out[:n] += offset.reshape(shape)
    return x.like(out)


def _convolution(function: Callable[..., Tensor]) -> Callable[..., HyperDual]:
    def rule(
        input: Any,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> HyperDual:
        def apply(a: Tensor, w: Tensor) -> Tensor:
            return function(a, w, None, stride, padding, dilation, groups)

        return _bilinear(input, weight, bias, apply, (1, -1, *[1] * (weight.dim() - 2)))

    return rule


def _linear(input: Any, weight: Tensor, bias: Tensor | None = None) -> HyperDual:
    return _bilinear(input, weight, bias, F.linear, (-1,))


def _batch_norm(
    input: HyperDual,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> HyperDual:
    """The backward pass gives r (c - mean c - n mean(n c)) =: r T(c), the tangent along c, and the sum of n c."""
    gain, offset = _fixed(weight, input.directions), _fixed(bias, input.directions)
    n = len(input)
    shape = (1, -1, *[1] * (input.dim() - 2))
    if not training:
        if running_mean is None or running_var is None:
            raise UnsupportedError("batch normalisation without statistics")
        out = input.parts * (running_var + eps).rsqrt().reshape(shape)
        out[:n] -= (running_mean * (running_var + eps).rsqrt()).reshape(shape)
    else:
        v, a, b, ab = input.split()
        out = torch.empty_like(input.parts)
        value, along_a, along_b, both = out.chunk(4)
        normal, mean, rate = torch.native_batch_norm(v, None, None, None, None, True, 0.0, eps)
        value.copy_(normal)
        projections = []
        for part, place in ((a, along_a), (b, along_b), (ab, both)):
            tangent, product, _ = torch.ops.aten.native_batch_norm_backward(
                part, v, None, None, None, mean, rate, True, eps, [True, True, False]
            )
            place.copy_(tangent)
            projections.append((product / (v.numel() // v.shape[1])).reshape(shape))
        rate = rate.reshape(shape)
        inner = (along_b * a).mean(dim=[d for d in range(v.dim()) if d != 1], keepdim=True)
        both.addcmul_(along_a, -rate * projections[1])
        both.addcmul_(along_b, -rate * projections[0])
        both.addcmul_(value, -rate * inner)
    if gain is not None:
        out *= gain.reshape(shape)
    if offset is not None:
        out[:n] += offset.reshape(shape)
    return input.like(out)


def _relu(input: HyperDual, inplace: bool = False) -> HyperDual:
    return _sloped(input, 0.0, inplace)


def _sloped(input: HyperDual, negative_slope: float = 0.01, inplace: bool = False) -> HyperDual:
    """(Leaky) ReLU: every part by the slope at its value."""
    n = len(input)
    on = input.parts[:n] > 0
    slope = torch.full_like(input.parts[:n], negative_slope).masked_fill_(on, 1.0) if negative_slope else on
    parts = (input.parts.reshape(4, n, *input.parts.shape[1:]) * slope).reshape(input.parts.shape)
    if inplace:
        input.parts = parts
        return input
    return input.like(parts)


def _sigmoid(input: HyperDual) -> HyperDual:
    value = input.parts[: len(input)].sigmoid()
    first = value * (1 - value)
    return input.elementwise(value, first, first * (1 - 2 * value))


def _tanh(input: HyperDual) -> HyperDual:
    value = input.parts[: len(input)].tanh()
    first = 1 - value.square()
    return input.elementwise(value, first, -2 * value * first)


def _silu(input: HyperDual, inplace: bool = False) -> HyperDual:
    if inplace:
        raise UnsupportedError("silu in place has no hyper-dual rule")
    return input * _sigmoid(input)


def _parts(function: Callable[..., Tensor]) -> Callable[..., HyperDual]:
    """What is linear and treats the samples apart: the same for all parts."""

    def rule(input: HyperDual, *args: Any, **kwargs: Any) -> HyperDual:
        return input.like(function(input.parts, *args, **kwargs))

    return rule


def _max_pool(
    input: HyperDual,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> HyperDual:
    n = len(input)
    value, places = F.max_pool2d(
        input.parts[:n], kernel_size, stride, padding, dilation, ceil_mode, return_indices=True
    )
    rest = input.parts[n:].flatten(2)
    picked = rest.gather(2, places.flatten(2).repeat(3, 1, 1)).reshape(3 * n, *value.shape[1:])
    return input.like(torch.cat([value, picked]))


def _cat(tensors: Any, dim: int = 0) -> HyperDual:
    found = list(tensors)
    if not all(isinstance(one, HyperDual) for one in found) or dim % found[0].dim() == 0:
        raise UnsupportedError("this concatenation has no hyper-dual rule")
    like: HyperDual = found[0]
    return like.like(torch.cat([one.parts for one in found], dim=dim))


def _dropout(input: HyperDual, p: float = 0.5, training: bool = True, inplace: bool = False) -> HyperDual:
    if training and p > 0:
        raise UnsupportedError("dropout has no hyper-dual rule")
    return input


def _flatten(input: HyperDual, start_dim: int = 0, end_dim: int = -1) -> HyperDual:
    return input.flatten(start_dim, end_dim)


def _zeros_like(input: HyperDual) -> HyperDual:
    return input.like(torch.zeros_like(input.parts))


_RULES: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.conv1d: _convolution(torch.conv1d),
    torch.conv2d: _convolution(torch.conv2d),
    F.linear: _linear,
    F.batch_norm: _batch_norm,
    F.relu: _relu,
    torch.relu: _relu,
    F.leaky_relu: _sloped,
    torch.sigmoid: _sigmoid,
    torch.tanh: _tanh,
    F.silu: _silu,
    F.avg_pool2d: _parts(F.avg_pool2d),
    F.adaptive_avg_pool2d: _parts(F.adaptive_avg_pool2d),
    F.max_pool2d: _max_pool,
    F.dropout: _dropout,
    F.pad: _parts(F.pad),
    torch.cat: _cat,
    torch.flatten: _flatten,
    torch.zeros_like: _zeros_like,
}
