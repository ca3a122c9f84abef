"""A trained network and what is known of it, in one file from which it is whole again.

    save(path, network, card)
    model = load(path)
    model.predict(images)            # names of classes, for images as bytes in any layout
    model.card.facts                 # where it comes from and how good it is

The file holds weights and plain values only; reading it runs no code. A network of a space of one's own is built by the
file of that space, which must be there: it is imported, as it was when the network was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.utils import parametrize

from theta0 import checkpoint
from theta0.data.arrays import images_from, to_numpy
from theta0.data.sampling import Normalization, check_size, normalize
from theta0.errors import DataError, Theta0Error
from theta0.evaluation import check_logits, evaluating
from theta0.space import Space, get_space

FORMAT = 1
_ROUNDING, _OTHER_ROUNDING = 1e-3, 0.02
"""How far apart, as a share of the largest one, logits of the same network may be: of CPUs, and of others with TF32."""


@dataclass(frozen=True)
class Card:
    """What a network is, and how it came to be; ``facts`` are plain texts, numbers, lists and dicts."""

    space: str
    architecture: str
    """In the notation of the space."""
    skeleton: dict[str, Any]
    """The fields of the space's skeleton."""
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    """(C, H, W) of an image."""
    normalization: Normalization
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        try:
            return json.dumps(asdict(self))
        except (TypeError, ValueError) as error:
            raise Theta0Error(f"a card holds plain texts, numbers, lists and dicts: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> Card:
        """The card of :meth:`to_json`."""
        told = json.loads(text)
        facts = told.pop("facts")
        return cls(**{name: _tuples(value) for name, value in told.items()}, facts=facts)


def _tuples(value: Any) -> Any:
    """JSON has lists only."""
    if isinstance(value, dict):
        return {name: _tuples(element) for name, element in value.items()}
    return tuple(_tuples(element) for element in value) if isinstance(value, list) else value


class Model:
    """A network that takes images as people have them, and gives probabilities and names of classes."""

    def __init__(self, module: nn.Module, card: Card, space: Space[Any] | None = None) -> None:
        self.module, self.card, self.space = module.eval(), card, space

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        first = next(self.module.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    def to(self, device: torch.device | str) -> Model:
        """Moves the network."""
        try:
            self.module.to(device)
        except (RuntimeError, AssertionError) as error:
            raise Theta0Error(f"the network cannot be moved to {device}: {error}") from error
        return self

    def predict_proba(self, images: object, *, batch: int = 256, layout: str | None = None) -> npt.NDArray[np.float64]:
        """(N, classes) probabilities of ``images``: uint8, or floats in [0, 1], of the shape of the training images.

        They are (N, C, H, W), (N, H, W, C), or (N, H, W) if grey; ``layout`` says which where both are possible.
        """
        check_size(batch, "the size of a batch")
        pixels = self._pixels(images, layout)
        found = np.empty((len(pixels), len(self.card.classes)))
        with evaluating(self.module):
            for start in range(0, len(pixels), batch):
                part = pixels[start : start + batch].to(self.device)
                logits = self.module(normalize(part, self.card.normalization))
                logits = check_logits(logits, len(part), len(self.card.classes))
                found[start : start + batch] = logits.double().softmax(dim=1).cpu().numpy()
        return found

    def predict(self, images: object, *, batch: int = 256, layout: str | None = None) -> npt.NDArray[np.str_]:
        """(N,) names of the most probable classes; ``images`` are as for :meth:`predict_proba`."""
        best = self.predict_proba(images, batch=batch, layout=layout).argmax(axis=1)
        names: npt.NDArray[np.str_] = np.array(self.card.classes)[best]
        return names

    def _pixels(self, images: object, layout: str | None) -> Tensor:
        """(N, C, H, W) uint8."""
        array = to_numpy(images, "images")
        channels, height, width = self.card.shape
        if layout is None and array.ndim == 4:
            # The shape of the training images decides what the numbers alone leave open.
            fits = {"NCHW": (channels, height, width), "NHWC": (height, width, channels)}
            fitting = [name for name, shape in fits.items() if array.shape[1:] == shape]
            layout = fitting[0] if len(fitting) == 1 else None
        pixels = images_from(array, "images", layout)
        if pixels.shape[1:] != self.card.shape:
            raise DataError(_misfit(tuple(array.shape), tuple(pixels.shape[1:]), self.card.shape))
        return pixels


def _misfit(came: tuple[int, ...], found: tuple[int, ...], shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    if len(came) == 3 and sorted(came) == sorted(shape) and channels != 1:
        way = "a single image needs a first dimension of 1: images[None]"
    elif found[0] != channels:
        way = f"convert them to {channels} channel{'s' if channels > 1 else ''}"
    elif height == width:
        way = (
            f"scale and crop them as theta0 does: theta0.data.resize.fit(images, {height}) with images as a uint8 "
            f"tensor (N, C, H, W)"
        )
    else:
        way = f"scale them to a height of {height} and a width of {width}"
    return f"this network takes images (channels, height, width) of {shape}; found {found}; {way}"


@dataclass(frozen=True)
class Finished:
    """A network without what serves training only, on the CPU."""

    card: Card
    module: nn.Module
    weights: dict[str, Tensor]
    answer: Tensor
    """Its logits for an image that is always the same: how a file is known to give the same network."""


def finished(module: nn.Module, card: Card, space: Space[Any] | None = None) -> Finished:
    """``module`` built anew from its card and its weights, and without auxiliary classifier.

    So what is kept is known to be enough, and to describe this network and no other.
    """
    weights = _weights(module)
    if card.skeleton.get("auxiliary"):
        card = replace(card, skeleton={**card.skeleton, "auxiliary": False})
        weights = {name: value for name, value in weights.items() if not name.startswith("auxiliary.")}
    for name, layer in module.named_modules():
        if isinstance(layer, _NormBase) and layer.running_mean is None:
            raise Theta0Error(
                f"{name} has no running statistics, so what the network says of an image depends on the others of its "
                f"batch; train one with track=True"
            )
    again = rebuilt(card, weights, space)
    answer = _answer(again, card)
    given = _answer(module, card)
    if not _close(given, answer, _ROUNDING if _on_cpu(module) else _OTHER_ROUNDING):
        raise Theta0Error(
            f"the card does not describe this network: {card.architecture} in {card.space}, built anew with the same "
            f"weights, gives other logits; name the architecture and the skeleton that it was built with"
        )
    return Finished(card, again, weights, answer)


def save(path: Path | str, module: nn.Module, card: Card) -> None:
    """Writes a network to one file, which is there whole or not at all; auxiliary classifiers are left out."""
    done = finished(module, card)
    content = {"model": FORMAT, "card": done.card.to_json(), "weights": done.weights, "answer": done.answer}
    checkpoint.write(Path(path), content)


def load(path: Path | str, device: torch.device | str = "cpu", *, space: Space[Any] | None = None) -> Model:
    """The network of :func:`save`, or of an export to safetensors.

    ``space`` is needed where the network is of a space of one's own, and its file is no longer where it was.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        from theta0.export import load_safetensors

        return load_safetensors(path, device, space=space)
    content = checkpoint.read(path)
    version = content.get("model")
    if not isinstance(version, int):
        raise DataError(f"{path}: expected a finished network, found the checkpoint of a training; finish that first")
    if version != FORMAT:
        raise DataError(
            f"{path}: this network has format {version}, and this version of theta0 reads {FORMAT}; read it with the "
            f"version that wrote it"
        )
    return restored(path, Card.from_json(content["card"]), content["weights"], content["answer"], space).to(device)


def restored(
    path: Path, card: Card, weights: Mapping[str, Tensor], answer: Tensor, space: Space[Any] | None = None
) -> Model:
    """The network of a file's contents, if it still gives the ``answer`` that it gave when it was saved."""
    try:
        module = rebuilt(card, weights, space)
    except Theta0Error as error:
        raise DataError(f"{path}: the network cannot be built here: {error}") from error
    if not _close(_answer(module, card), answer, _ROUNDING):
        raise DataError(
            f"{path}: the network gives other logits than when it was saved, so {card.space} builds "
            f"{card.architecture} differently by now; use the version of the space that it was trained with"
        )
    return Model(module, card, space)


def rebuilt(card: Card, weights: Mapping[str, Tensor], space: Space[Any] | None = None) -> nn.Module:
    """The network that ``card`` describes, on the CPU in evaluation mode."""
    space = space or get_space(card.space)
    module = space.build(space.parse(card.architecture), space.options(None, **card.skeleton), seed=0)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        why = " ".join(str(error).split("\n")[1:2]).strip()[:200]
        raise Theta0Error(
            f"the weights do not fit {card.architecture} of {card.space} with the skeleton {card.skeleton}: {why}"
        ) from error
    return module.eval()


def _weights(module: nn.Module) -> dict[str, Tensor]:
    """All that a network keeps, on the CPU; parametrized weights as what they come to."""
    state = {name: value for name, value in module.state_dict().items() if "parametrizations" not in name.split(".")}
    for prefix, part in module.named_modules():
        if parametrize.is_parametrized(part):
            for name in part.parametrizations:
                state[f"{prefix}.{name}".removeprefix(".")] = getattr(part, name)
    return {name: value.detach().cpu().contiguous() for name, value in state.items()}


def _answer(module: nn.Module, card: Card) -> Tensor:
    """Logits (1, classes) for an image that is always the same."""
    count = int(np.prod(card.shape))
    image = (torch.arange(count) * 37 % 256).to(torch.uint8).reshape(1, *card.shape)
    first = next(module.parameters(), None)
    x = normalize(image, card.normalization)
    with evaluating(module):
        logits = module(x if first is None else x.to(first.device))
    return check_logits(logits, 1, len(card.classes)).float().cpu()


def _on_cpu(module: nn.Module) -> bool:
    return all(value.device.type == "cpu" for value in module.parameters())


def _close(first: Tensor, second: Tensor, rounding: float) -> bool:
    """Whether logits are equal up to ``rounding``; another operation moves them farther."""
    scale = max(0.1, float(second.nan_to_num().abs().max()))
    return torch.allclose(first, second, rtol=0, atol=rounding * scale, equal_nan=True)
