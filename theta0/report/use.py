"""How to use what was found."""

from __future__ import annotations

import shlex

from theta0.report.html import Html, el
from theta0.report.material import Material


def use(material: Material) -> list[Html]:
    """The model in Python, and as a file for others."""
    name = material.result.get("model")
    path = material.path / str(name) if name else None
    if path is None:
        unfinished = material.state in ("stopped", "failed")
        said = "The run has no trained model yet."
        parts = [el("p", said, " Go on where it ended:" if unfinished else None, cls="empty")]
        return [*parts, _code(f"theta0 resume {shlex.quote(str(material.path))}")] if unfinished else parts
    missing = "" if path.is_file() else f" The file {path.name} is not in the run's folder now."
    return [
        el("h3", "In Python"),
        _code(
            "from theta0.model import load\n\n"
            f"model = load({str(path)!r})\n"
            "model.predict(images)        # names of classes; images are uint8, or floats in [0, 1]\n"
            "model.predict_proba(images)  # (N, classes)\n"
            "model.module                 # the torch.nn.Module"
        ),
        el("h3", "Without theta0"),
        _code(
            "\n".join(
                f"theta0 export {shlex.quote(str(material.path))} --to {form}"
                for form in ("onnx", "pt2", "safetensors")
            )
        ),
        el(
            "p",
            f"ONNX and pt2 load where theta0 is not installed; safetensors is rebuilt by theta0.{missing}",
            cls="note",
        ),
    ]


def _code(text: str) -> Html:
    return el("figure", el("pre", el("code", text), tabindex=0), cls="text")
