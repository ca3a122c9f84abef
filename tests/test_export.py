from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests import models
from tests.conftest import ROOT
from tests.report import making
from tests.runs.making import open_folder, without_rights
from theta0 import export as module_under_test
from theta0.data.sampling import Normalization
from theta0.errors import DataError, Theta0Error
from theta0.export import IR, OPSET, TOLERANCE, Kind, export, export_run, load_safetensors
from theta0.model import Model, load, save

KINDS: tuple[Kind, ...] = get_args(Kind)
Outputs = tuple[NDArray[Any], NDArray[Any]]

pytest.importorskip("onnxruntime", reason="the extra theta0[export] is not installed")


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(*models.colours())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Path:
    """All exports of a network for colour images that are not square."""
    folder = tmp_path_factory.mktemp("exports")
    for kind in KINDS:
        assert export(model, kind, folder / f"colours.{kind}") == [
            folder / f"colours.{kind}",
            folder / f"colours.{kind}.md",
        ]
    assert len(list(folder.iterdir())) == 6
    return folder


def ours(model: Model, images: torch.Tensor) -> Outputs:
    probabilities = models.probabilities(model.module, model.card, images).numpy()
    mean, std = (np.array(values)[:, None, None] for values in model.card.normalization)
    x = torch.from_numpy(((images.numpy() / 255 - mean) / std).astype(np.float32))
    with torch.no_grad():
        return model.module(x).numpy(), probabilities


def equal(found: Outputs, expected: Outputs) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == np.float32
        assert float(np.abs(one - other).max()) <= TOLERANCE


def by_onnx(path: Path, images: torch.Tensor) -> Outputs:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    logits, probabilities = session.run(["logits", "probabilities"], {"images": images.numpy()})
    return logits, probabilities


def by_pt2(path: Path, images: torch.Tensor) -> Outputs:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # torch's own words on its own classes
        logits, probabilities = torch.export.load(path).module()(images)
    return logits.detach().numpy(), probabilities.detach().numpy()


@pytest.mark.parametrize(("kind", "by"), [("onnx", by_onnx), ("pt2", by_pt2)])
def test_any_number_of_bytes_gives_our_outputs(
    folder: Path, model: Model, kind: str, by: Callable[[Path, torch.Tensor], Outputs]
) -> None:
    for count in (1, 2, 5, 33):
        images = models.images(model.card, count, seed=count)
        equal(by(folder / f"colours.{kind}", images), ours(model, images))


_BLOCKED = """\
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "theta0":
            raise ModuleNotFoundError("theta0 is not installed here", name="theta0")
sys.meta_path.insert(0, Blocked())
sys.path[:] = [path for path in sys.path if path]
"""
_RUN = {
    "onnx": """
import numpy, onnxruntime, json
session = onnxruntime.InferenceSession("colours.onnx")
logits, probabilities = session.run(None, {"images": numpy.load("images.npy")})
texts = session.get_modelmeta().custom_metadata_map
""",
    "pt2": """
import numpy, torch, json
texts = {"classes": "", "card": "", "model_card": ""}
network = torch.export.load("colours.pt2", extra_files=texts).module()
logits, probabilities = (y.detach().numpy() for y in network(torch.from_numpy(numpy.load("images.npy"))))
""",
}
_TELL = """
numpy.savez("outputs.npz", logits=logits, probabilities=probabilities)
print(json.dumps(dict(texts)))
assert "theta0" not in sys.modules
try:
    import theta0
except ModuleNotFoundError:
    print("no theta0")
"""


