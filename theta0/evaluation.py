"""How good a network is on a data set: accuracy, likelihood, calibration, and what it takes for what.

    found = evaluate(model, data.test, normalization=data.normalization)
    found.accuracy, found.nll, found.ece, found.confusion

Everything is added up on the device of the network, in float64. The calibration error is that of C. Guo et al., "On
Calibration of Modern Neural Networks", ICML 2017: images fall into 15 bins by the confidence of their prediction, and
the error is the mean distance between confidence and accuracy of a bin, weighted by its images.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theta0.data.dataset import ImageDataset
from theta0.data.sampling import Normalization
from theta0.errors import DivergedError, Theta0Error
from theta0.recipe import Precision

BINS = 15


@dataclass(frozen=True)
class Evaluation:
    """What a network does on ``images`` images."""

    images: int
    accuracy: float
    """Percent."""
    nll: float
    """Mean negative log-likelihood of the true class, natural logarithm."""
    ece: float
    """Expected calibration error, percent."""
    confusion: tuple[tuple[int, ...], ...]
    """How many images of class (row) were taken for class (column)."""

    @property
    def error(self) -> float:
        """Percent of images that are taken for something else."""
        return 100 - self.accuracy


class Tally:
    """Adds up batches of logits (N, classes) and labels (N,)."""

    def __init__(self, classes: int, device: torch.device | str = "cpu") -> None:
        self.classes = classes
        self._confusion = torch.zeros(classes, classes, dtype=torch.int64, device=device)
        self._nll = torch.zeros((), dtype=torch.float64, device=device)
        self._bins = torch.zeros(3, BINS, dtype=torch.float64, device=device)  # images, confidences, hits

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """One batch; nothing waits for the device."""
        log_probabilities = F.log_softmax(check_logits(logits, len(labels), self.classes).double(), dim=1)
        confidence, predicted = log_probabilities.exp().max(dim=1)
        # Bins are open below. What is not finite goes anywhere: it shows in the likelihood, which is then refused.
        place = (confidence.nan_to_num() * BINS).ceil().long().sub(1).clamp(0, BINS - 1)
        terms = torch.stack([torch.ones_like(confidence), confidence, (predicted == labels).double()])
        self._bins += terms @ F.one_hot(place, BINS).double()
        self._nll -= log_probabilities.gather(1, labels[:, None]).sum()
        pairs = torch.bincount(labels * self.classes + predicted, minlength=self.classes**2)
        self._confusion += pairs.view(self.classes, self.classes)

    def evaluation(self) -> Evaluation:
        """What has been added up so far."""
        counts, confidences, hits = self._bins.cpu()
        images, nll = int(counts.sum()), float(self._nll)
        if not images:
            raise Theta0Error("an evaluation needs at least one image")
        if not torch.isfinite(self._nll):
            raise DivergedError(
                f"the logits of {images} images are not all finite; the training diverged: lower its learning rate, "
                f"clip gradients or warm up"
            )
        return Evaluation(
            images,
            100 * float(hits.sum()) / images,
            nll / images,
            100 * float((confidences - hits).abs().sum()) / images,
            tuple(tuple(row) for row in self._confusion.tolist()),
        )


def check_logits(output: object, count: int, classes: int) -> Tensor:
    """What a network gave for ``count`` images, if it is (count, classes)."""
    if not isinstance(output, Tensor) or output.shape != (count, classes):
        shape = f"a tensor {tuple(output.shape)}" if isinstance(output, Tensor) else f"a {type(output).__name__}"
        raise Theta0Error(
            f"{count} images of {classes} classes need logits ({count}, {classes}), but the network gives {shape}; "
            f"build it with classes={classes}"
        )
    return output


def autocast(device: torch.device, precision: Precision) -> torch.autocast:
    """The context in which a network computes in ``precision``."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """A block without gradients in which ``model`` is in evaluation mode; each module gets its mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def evaluate(
    model: nn.Module,
    dataset: ImageDataset,
    *,
    normalization: Normalization,
    batch: int = 256,
    precision: Precision = "fp32",
) -> Evaluation:
    """Evaluates ``model`` on all images, on the device where its parameters are.

    ``normalization`` is that of the images which it was trained on.
    """
    first = next(model.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    tally = Tally(len(dataset.classes), device)
    with evaluating(model):
        for x, y in dataset.to(device).batches(batch, normalization=normalization):
            with autocast(device, precision):
                logits = model(x)
            tally.add(logits, y)
    return tally.evaluation()
