"""Trained networks for other programs: ONNX, torch's pt2, safetensors.

    export(load("runs/.../model.ckpt"), "onnx", Path("digits.onnx"))     # digits.onnx and digits.onnx.md

ONNX and pt2 files run without theta0. They take images as bytes, any number of them, normalise them, and give logits
and probabilities; the names of the classes are in the file. Safetensors hold the weights, and what
:func:`load_safetensors` needs to build the network around them. Nothing is written before it has been run and compared
with the network itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theta0 import checkpoint, count
from theta0.data.sampling import Normalization, normalize, shift_scale
from theta0.errors import DataError, Theta0Error, nearest
from theta0.evaluation import evaluating
from theta0.model import FORMAT, Card, Finished, Model, finished, load, restored
from theta0.network.cells import DropPath
from theta0.runs import Run
from theta0.space import Space

Kind = Literal["onnx", "pt2", "safetensors"]

OPSET, IR = 18, 8
"""Of the ONNX file: what onnxruntime reads since 1.14, of February 2023."""
TOLERANCE = 1e-4
_OUTPUTS = ("logits", "probabilities")
_FILE = "model.ckpt"


def export_run(run: Run, kind: Kind, out: Path | None = None) -> list[Path]:
    """Exports the finished network of ``run``, into the run's own folder ``export`` if nothing else is said.

    ``out`` is the name of the file if it ends like one, else a folder.
    """
    path = run.path / _FILE
    if not path.is_file():
        raise Theta0Error(
            f"the run {run.name} has no finished network: it is {run.state}; go on with it: theta0 resume {run.name}"
        )
    if out is None or out.suffix != f".{kind}":
        out = (out or run.path / "export") / f"{run.name}.{kind}"
    return export(load(path), kind, out)


def export(model: Model, kind: Kind, path: Path) -> list[Path]:
    """Writes ``model`` to ``path``, and a model card in Markdown beside it; gives the paths of both.

    The ending of ``kind`` is added to the name if it is not there.
    """
    if kind not in _MAKERS:
        raise Theta0Error(f"there is no export to {kind!r}; {nearest(kind, _MAKERS)}")
    make, packages = _MAKERS[kind]
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Theta0Error(f"an export to {kind} needs {' and '.join(missing)}: pip install 'theta0[export]'")
    path = path if path.suffix == f".{kind}" else path.with_name(f"{path.name}.{kind}")
    done = finished(model.module, model.card, model.space)
    words = describe(done, kind, path.name)
    body = make(done, words)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: there cannot be a folder {path.parent}: {error}; name another") from error
    card = path.with_name(f"{path.name}.md")
    checkpoint.replace(path, body, what="export")
    checkpoint.replace(card, words.encode(), what="model card")
    return [path, card]


# Graphs that run by themselves.


class _Whole(nn.Module):
    """From bytes to logits and probabilities."""

    shift: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, normalization: Normalization, channels: int) -> None:
        super().__init__()
        self.network = network
        shift, scale = shift_scale(normalization, channels)
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(N, C, H, W) uint8 to (N, classes) twice."""
        logits = self.network((images.float() - self.shift) * self.scale)
        return logits, logits.softmax(dim=1)


def _program(done: Finished) -> torch.export.ExportedProgram:
    """The graph of everything, for any number of images; nothing in it tells of this machine."""
    whole = _Whole(_plain(done.module), done.card.normalization, done.card.shape[0]).requires_grad_(False).eval()
    images = torch.zeros(2, *done.card.shape, dtype=torch.uint8)
    program = torch.export.export(whole, (images,), dynamic_shapes={"images": {0: torch.export.Dim("N", min=1)}})
    for node in program.graph.nodes:
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack"):
            node.meta.pop(key, None)
    return program


def _plain(network: nn.Module) -> nn.Module:
    """Without the drop-path modules, which do nothing in a finished network."""
    for module in network.modules():
        for name, child in module.named_children():
            if isinstance(child, DropPath):
                setattr(module, name, nn.Identity())
    return network


def _pt2(done: Finished, words: str) -> bytes:
    buffer = io.BytesIO()
    with _exporting(done, "pt2"):
        torch.export.save(_program(done), buffer, extra_files=_metadata(done.card, words))
        buffer.seek(0)
        program = torch.export.load(buffer).module()
        _check(done, lambda images: list(program(images)))
    return buffer.getvalue()


def _onnx(done: Finished, words: str) -> bytes:
    import onnxruntime
    from onnxscript import ir

    with _exporting(done, "onnx"):
        program = torch.onnx.export(
            _program(done),
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=_OUTPUTS,
            opset_version=OPSET,
            dynamic_shapes={"images": {0: "N"}},
            external_data=False,
        )
        assert program is not None
        model = program.model
        model.ir_version, model.producer_name, model.doc_string = IR, "theta0", words
        model.metadata_props.update(_metadata(done.card, words))
        for node in model.graph:
            node.metadata_props.clear()
        body: bytes = ir.to_proto(model).SerializeToString()
        session = onnxruntime.InferenceSession(body, providers=["CPUExecutionProvider"])
        _check(done, lambda images: [torch.from_numpy(y) for y in session.run(_OUTPUTS, {"images": images.numpy()})])
    return body


def _metadata(card: Card, words: str) -> dict[str, str]:
    """The texts in a file, by name."""
    return {"classes": json.dumps(card.classes), "card": card.to_json(), "model_card": words}


@contextlib.contextmanager
def _exporting(done: Finished, kind: Kind) -> Iterator[None]:
    """Says what failed in our words, and keeps torch's own talk of itself from the user."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")  # that torchvision is not there
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # torch 2.13 warns of a class that its own exporter copies.
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    except Theta0Error:
        raise
    except Exception as error:
        why = next(iter(str(error).strip().splitlines()), "")
        raise Theta0Error(
            f"{done.card.architecture} of {done.card.space} cannot be exported to {kind}: {type(error).__name__}: "
            f"{why}; forward() must be traceable by torch.export for any number of images. Safetensors take any network"
        ) from error
    finally:
        logger.setLevel(level)


def _check(done: Finished, run: Callable[[Tensor], list[Tensor]]) -> None:
    """Compares what ``run`` gives for images (N, C, H, W) uint8 with the network, on one image and on several."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(256, (4, *done.card.shape), generator=generator, dtype=torch.uint8)
    flat = torch.tensor([0, 255], dtype=torch.uint8)[:, None, None, None].expand(2, *done.card.shape)
    images = torch.cat([noise, flat])
    with evaluating(done.module):
        logits = done.module(normalize(images, done.card.normalization))
    for part in (slice(1), slice(len(images))):
        for name, ours, theirs in zip(_OUTPUTS, (logits, logits.softmax(dim=1)), run(images[part]), strict=True):
            allowed = TOLERANCE * max(1.0, float(ours.abs().max()))
            same = theirs.shape == ours[part].shape
            distance = float((theirs - ours[part]).abs().max()) if same else math.inf
            if not distance <= allowed:  # NaN is not either
                raise Theta0Error(
                    f"the {name} of the exported network differ from its own by {distance:g}, and {allowed:g} is "
                    f"allowed, so nothing was written; try another format, or another version of torch"
                )


# Weights for theta0.


def _safetensors(done: Finished, words: str) -> bytes:
    from safetensors.torch import save

    weights = {name: value.clone() for name, value in done.weights.items()}  # no two may share their memory
    told = {
        "format": "pt",
        "theta0": str(FORMAT),
        "sha256": _digest(weights),
        "answer": json.dumps(done.answer.tolist()),
        **_metadata(done.card, words),
    }
    body: bytes = save(weights, metadata=told)
    _read_safetensors(Path("export"), body, None)
    return body


def load_safetensors(path: Path | str, device: torch.device | str = "cpu", *, space: Space[Any] | None = None) -> Model:
    """The network of an export to safetensors; ``space`` is as in :func:`theta0.model.load`."""
    path = Path(path)
    if importlib.util.find_spec("safetensors") is None:
        raise Theta0Error(f"{path}: safetensors are read with the package: pip install 'theta0[export]'")
    try:
        body = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error}") from error
    return _read_safetensors(path, body, space).to(device)


def _read_safetensors(path: Path, body: bytes, space: Space[Any] | None) -> Model:
    from safetensors import SafetensorError
    from safetensors.torch import load as parse

    try:
        weights = parse(body)
        told = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")]).get("__metadata__", {})
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path}: expected safetensors, found something else or a part of it: {error}") from error
    if "theta0" not in told:
        raise DataError(f"{path}: these safetensors were not written by theta0, which needs to know the architecture")
    if told["theta0"] != str(FORMAT):
        raise DataError(
            f"{path}: this network has format {told['theta0']}, and this version of theta0 reads {FORMAT}; read it "
            f"with the version that wrote it"
        )
    if told["sha256"] != _digest(weights):
        raise DataError(f"{path}: the weights are damaged (their sha256 differs); export them again")
    return restored(path, Card.from_json(told["card"]), weights, torch.tensor(json.loads(told["answer"])), space)


def _digest(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(repr((name, tuple(value.shape), str(value.dtype))).encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


_MAKERS: dict[str, tuple[Callable[[Finished, str], bytes], tuple[str, ...]]] = {
    "onnx": (_onnx, ("onnx", "onnxruntime", "onnxscript")),
    "pt2": (_pt2, ()),
    "safetensors": (_safetensors, ("safetensors",)),
}


# The model card.

_LOADING = {
    "onnx": """\
import json, numpy, onnxruntime
session = onnxruntime.InferenceSession("{name}")
images = numpy.zeros((1, {shape}), "uint8")  # yours
logits, probabilities = session.run(None, {{"images": images}})
print(json.loads(session.get_modelmeta().custom_metadata_map["classes"])[probabilities[0].argmax()])
""",
    "pt2": """\
import json, torch
texts = {{"classes": "", "card": "", "model_card": ""}}
network = torch.export.load("{name}", extra_files=texts).module()
logits, probabilities = network(torch.zeros(1, {shape}, dtype=torch.uint8))  # your images
print(json.loads(texts["classes"])[probabilities[0].argmax()])
""",
    "safetensors": """\
import numpy
from theta0.model import load
model = load("{name}")
images = numpy.zeros((1, {shape}), "uint8")  # yours
print(model.predict(images), model.predict_proba(images))
""",
}
_NEEDS = {
    "onnx": f"onnxruntime 1.14 or later (ONNX opset {OPSET}); theta0 is not needed",
    "pt2": "torch {torch} or later; theta0 is not needed",
    "safetensors": "theta0 and safetensors: `pip install 'theta0[export]'`",
}


def describe(done: Finished, kind: Kind, name: str) -> str:
    """The model card of the file ``name``, in Markdown."""
    card = done.card
    channels, height, width = card.shape
    shape = f"{channels}, {height}, {width}"
    tested = {what: found for what, found in card.facts.items() if isinstance(found, dict) and "accuracy" in found}
    about = {
        "architecture": f"`{card.architecture}`",
        "space": card.space,
        "skeleton": _told(card.skeleton),
        "parameters": f"{count.parameters(done.module):,}",
        "multiply-adds for one image": f"{count.flops(done.module, card.shape):,}",
        **{what: _told(fact) for what, fact in card.facts.items() if what not in tested and fact is not None},
    }
    lines = [
        f"# {name}",
        f"An image classifier for {len(card.classes)} classes: {', '.join(card.classes)}.",
        "\n".join(f"- {what.replace('_', ' ')}: {fact}" for what, fact in about.items()),
        "## How good it is",
        _quality(tested),
        "## How to use it",
        f"```python\n{_LOADING[kind].format(name=name, shape=shape)}```",
        f"Needs {_NEEDS[kind].format(torch=torch.__version__.split('+')[0])}.",
        f"`images` are uint8 (N, {shape}): any number, {'red, green, blue' if channels == 3 else f'{channels} channel'}"
        f"{'' if channels in (1, 3) else 's'}, values from 0 to 255. Normalisation by the training images is part of "
        f"the network. `logits` and `probabilities` are float (N, {len(card.classes)}), in the order of the classes "
        f"above; the file has their names, and all that is said here.",
        "## Limits",
        f"- Images of another size must be brought to {height} x {width} first, in the way of the training images.\n"
        f"- An image of anything else is taken for one of the {len(card.classes)} classes too.\n"
        f"- How good it is was measured on images like those of the training; on others it is not known.",
    ]
    return "\n\n".join(lines) + "\n"


def _quality(tested: Mapping[str, Mapping[str, Any]]) -> str:
    if not tested:
        return "Not measured on images that were kept aside."
    rows = ["| images | number | accuracy % | NLL | ECE % |", "|---|---|---|---|---|"]
    for what, found in tested.items():
        numbers = [found.get(key) for key in ("images", "accuracy", "nll", "ece")]
        forms = (",", ".2f", ".4f", ".2f")
        texts = ["-" if value is None else format(value, form) for value, form in zip(numbers, forms, strict=True)]
        rows.append(f"| {' | '.join((what.replace('_', ' '), *texts))} |")
    return "\n".join(rows)


def _told(fact: Any) -> str:
    """In a line."""
    if isinstance(fact, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_told(value)}" for name, value in fact.items())
    if isinstance(fact, list | tuple):
        return " x ".join(map(str, fact)) if len(fact) < 8 else f"{len(fact)} values"
    return f"{fact:.6g}" if isinstance(fact, float) else str(fact)
