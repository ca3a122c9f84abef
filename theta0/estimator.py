"""The main job for people who come from scikit-learn.

model = theta0.Searcher(budget="10m", max_params=1e6).fit(x, y)     # x: uint8 images, or floats in [0, 1]
model.predict(images)
model.score(x_test, y_test)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from theta0.data.arrays import to_numpy
from theta0.job import Found, search


class Searcher(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Searches when it is fitted; every option is one of :func:`theta0.search`.

    After :meth:`fit`, ``found_`` is what the search found, and ``classes_`` are the labels in their order.
    """

    def __init__(
        self,
        *,
        space: str = "nasbench201",
        searcher: str = "hnas",
        budget: float | str | None = None,
        evaluations: int | None = None,
        max_params: float | None = None,
        max_flops: float | None = None,
        max_latency: float | None = None,
        seed: int = 0,
        device: str = "auto",
        precision: str = "auto",
        size: int | None = None,
        skeleton: str | None = None,
        options: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        recipe: str = "brief",
        pool: int | None = None,
        epochs: int | None = None,
        final_epochs: int | None = None,
        random: int | None = None,
        root: str | os.PathLike[str] | None = None,
        progress: TextIO | None = None,
    ) -> None:
        self.space, self.searcher, self.budget, self.evaluations = space, searcher, budget, evaluations
        self.max_params, self.max_flops, self.max_latency = max_params, max_flops, max_latency
        self.seed, self.device, self.precision, self.size = seed, device, precision, size
        self.skeleton, self.options, self.settings, self.recipe = skeleton, options, settings, recipe
        self.pool, self.epochs, self.final_epochs, self.random = pool, epochs, final_epochs, random
        self.root, self.progress = root, progress

    def fit(self, x: object, y: object) -> Searcher:
        """Images (N, H, W), (N, C, H, W) or (N, H, W, C), and their labels (N,) of any kind."""
        labels = to_numpy(y, "y")
        self.classes_ = np.unique(labels)
        self.found_: Found = search((x, y), **self.get_params())
        return self

    def predict_proba(self, x: object) -> npt.NDArray[np.float64]:
        """(N, classes) probabilities, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.found_.model.predict_proba(x)

    def predict(self, x: object) -> npt.NDArray[Any]:
        """(N,) labels."""
        best = self.predict_proba(x).argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels
