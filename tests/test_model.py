from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests import models
from tests.conftest import ROOT
from tests.contracts.test_spaces import NAMES, SMALL
from theta0 import checkpoint
from theta0.errors import DataError, Theta0Error
from theta0.model import FORMAT, Card, Model, load, save
from theta0.network.cells import DropPath
from theta0.space import get_space


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module, card = models.digits()
    path = tmp_path_factory.mktemp("model") / "model.ckpt"
    save(path, module, card)
    return path


@pytest.fixture(scope="module")
def colours() -> Model:
    return Model(*models.colours())


def tampered(path: Path, to: Path, **changes: Any) -> Path:
    """A whole file of other content."""
    checkpoint.write(to, {**checkpoint.read(path), **changes})
    return to


# There and back.


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_every_space_comes_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    space = get_space(name)
    architecture = space.format(space.sample(np.random.default_rng(3)))
    module, card = models.made(name, architecture, **SMALL[name])
    before = {key: value.clone() for key, value in module.state_dict().items()}
    save(tmp_path / "model.ckpt", module, card)
    found = load(tmp_path / "model.ckpt")
    assert found.card == card
    assert not found.module.training
    x = models.images(card)
    with torch.no_grad():
        same = module(x.float()), found.module(x.float())
    assert torch.equal(*same)
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert {path.name for path in tmp_path.iterdir()} == {"model.ckpt"}


def test_the_same_file_twice(path: Path, tmp_path: Path) -> None:
    save(tmp_path / "model.ckpt", *models.digits())
    assert (tmp_path / "model.ckpt").read_bytes() == path.read_bytes()


def test_a_network_under_way_is_left_as_it_is(tmp_path: Path) -> None:
    module, card = models.towered()
    module.train()
    part = next(one for one in module.modules() if isinstance(one, DropPath))
    part.eval()
    state = torch.random.get_rng_state()
    save(tmp_path / "model.ckpt", module, card)
    assert module.training
    assert not part.training
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_auxiliary_classifier_is_left_out(tmp_path: Path) -> None:
    module, card = models.towered()
    save(tmp_path / "model.ckpt", module, card)
    found = load(tmp_path / "model.ckpt")
    assert any(name.startswith("auxiliary.") for name in module.state_dict())
    assert not any(name.startswith("auxiliary.") for name in found.module.state_dict())
    assert found.card == replace(card, skeleton={**card.skeleton, "auxiliary": False})
    x = models.images(card)
    expected = models.probabilities(module, card, x).numpy()
    assert found.predict_proba(x) == pytest.approx(expected, abs=1e-6)


def test_parametrized_weights_are_kept_as_what_they_come_to(tmp_path: Path) -> None:
    space = get_space("nasbench201")
    options = space.options(None, shape=(1, 8, 8), channels=4, cells=1)
    module = space.build(space.parse(models.CELL), options, seed=0, initialization="ntk").eval()
    card = models.digits()[1]
    save(tmp_path / "model.ckpt", module, card)
    found = load(tmp_path / "model.ckpt")
    x = models.images(card).float()
    with torch.no_grad():
        assert torch.equal(module(x), found.module(x))
    assert not any("parametrizations" in name for name in found.module.state_dict())


def test_a_card_in_text() -> None:
    card = models.colours()[1]
    assert Card.from_json(card.to_json()) == card
    with pytest.raises(Theta0Error, match="plain texts, numbers, lists and dicts"):
        replace(card, facts={"x": object()}).to_json()


# What it says of images.


def test_probabilities_are_those_of_the_network(path: Path) -> None:
    module, card = models.digits()
    x = models.images(card, 9)
    expected = models.probabilities(module, card, x).numpy()
    found = load(path)
    for batch in (1, 4, 256):
        given = found.predict_proba(x, batch=batch)
        assert given.dtype == np.float64
        assert given == pytest.approx(expected, abs=1e-6)
        assert given.sum(axis=1) == pytest.approx(np.ones(9))
    assert found.predict(x).tolist() == [card.classes[best] for best in expected.argmax(axis=1)]


def test_layouts(colours: Model) -> None:
    x = models.images(colours.card)
    expected = colours.predict_proba(x)
    last = x.permute(0, 2, 3, 1)
    for given, layout in ((last, None), (last.numpy(), "NHWC"), (x.numpy(), None), (x.tolist(), "NCHW")):
        if isinstance(given, list):
            given = np.array(given, dtype=np.uint8)
        assert np.array_equal(colours.predict_proba(given, layout=layout), expected)


