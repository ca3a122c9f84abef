from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from theta0.cli import main

Output = pytest.CaptureFixture[str]
FEW = ["--evaluations", "1", "--pool", "8", "--epochs", "1", "--final-epochs", "1", "--random", "1"]
SMALL = [*FEW, "--options", "channels=4,cells=1"]


def run(capsys: Output, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def folder(path: Path, classes: str = "ab", sides: tuple[int, ...] = (12,), count: int = 40) -> Path:
    """Images that tell their classes apart by brightness."""
    generator = np.random.default_rng(0)
    for level, name in enumerate(classes):
        (path / name).mkdir(parents=True)
        for number in range(count):
            side = sides[number % len(sides)]
            pixels = generator.integers(0, 60, (side, side, 3)) + 150 * level
            Image.fromarray(pixels.astype(np.uint8)).save(path / name / f"{number}.png")
    return path


def test_a_folder_of_images(capsys: Output, tmp_path: Path) -> None:
    photos, root = folder(tmp_path / "photos"), tmp_path / "runs"
    code, out, err = run(capsys, "search", "--data", str(photos), "--root", str(root), *SMALL)
    assert code == 0, err
    assert "64 images to train and choose by, 16 for the test, 2 classes" in err
    assert "% of 16 images" in out
    (path,) = root.iterdir()
    assert (path / "report.html").is_file()
    for command in (["resume"], ["resume", path.name]):
        assert run(capsys, *command, "--root", str(root))[:2] == (0, out)
    code, out, _ = run(capsys, "export", "--to", "safetensors", "--root", str(root))
    assert (code, Path(out.splitlines()[0]).suffix) == (0, ".safetensors")


def test_images_that_have_changed(capsys: Output, tmp_path: Path) -> None:
    from theta0.runs import Run

    photos, root = folder(tmp_path / "photos"), tmp_path / "runs"
    run(capsys, "search", "--data", str(photos), "--root", str(root), *SMALL)
    (path,) = root.iterdir()
    with Run.open(path, write=True) as opened:
        opened.event("began")  # as if it had been cut off
    (photos / "a" / "3.png").unlink()
    code, _, err = run(capsys, "resume", "--root", str(root))
    assert code == 2
    assert "was made with other images" in err
    folder(tmp_path / "moved")
    assert run(capsys, "resume", "--root", str(root), "--data", str(tmp_path / "moved"))[0] == 0


def test_settings_of_the_searcher(capsys: Output, tmp_path: Path) -> None:
    arguments = ["search", "--root", str(tmp_path), *SMALL, "--searcher", "zerocost"]
    code, _, err = run(capsys, *arguments, "--settings", "score=snip,train=1")
    assert code == 0, err
    code, _, err = run(capsys, *arguments, "--settings", "scor=snip")
    assert code == 2
    assert "score" in err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path / "nothing", "found nothing there"),
        (lambda path: path, "no data format matches (it holds nothing)"),
        (lambda path: folder(path, "a"), "expected a folder for each of two or more classes, found a"),
        (lambda path: folder(path, sides=(12, 14)), "found 2 sizes"),
        (lambda path: _broken(folder(path)), "expected a readable image"),
    ],
    ids=["missing", "empty", "one class", "sizes", "broken"],
)
def test_data_that_cannot_be_used(capsys: Output, tmp_path: Path, make: object, said: str) -> None:
    root = tmp_path / "runs"
    (tmp_path / "photos").mkdir()
    source = make(tmp_path / "photos")  # type: ignore[operator]
    code, out, err = run(capsys, "search", "--data", str(source), "--root", str(root), *SMALL)
    assert (code, out) == (2, "")
    assert err.startswith("theta0: error: ")
    assert said in err
    assert not root.exists()


def _broken(path: Path) -> Path:
    (path / "b" / "7.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing more")
    return path


def test_images_of_several_sizes_can_be_scaled(capsys: Output, tmp_path: Path) -> None:
    photos = folder(tmp_path / "photos", sides=(12, 14))
    code, _, err = run(capsys, "search", "--data", str(photos), "--size", "8", "--root", str(tmp_path / "runs"), *SMALL)
    assert code == 0, err


def test_large_images_can_be_scaled_too(capsys: Output, tmp_path: Path) -> None:
    photos = folder(tmp_path / "photos", sides=(96,), count=10)
    root = str(tmp_path / "runs")
    err = run(capsys, "search", "--data", str(photos), "--root", root, *SMALL)[2]
    assert "images have 96 pixels a side; with --size 64 networks are 2.2 times as fast" in err
    assert "a side" not in run(capsys, "search", "--data", str(photos), "--size", "64", "--root", root, *SMALL)[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "--space", "nasbench21"], "did you mean nasbench201"),
        (["search", "--max-params", "10"], "the least of 20 is"),
        (["search", "--budget", "0"], "not '0'"),
        (["search", "--options", "chanels=3"], "did you mean channels"),
        (["resume", "nothing"], "no run 'nothing'"),
        (["resume"], "there are no runs in"),
    ],
)
def test_what_cannot_be_done(capsys: Output, tmp_path: Path, arguments: list[str], said: str) -> None:
    code, out, err = run(capsys, *arguments, "--root", str(tmp_path))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
