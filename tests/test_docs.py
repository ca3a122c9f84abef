"""What the documentation shows runs as printed."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from theta0.cli import main

PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/search.md",
    "docs/scores.md",
    "docs/supernets.md",
    "docs/searchers.md",
    "docs/tables.md",
    "docs/theory.md",
]
SMALL = "--evaluations 1 --pool 8 --epochs 1 --final-epochs 1 --random 1"


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    return [block for said, block in found if said == language]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks(page: str) -> None:
    names: dict[str, object] = {}
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES[:3])
def test_commands(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `theta0` line of a plain block; downloads and the reader's own folders are left out."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    text = "\n".join(blocks(page, ""))
    lines = [line.strip() for line in text.splitlines()]
    commands = [
        re.sub(r"^(\$ )?(\.venv/bin/)?", "", line) for line in lines if "theta0 " in line and "clone" not in line
    ]
    commands = [line for line in commands if line.startswith("theta0 ") and "get" not in line and "photos/" not in line]
    commands = [line for line in commands if not line.startswith("theta0 watch")]  # it serves until it is stopped
    commands = [line.replace("--pool 100", "--pool 4") for line in commands]
    thin = {line: "" if "--space" in line else " --options channels=4,cells=1" for line in commands}
    commands = [re.sub(r"^theta0 search\b", f"theta0 search {SMALL}{thin[line]}", line) for line in commands]
    assert commands
    for command in commands:
        assert main(shlex.split(command, comments=True)[1:]) == 0, command
        assert capsys.readouterr().out


def test_readme_shows_what_describe_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown = next(block for block in blocks("README.md", "") if block.startswith("$ .venv/bin/theta0 describe"))
    command, *lines = shown.splitlines()
    main(shlex.split(command.removeprefix("$ .venv/bin/theta0 ")))
    printed = capsys.readouterr().out
    assert "\n".join(lines) in printed


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_drawing_in_the_readme_is_what_the_command_draws(tmp_path: Path) -> None:
    picture = tmp_path / "amoebanet.svg"
    main(["describe", "darts", "AmoebaNet", "--svg", str(picture)])
    assert picture.read_text() == (ROOT / "docs/amoebanet.svg").read_text()


@pytest.mark.parametrize("module", ["theta0.graph", "theta0.isomorphism"])
def test_docstrings(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried
    assert not failed