def test_grey_images(path: Path) -> None:
    found = load(path)
    x = models.images(found.card)
    expected = found.predict_proba(x)
    for given in (
        x[:, 0],
        x.permute(0, 2, 3, 1),
        x.numpy()[:, 0],
        np.asfortranarray(x.numpy()),
        x[:, 0].numpy()[:, :, :],
    ):
        assert np.array_equal(found.predict_proba(given), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_the_same_as_bytes(colours: Model, dtype: type) -> None:
    x = models.images(colours.card)
    floats = (x.numpy().astype(np.float64) / 255).astype(dtype)
    assert np.array_equal(colours.predict_proba(floats), colours.predict_proba(x))
    assert np.array_equal(colours.predict_proba(torch.from_numpy(floats)), colours.predict_proba(x))


def test_a_shape_with_two_readings() -> None:
    """That of the training images decides."""
    module, card = models.made("nasbench201", models.CELL, shape=(3, 8, 3), channels=4, cells=1)
    model, x = Model(module, card), models.images(models.made("nasbench201", models.CELL, shape=(3, 8, 3))[1])
    assert np.array_equal(model.predict_proba(x), model.predict_proba(x.permute(0, 2, 3, 1)))
    cube, card = models.made("nasbench201", models.CELL, shape=(3, 3, 3), channels=4, cells=1)
    both = Model(cube, card)
    x = models.images(card)
    with pytest.raises(DataError, match="could be channels first or last"):
        both.predict(x)
    assert np.array_equal(
        both.predict_proba(x, layout="NCHW"), both.predict_proba(x.permute(0, 2, 3, 1), layout="NHWC")
    )


def test_no_images(path: Path) -> None:
    found = load(path)
    assert found.predict_proba(np.zeros((0, 8, 8), dtype=np.uint8)).shape == (0, 10)
    assert found.predict(np.zeros((0, 8, 8), dtype=np.uint8)).tolist() == []


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            (2, 3, 8, 11),
            r"images \(channels, height, width\) of \(3, 8, 12\); found \(3, 8, 11\); scale them to a height of",
        ),
        ((2, 1, 8, 12), "convert them to 3 channels"),
        ((5, 8, 12), "convert them to 3 channels"),
        ((3, 8, 12), r"a single image needs a first dimension of 1: images\[None\]"),
        ((8, 12, 3), r"a single image needs a first dimension of 1: images\[None\]"),
        ((8, 12), r"images have the shape \(N, H, W\)"),
        ((2, 5, 8, 12), "has no dimension of 1 or 3 channels"),
    ],
)
def test_wrong_shapes_are_named(colours: Model, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(DataError, match=words):
        colours.predict(np.zeros(shape, dtype=np.uint8))


def test_wrong_sizes_of_square_images(path: Path) -> None:
    with pytest.raises(DataError, match=r"theta0.data.resize.fit\(images, 8\)"):
        load(path).predict(np.zeros((2, 28, 28), dtype=np.uint8))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((1, 8, 8), dtype=np.int64), "images are uint8, or floats in"),
        (np.full((1, 8, 8), 2.0), "divide by 255"),
        (np.full((1, 8, 8), np.nan), "without NaN"),
        ([[1, 2], [3]], "rows of different lengths"),
        ([object()], "Python objects"),
    ],
)
def test_wrong_images_are_named(path: Path, given: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load(path).predict(given)


@pytest.mark.parametrize("batch", [0, -1, 2.5, True])
def test_wrong_batches_are_named(path: Path, batch: Any) -> None:
    with pytest.raises(DataError, match="the size of a batch is an integer of 1 or more"):
        load(path).predict(np.zeros((3, 8, 8), dtype=np.uint8), batch=batch)


def test_devices(path: Path) -> None:
    found = load(path, "cpu")
    assert found.device == torch.device("cpu")
    assert found.to("cpu") is found
    for name in ("nonsense", "cuda:77"):
        with pytest.raises(Theta0Error, match=f"the network cannot be moved to {name}"):
            load(path, name)
    assert Model(nn.Identity(), found.card).device == torch.device("cpu")


# What is refused.


def test_a_network_without_running_statistics(tmp_path: Path) -> None:
    module, card = models.made("nasbench201", models.CELL, shape=(1, 8, 8), channels=4, cells=1, track=False)
    with pytest.raises(Theta0Error, match=r"has no running statistics, .*; train one with track=True"):
        save(tmp_path / "model.ckpt", module, card)
    assert list(tmp_path.iterdir()) == []


def test_cards_that_do_not_describe_the_network(tmp_path: Path) -> None:
    module, card = models.digits()
    other = models.CELL.replace("avg_pool_3x3", "skip_connect")  # the same weights
    for changes, words in (
        ({"architecture": other}, "the card does not describe this network"),
        ({"architecture": models.CELL.replace("nor_conv_1x1~2", "none~2")}, "the weights do not fit"),
        ({"skeleton": {**card.skeleton, "channels": 8}}, "the weights do not fit"),
        ({"classes": card.classes[1:]}, "need logits"),
        ({"space": "nasbench21"}, "did you mean nasbench201"),
        ({"architecture": "|x~0|"}, "expected one of"),
        ({"normalization": ((0.1, 0.2), (0.3, 0.4))}, "normalization has 2 means"),
    ):
        with pytest.raises(Theta0Error, match=words):
            save(tmp_path / "model.ckpt", module, replace(card, **changes))
    assert list(tmp_path.iterdir()) == []


def test_damaged_files(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    bad = tmp_path / "model.ckpt"
    for content in (whole[:-10], whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:]):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"model.ckpt: .* damaged"):
            load(bad)
    for content in (b"", b"a text", b"PK\x03\x04"):
        bad.write_bytes(content)
        with pytest.raises(DataError, match="found something else"):
            load(bad)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "nowhere.ckpt")