def elsewhere(folder: Path, code: str) -> str:
    """What a Python says that has no theta0, in a folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore::FutureWarning", "-c", _BLOCKED + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["onnx", "pt2"])
def test_it_runs_where_theta0_is_not(folder: Path, model: Model, tmp_path: Path, kind: str) -> None:
    """Weights, preprocessing, names of the classes and model card: all is in the one file."""
    images = models.images(model.card, 9)
    (tmp_path / f"colours.{kind}").write_bytes((folder / f"colours.{kind}").read_bytes())
    np.save(tmp_path / "images.npy", images.numpy())
    told, end = elsewhere(tmp_path, _RUN[kind] + _TELL).splitlines()
    assert end == "no theta0"
    with np.load(tmp_path / "outputs.npz") as found:
        outputs = found["logits"], found["probabilities"]
    equal(outputs, ours(model, images))
    texts = json.loads(told)
    assert json.loads(texts["classes"]) == list(model.card.classes)
    assert json.loads(texts["card"])["architecture"] == models.CELL
    assert texts["model_card"] == (folder / f"colours.{kind}.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_the_model_card_works(folder: Path, model: Model, kind: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (folder / f"colours.{kind}.md").read_text(), re.DOTALL)
    images = torch.zeros(1, *model.card.shape, dtype=torch.uint8)
    expected = model.predict(images)[0]
    if kind == "safetensors":
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder, env={**os.environ}
        )
        assert done.stdout.startswith(f"['{expected}']")
    else:
        assert elsewhere(folder, code).strip() == expected


def test_safetensors_are_rebuilt_bit_for_bit(folder: Path, model: Model) -> None:
    path = folder / "colours.safetensors"
    for found in (load(path), load_safetensors(path)):
        assert found.card == model.card
        images = models.images(model.card)
        assert np.array_equal(found.predict_proba(images), model.predict_proba(images))
        ours, theirs = model.module.state_dict(), found.module.state_dict()
        assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


def test_safetensors_are_read_by_others(folder: Path, model: Model) -> None:
    from safetensors import safe_open

    with safe_open(folder / "colours.safetensors", "pt") as file:
        assert set(file.keys()) == set(model.module.state_dict())
        assert json.loads(file.metadata()["classes"]) == list(model.card.classes)
        assert file.metadata()["format"] == "pt"


def test_onnx_of_the_promised_version(folder: Path) -> None:
    import onnx

    found = onnx.load(folder / "colours.onnx")
    onnx.checker.check_model(found, full_check=True)
    assert {one.domain: one.version for one in found.opset_import if not one.domain} == {"": OPSET}
    assert found.ir_version == IR
    assert found.producer_name == "theta0"
    (given,) = found.graph.input
    assert given.name == "images"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    assert [size.dim_param or size.dim_value for size in given.type.tensor_type.shape.dim] == ["N", 3, 8, 12]
    assert [one.name for one in found.graph.output] == ["logits", "probabilities"]


def test_nothing_tells_of_this_machine(folder: Path) -> None:
    """No path of a source file travels with a model."""
    for kind in ("onnx", "pt2"):
        path = folder / f"colours.{kind}"
        whole = path.read_bytes()
        if kind == "pt2":
            with zipfile.ZipFile(path) as archive:
                whole = b"".join(archive.read(name) for name in archive.namelist())
        for word in (str(ROOT), "site-packages", str(Path.home()) + "/"):
            assert word.encode() not in whole, (kind, word)


def test_the_model_card(folder: Path, model: Model) -> None:
    for kind in KINDS:
        text = (folder / f"colours.{kind}.md").read_text()
        parameters = sum(value.numel() for value in model.module.parameters())
        for words in (
            f"# colours.{kind}",
            "An image classifier for 4 classes: kind 0, kind 1, kind 2, kind 3.",
            f"- architecture: `{models.CELL}`",
            f"- parameters: {parameters:,}",
            "| test | 360 | 97.50 | 0.0934 | 1.12 |",
            "`images` are uint8 (N, 3, 8, 12): any number, red, green, blue, values from 0 to 255.",
            "- data: digits",
            "## Limits",
        ):
            assert words in text, words
        assert ("theta0 is not needed" in text) == (kind != "safetensors")


def test_a_card_without_a_test(tmp_path: Path, model: Model) -> None:
    module, card = models.digits()
    export(Model(module, replace(card, facts={})), "safetensors", tmp_path / "x")
    text = (tmp_path / "x.safetensors.md").read_text()
    assert "Not measured on images that were kept aside." in text
    assert "1 channel, values" in text


def kept(path: Path) -> list[str]:
    """The names of the weights in a file, without that of the whole."""
    if path.suffix == ".onnx":
        import onnx

        names = [one.name for one in onnx.load(path).graph.initializer]
    else:
        names = list(torch.export.load(path).state_dict)
    return [name.removeprefix("network.") for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_network_with_auxiliary_classifier_and_drop_path(tmp_path: Path, kind: Kind) -> None:
    module, card = models.towered()
    path, _ = export(Model(module.train(), card), kind, tmp_path / "towered")
    images = models.images(card, 3)
    expected = models.probabilities(module, card, images).numpy()
    if kind == "safetensors":
        assert load(path).predict_proba(images) == pytest.approx(expected, abs=TOLERANCE)
    else:
        found = {"onnx": by_onnx, "pt2": by_pt2}[kind](path, images)[1]
        assert found == pytest.approx(expected, abs=TOLERANCE)
        names = kept(path)
        assert len(names) > 20
        assert not any(name.startswith("auxiliary") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("space", ["nasbench101", "nasbench1shot1_1", "mlp"])
def test_other_spaces(tmp_path: Path, space: str) -> None:
    from tests.contracts.test_spaces import SMALL
    from theta0.space import get_space

    found = get_space(space)
    architecture = found.format(found.sample(np.random.default_rng(3)))
    module, card = models.made(space, architecture, **SMALL[space])
    images = models.images(card, 3)
    expected = models.probabilities(module, card, images).numpy()
    for kind, by in (("onnx", by_onnx), ("pt2", by_pt2)):
        path, _ = export(Model(module, card), kind, tmp_path / space)  # type: ignore[arg-type]
        assert by(path, images)[1] == pytest.approx(expected, abs=TOLERANCE)


# What is refused.


def test_the_export_is_not_written_if_it_differs(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module_under_test.shift_scale

    def wrong(normalization: Normalization, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
        shift, scale = right(normalization, channels)
        return shift, 1.01 * scale

    monkeypatch.setattr(module_under_test, "shift_scale", wrong)
    with pytest.raises(
        Theta0Error, match=r"the logits of the exported network differ from its own by .*nothing was wri"
    ):
        export(model, "pt2", tmp_path / "x" / "colours.pt2")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_none_differ(model: Model) -> None:
    from theta0.model import finished

    done = finished(model.module, model.card)
    for broken in (torch.full((6, 4), torch.nan), torch.zeros(6, 3)):
        with pytest.raises(Theta0Error, match="differ from its own by"):
            module_under_test._check(done, lambda images, y=broken: [y[: len(images)], y[: len(images)]])


@pytest.mark.parametrize(
    ("kind", "package"), [("onnx", "onnx"), ("onnx", "onnxruntime"), ("onnx", "onnxscript"), ("safetensors",) * 2]
)
def test_missing_packages_are_named(
    tmp_path: Path, folder: Path, model: Model, monkeypatch: pytest.MonkeyPatch, kind: Kind, package: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else found(name, *more)
    )
    with pytest.raises(Theta0Error, match=rf"an export to {kind} needs {package}: pip install 'theta0\[export\]'"):
        export(model, kind, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    if kind == "safetensors":
        with pytest.raises(Theta0Error, match="safetensors are read with the package: pip install"):
            load(folder / "colours.safetensors")


def test_unknown_formats(tmp_path: Path, model: Model) -> None:
    with pytest.raises(Theta0Error, match=r"there is no export to 'onx'; did you mean onnx\?"):
        export(model, "onx", tmp_path / "x")  # type: ignore[arg-type]


def test_a_network_that_cannot_be_traced(tmp_path: Path) -> None:
    file = tmp_path / "mine_for_exports.py"
    text = (ROOT / "examples" / "plain_space.py").read_text()
    traced = "return torch.relu(self.path(x) + self.shortcut(x))"
    assert traced in text
    file.write_text(text.replace(traced, f"return x if float(x.sum()) > 1e9 else {traced.removeprefix('return ')}"))
    module, card = models.made(f"{file}:PlainResNet", "depth=1, width=8, kernel=3", shape=(1, 8, 8), classes=10)
    with pytest.raises(Theta0Error, match=r"cannot be exported to pt2: .*must be traceable by torch.export") as caught:
        export(Model(module, card), "pt2", tmp_path / "out" / "x")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    path, _ = export(Model(module, card), "safetensors", tmp_path / "out" / "x")
    images = models.images(card)
    assert np.array_equal(load(path).predict_proba(images), Model(module, card).predict_proba(images))


def test_damaged_and_foreign_safetensors(folder: Path, tmp_path: Path, model: Model) -> None:
    from safetensors.torch import save as pack

    whole = (folder / "colours.safetensors").read_bytes()
    bad = tmp_path / "bad.safetensors"
    for content in (b"", b"some text that is long enough", whole[:-10]):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"bad.safetensors: expected safetensors, found something else or a part"):
            load(bad)
    bad.write_bytes(whole[:-2] + bytes([whole[-2] ^ 64]) + whole[-1:])
    with pytest.raises(DataError, match="the weights are damaged"):
        load(bad)
    bad.write_bytes(pack({"x": torch.zeros(2)}))
    with pytest.raises(DataError, match="were not written by theta0"):
        load(bad)
    bad.write_bytes(pack({"x": torch.zeros(2)}, {"theta0": "9"}))
    with pytest.raises(DataError, match="this network has format 9, and this version of theta0 reads 1"):
        load(bad)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "no.safetensors")
    bad.write_bytes(pack({"x": torch.zeros(2)}, {"theta0": "1"}))
    with pytest.raises(DataError, match="the weights are damaged"):
        load(bad)
    weights = model.module.state_dict()
    digest = module_under_test._digest(weights)
    for told in ({}, {"card": "{}", "answer": "[]"}, {"card": "x", "answer": "[]"}, {"card": "[]"}):
        bad.write_bytes(pack(weights, {"theta0": "1", "sha256": digest, **told}))
        with pytest.raises(DataError, match=r"what the file tells of its network is damaged \(.*; export it again"):
            load(bad)


def test_places_where_nothing_can_be_written(tmp_path: Path, model: Model) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        Theta0Error, match=r"file is a file, so that nothing can be written to the folder .*; name anot"
    ):
        export(model, "onnx", tmp_path / "file" / "x")
    refusal = pytest.raises(Theta0Error, match=r"Permission denied|nothing may be written to")
    with open_folder() as folder, without_rights(folder), refusal:
        export(model, "safetensors", folder / "x")


# Of a run.


def run_with_model(root: Path, trained: bool = True) -> Path:
    """A finished run."""
    run, _ = making.begin(root, trials=2, pooled=0)
    making.finish(run)
    if trained:
        save(run.path / "model.ckpt", *models.digits())
    run.close()
    return run.path


def test_the_export_of_a_run(tmp_path: Path) -> None:
    from theta0.runs import Run

    path = run_with_model(tmp_path)
    with Run.open(path) as run:
        name = f"{run.name}.safetensors"
        assert export_run(run, "safetensors") == [path / "export" / name, path / "export" / f"{name}.md"]
        assert export_run(run, "safetensors", tmp_path / "some.where")[0] == tmp_path / "some.where" / name
        assert export_run(run, "safetensors", tmp_path / "x.safetensors")[0] == tmp_path / "x.safetensors"
        images = models.images(models.digits()[1])
        expected = load(path / "model.ckpt").predict_proba(images)
        assert np.array_equal(load(tmp_path / "x.safetensors").predict_proba(images), expected)


def test_runs_without_a_model(tmp_path: Path) -> None:
    from theta0.runs import Run

    with making.failed(tmp_path) as run, pytest.raises(Theta0Error, match="it is failed; go on with it: theta0 resume"):
        export_run(run, "onnx")
    with Run.open(run_with_model(tmp_path, trained=False)) as run:
        with pytest.raises(
            DataError, match=r"model.ckpt: the run is finished, and the file of its network is not there"
        ):
            export_run(run, "onnx")
        assert not (run.path / "export").exists()
