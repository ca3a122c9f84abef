"""What scores are computed from: quantities of one network and one batch, each made at most once and only if asked for.

One training-mode forward pass is instrumented; gradients, the gradient's Hessian product, activation patterns, input
gradients and the NTK's Gram matrices all come from its graph. The network is left as it was found: parameters,
gradients, buffers, modes and the global random state, also after an exception.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from theta0 import hyperdual, kernel
from theta0.errors import Theta0Error
from theta0.kernel import Recording

Need = Literal["second_order", "outputs", "patterns", "input"]
"""What costs extra: derivatives of gradients, gradients of outputs of layers, activation patterns, image gradients."""
Loss = Callable[[Tensor, Tensor], Tensor]
"""From logits (N, classes) and labels (N,) to the losses of the samples (N,)."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each sample."""
    return F.cross_entropy(logits, labels, reduction="none")


class Weight(NamedTuple):
    """A parameter and where it belongs."""

    layer: nn.Module
    name: str
    value: nn.Parameter


_RANDOM = ("Dropout", "DropPath", "AlphaDropout", "FeatureAlphaDropout")
_RELUS = frozenset(
    {F.relu, F.relu_, F.relu6, F.leaky_relu, F.leaky_relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_}
)


class _Patterns(TorchFunctionMode):
    """Notes which units of each rectifier are active: (N, units) booleans."""

    def __init__(self, seen: list[Tensor]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _RELUS:
            value = args[0] if args else (kwargs or {})["input"]
            self.seen.append((value.detach() > 0).flatten(1))
        return func(*args, **(kwargs or {}))


class Evidence:
    """A network, a batch x (N, C, H, W) and labels y (N,); use it as a context."""

    def __init__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        *,
        loss: Loss = cross_entropy,
        needs: Collection[Need] = ("second_order", "outputs", "patterns", "input"),
    ) -> None:
        self.model, self.x, self.y, self.loss, self.needs = model, x, y, loss, needs

    def __enter__(self) -> Evidence:
        self._modes = [(module, module.training) for module in self.model.modules()]
        self._buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        self._random = torch.get_rng_state()
        self._grad_enabled = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        # TF32 has errors of a tenth in a Gram matrix and more in second derivatives: IEEE float32 alone will do.
        self._tf32 = (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.model.train()
        for module in self.model.modules():
            if type(module).__name__.startswith(_RANDOM):
                module.eval()
        # These hold their dropout as a number; evaluation mode would also change how they compute.
        self._dropouts = [
            (m, m.dropout) for m in self.model.modules() if isinstance(m, (nn.MultiheadAttention, nn.RNNBase))
        ]
        for module, _ in self._dropouts:
            module.dropout = 0.0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for module, mode in self._modes:
            module.training = mode
        for holder, dropout in self._dropouts:
            holder.dropout = dropout
        with torch.no_grad():
            for buffer, old in self._buffers:
                buffer.copy_(old)
        torch.set_rng_state(self._random)
        torch.set_grad_enabled(self._grad_enabled)
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = self._tf32
        self.__dict__ = {key: value for key, value in self.__dict__.items() if key in ("model", "x", "y", "loss")}

    def _has(self, need: Need) -> None:
        if need not in self.needs:
            raise Theta0Error(f"this score needs {need!r}, but the evidence was made for {sorted(self.needs)}")

    @property
    def size(self) -> int:
        """N, the number of samples."""
        return len(self.x)

    @property
    def _format(self) -> torch.memory_format:
        """Channels last where it is faster: by a half on a CPU; on a GPU it is not, in IEEE float32."""
        images = self.x.dim() == 4 and self.x.device.type == "cpu"
        # torch 2.13 crashes in group normalisation backward, channels last, where the input has no gradient.
        grouped = any(isinstance(module, nn.GroupNorm) for module in self.model.modules())
        return torch.channels_last if images and not grouped else torch.preserve_format

    @cached_property
    def parameters(self) -> list[Weight]:
        """All trainable parameters, shared ones once."""
        found: dict[int, Weight] = {}
        for module in self.model.modules():
            for name, value in kernel._own_parameters(module).items():
                found.setdefault(id(value), Weight(module, name, value))  # the owner comes before its parametrization
        return list(found.values())

    @cached_property
    def weights(self) -> list[Weight]:
        """The weights of convolutions and linear layers."""
        return [weight for weight in self.parameters if kernel.weights(weight.layer, weight.name)]

    @cached_property
    def _pass(self) -> tuple[Recording, Tensor, list[Tensor], Tensor]:
        versions = [weight.value._version for weight in self.parameters]
        x = self.x.detach().clone(memory_format=self._format).requires_grad_("input" in self.needs)
        # The fused kernels of attention have no second derivatives.
        attention = sdpa_kernel(SDPBackend.MATH) if "second_order" in self.needs else contextlib.nullcontext()
        seen: list[Tensor] = []
        patterns = _Patterns(seen) if "patterns" in self.needs else contextlib.nullcontext()
        with Recording(self.model) as recording, patterns, attention:
            logits = check_logits(self.model(x), self.size)
        if versions != [weight.value._version for weight in self.parameters]:
            raise Theta0Error("the network changes its own parameters in forward; there is no theta_0 to score")
        return recording, logits, seen, x

    @property
    def recording(self) -> Recording:
        """The layers that the forward pass called."""
        return self._pass[0]

    @property
    def logits(self) -> Tensor:
        """(N, classes), with their graph."""
        return self._pass[1]

    @property
    def patterns(self) -> list[Tensor]:
        """For each rectifier which units are active, (N, units) booleans."""
        self._has("patterns")
        return self._pass[2]

    @cached_property
    def dead(self) -> bool:
        """Whether the logits are the same for all images, although the images differ."""
        logits, images = self.logits.detach(), self.x.flatten(1)
        return bool((logits == logits[:1]).all()) and not bool((images == images[:1]).all())

    @cached_property
    def losses(self) -> Tensor:
        """The losses of the samples (N,), with their graph."""
        return self.loss(self.logits, self.y)

    @cached_property
    def _first_order(self) -> tuple[dict[int, Tensor], list[Tensor | None]]:
        values = [weight.value for weight in self.parameters]
        places: list[Any] = [call.output for call in self.recording.calls] if "outputs" in self.needs else []
        found: tuple[Tensor | None, ...] = torch.autograd.grad(
            self.losses.mean(), [*values, *places], retain_graph=True, allow_unused=True
        )
        own = {id(v): torch.zeros_like(v) if g is None else g for v, g in zip(values, found, strict=False)}
        return own, list(found[len(values) :])

    @property
    def gradient(self) -> dict[int, Tensor]:
        """The gradient of the mean loss, by the identity of the parameter; zeros where none arrives."""
        return self._first_order[0]

    @property
    def output_gradients(self) -> list[tuple[kernel.Call, Tensor]]:
        """The gradient of the mean loss at the output of each call of a layer that it reaches, in the same pass."""
        self._has("outputs")
        pairs = zip(self.recording.calls, self._first_order[1], strict=True)
        return [(call, gradient) for call, gradient in pairs if gradient is not None]

    @cached_property
    def curvature(self) -> float:
        """theta . H g over the :attr:`weights`, by one hyper-dual forward pass where the network allows it."""
        self._has("second_order")
        logits = self.logits.detach()
        # Under a parametrization the layers see a weight that is computed from the parameter.
        if not any(nn.utils.parametrize.is_parametrized(weight.layer) for weight in self.weights):
            directions = {id(weight.value): self.gradient[id(weight.value)] for weight in self.weights}
            with contextlib.suppress(hyperdual.UnsupportedError):
                x = self.x.contiguous(memory_format=self._format) if self.x.dim() == 4 else self.x
                return hyperdual.mixed_derivative(self.model, x, lambda out: self.loss(out, self.y), directions, logits)
        pairs = zip(self.weights, self.hessian_gradient, strict=True)
        return float(sum((weight.value.detach().double() * product.double()).sum() for weight, product in pairs))

    @cached_property
    def hessian_gradient(self) -> list[Tensor]:
        """H g: the Hessian of the mean loss over the :attr:`weights` times its gradient, by a second backward pass."""
        self._has("second_order")
        values = [weight.value for weight in self.weights]
        found = torch.autograd.grad(self.losses.mean(), values, create_graph=True, retain_graph=True, allow_unused=True)
        first = [g for g in found if g is not None]
        if not any(g.requires_grad for g in first):  # a loss that is linear in all parameters
            return [torch.zeros_like(value) for value in values]
        product = torch.stack([(g.detach() * g).sum() for g in first]).sum()
        second = torch.autograd.grad(product, values, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(v) if h is None else h for v, h in zip(values, second, strict=True)]

    @cached_property
    def input_gradient(self) -> Tensor:
        """The gradient of the sum of all logits with respect to the images, (N, C H W)."""
        self._has("input")
        (found,) = torch.autograd.grad(self.logits.sum(), self._pass[3], retain_graph=True, allow_unused=True)
        return torch.zeros_like(self.x).flatten(1) if found is None else found.flatten(1)

    def heads(self, head: str, logits: Tensor) -> list[Tensor]:
        """The per-sample outputs (N,) that an NTK is of: one, or one for each class."""
        if head == "target":
            return [logits.gather(1, self.y[:, None])[:, 0]]
        if head == "sum":
            return [logits.sum(dim=1)]
        if head == "logits":
            return list(logits.unbind(dim=1))
        if head == "loss":
            return [self.loss(logits, self.y)]
        raise Theta0Error(f"an NTK is of 'target', 'sum', 'logits' or 'loss', not of {head!r}")

    def gram(self, mode: str = "contribution", head: str = "target", select: str = "official") -> Tensor:
        """The Gram matrix of the samples' gradients (N, N), float64; see :mod:`theta0.kernel` for the modes."""
        key = (mode, head, select)
        if key not in self._grams:
            self._grams[key] = self._gram(mode, head, kernel.SELECTIONS[select])
        return self._grams[key]

    @cached_property
    def _grams(self) -> dict[tuple[str, str, str], Tensor]:
        return {}

    def _gram(self, mode: str, head: str, select: kernel.Select) -> Tensor:
        if mode == "coupled":
            return sum_all([kernel.coupled_gram(self.model, f, select) for f in self.heads(head, self.logits)])
        if mode == "frozen":
            with kernel.frozen(self.model), Recording(self.model) as recording:
                logits = check_logits(self.model(self.x.clone()), self.size)
                return _summed(recording, self.heads(head, logits), select)
        if mode == "contribution":
            return _summed(self.recording, self.heads(head, self.logits), select)
        raise Theta0Error(f"an NTK's mode is 'contribution', 'frozen' or 'coupled', not {mode!r}")


def _summed(recording: Recording, heads: list[Tensor], select: kernel.Select) -> Tensor:
    return sum_all([recording.gram(f.sum(), select, extra=lambda f=f: f) for f in heads])  # type: ignore[misc]


def sum_all(terms: list[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def check_logits(output: Any, size: int) -> Tensor:
    """What the network gave, if it is (N, classes)."""
    if not isinstance(output, Tensor):
        raise Theta0Error(
            f"the network returns a {type(output).__name__}, but scores need a tensor of logits (N, classes); wrap it "
            f"in a module that picks the logits"
        )
    if output.dim() != 2 or output.shape[0] != size:
        raise Theta0Error(
            f"the network returns a tensor of shape {tuple(output.shape)}, but scores need logits ({size}, classes)"
        )
    if not output.requires_grad:
        raise Theta0Error("the logits do not depend on any trainable parameter; there is nothing to score")
    return output