def test_files_of_others(path: Path, tmp_path: Path) -> None:
    bad = tmp_path / "model.ckpt"
    checkpoint.write(bad, {"identity": {"seed": 0}})
    with pytest.raises(DataError, match="found the checkpoint of a training; finish that first"):
        load(bad)
    for version in (FORMAT + 1, FORMAT - 1):
        with pytest.raises(DataError, match=f"format {version}, and this version of theta0 reads {FORMAT}"):
            load(tampered(path, bad, model=version))


def test_a_space_that_builds_something_else_by_now(path: Path, tmp_path: Path) -> None:
    content = checkpoint.read(path)
    bad = tampered(path, tmp_path / "model.ckpt", answer=content["answer"] + 1)
    with pytest.raises(DataError, match="gives other logits than when it was saved"):
        load(bad)
    fewer = {name: value for name, value in content["weights"].items() if "classifier" not in name}
    if len(fewer) == len(content["weights"]):
        fewer = dict(list(fewer.items())[1:])
    with pytest.raises(DataError, match="the network cannot be built here: the weights do not fit"):
        load(tampered(path, bad, weights=fewer))
    nan = {
        name: value * torch.nan if value.is_floating_point() else value for name, value in content["weights"].items()
    }
    with pytest.raises(DataError, match="gives other logits"):
        load(tampered(path, bad, weights=nan))


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the checkpoint cannot be written"):
        save(tmp_path / "no" / "model.ckpt", *models.digits())


# Spaces of one's own.


def test_a_space_of_one_s_own(tmp_path: Path) -> None:
    file = Path(shutil.copy(ROOT / "examples" / "plain_space.py", tmp_path / "mine_for_models.py"))
    name = f"{file}:PlainResNet"
    module, card = models.made(name, "depth=1, width=8, kernel=3", shape=(1, 8, 8), classes=10)
    path = tmp_path / "model.ckpt"
    save(path, module, card)
    x = models.images(card)
    expected = load(path).predict_proba(x)
    space = get_space(name)
    file.unlink()
    with pytest.raises(DataError, match=r"model.ckpt: the network cannot be built here: .*mine_for_models"):
        load(path)
    assert np.array_equal(load(path, space=space).predict_proba(x), expected)
    with pytest.raises(DataError, match="the network cannot be built here"):
        load(path, space=get_space("nasbench201"))


def test_the_network_of_a_model_is_in_evaluation_mode() -> None:
    module, card = models.towered()
    model = Model(copy.deepcopy(module).train(), card)
    x = models.images(card)
    assert np.array_equal(model.predict_proba(x), model.predict_proba(x))
    assert not model.module.training
