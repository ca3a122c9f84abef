from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import theta0
from tests.job.searching import SMALL
from theta0.data import load


def test_it_fits_and_predicts(tmp_path: Path) -> None:
    digits = load("digits").train
    x, y = digits.images.numpy()[:, 0], np.array(list("jihgfedcba"))[digits.labels.numpy()]  # not in their order
    searcher = theta0.Searcher(root=tmp_path, **{**SMALL, "final_epochs": 6})
    with pytest.raises(NotFittedError):
        searcher.predict(x[:3])
    assert searcher.fit(x[:1200], y[:1200]) is searcher
    assert list(searcher.classes_) == list("abcdefghij")
    rest = x[1200:], y[1200:]
    predicted = searcher.predict(rest[0])
    assert predicted.dtype == searcher.classes_.dtype
    assert searcher.score(*rest) == pytest.approx((predicted == rest[1]).mean())
    assert searcher.score(*rest) > 0.3  # of ten classes
    assert searcher.predict_proba(rest[0]).sum(axis=1) == pytest.approx(1)
    assert searcher.found_.path.parent == tmp_path


def test_labels_that_are_numbers(tmp_path: Path) -> None:
    digits = load("digits").train
    kept = digits.labels.numpy() > 7
    x, y = digits.images.numpy()[kept], 10 * digits.labels.numpy()[kept]
    searcher = theta0.Searcher(root=tmp_path, **{**SMALL, "evaluations": 1, "random": 0}).fit(x, y)
    assert set(searcher.predict(x)) <= {80, 90}


def test_it_has_the_options_of_search() -> None:
    import inspect

    ours = inspect.signature(theta0.Searcher).parameters
    theirs = {name: one for name, one in inspect.signature(theta0.search).parameters.items() if name != "data"}
    assert {name: one.default for name, one in ours.items()} == {name: one.default for name, one in theirs.items()}


def test_it_can_be_cloned() -> None:
    searcher = theta0.Searcher(budget="5m", max_params=1e6, seed=3)
    assert clone(searcher).get_params() == searcher.get_params()
