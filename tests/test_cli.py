from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from theta0.cli import main
from theta0.space import spaces

CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|none~2|"
Output = pytest.CaptureFixture[str]


def run(capsys: Output, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_spaces(capsys: Output) -> None:
    code, out, _ = run(capsys, "spaces")
    assert code == 0
    for name in spaces.names():
        assert name in out
    assert "423,624 architectures" in out
    assert "1,076,746,950,455,072,400" in out


def test_scores(capsys: Output) -> None:
    code, out, _ = run(capsys, "scores")
    assert code == 0
    assert "kappa  (lower is better" in out
    assert "sum_l |theta_l g_l|" in out


def test_describe(capsys: Output, tmp_path: Path) -> None:
    picture = tmp_path / "cell.svg"
    code, out, _ = run(capsys, "describe", "nasbench201", CELL, "--svg", str(picture))
    assert code == 0
    for words in (
        CELL,
        "width 1c, depth 2",
        "802,426",
        "113,951,360",
        "1:nor_conv_3x3 = 0; 2:nor_conv_3x3 = 1",
        "<-- avg",
    ):
        assert words in out
    assert picture.read_text().startswith("<svg")


def test_describe_takes_shape_classes_skeleton_and_data(capsys: Output) -> None:
    _, out, _ = run(capsys, "describe", "nasbench201", CELL, "--shape", "3x16x16", "--classes", "120")
    assert "809,576" in out  # the benchmark's count for ImageNet16-120
    _, out, _ = run(capsys, "describe", "nasbench201", CELL, "--data", "digits")
    assert "1 x 8 x 8 images, 10 classes" in out
    _, out, _ = run(capsys, "describe", "darts", "DARTS_V2", "--skeleton", "imagenet")
    assert "3 x 224 x 224 images, 1000 classes" in out
    assert "canonical normal" in out
    assert "canonical reduce" in out


def test_sample_is_reproducible(capsys: Output) -> None:
    first = run(capsys, "sample", "nasbench201", "--data", "digits", "--count", "3", "--seed", "1")
    assert first == run(capsys, "sample", "nasbench201", "--data", "digits", "--count", "3", "--seed", "1")
    assert first != run(capsys, "sample", "nasbench201", "--data", "digits", "--count", "3", "--seed", "2")
    assert len(first[1].splitlines()) == 2 + 3


def test_a_user_s_space_by_file_and_by_import_path(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("examples/plain_space.py:PlainResNet", "examples.plain_space:PlainResNet"):
        code, out, _ = run(capsys, "describe", name, "depth=2, width=16, kernel=3", "--data", "digits")
        assert code == 0
        assert "42,858" in out


SMALL = ["--options", "channels=4,cells=1", "--batch", "16"]


def test_score_of_a_pool(capsys: Output, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    arguments = ["score", "nasbench201", "--pool", "3", "--scores", "snip,kappa:frozen", *SMALL, "--out", str(out)]
    code, printed, err = run(capsys, *arguments)
    assert code == 0
    assert printed.splitlines()[0].split() == ["parameters", "flops", "snip", "kappa", "architecture"]
    assert len(printed.splitlines()) == 4
    assert "networks" in err
    assert out.read_text().splitlines()[0].startswith("architecture,parameters")


def test_ablations(capsys: Output) -> None:
    """Initialization, batch size, channels, random labels and images, precision: each changes the scores."""
    base = ["score", "nasbench201", "--pool", "1", "--scores", "snip", "--batch", "16"]
    seen = set()
    for more in (
        [],
        ["--initialization", "he"],
        ["--batch", "32"],
        ["--options", "channels=8,cells=1"],
        ["--random", "labels"],
        ["--random", "images"],
        ["--random", "both"],
        ["--seed", "1"],
        ["--dtype", "bfloat16"],
    ):
        arguments = [*base, "--options", "channels=4,cells=1", *more]
        code, printed, _ = run(capsys, *arguments)
        assert code == 0
        seen.add(printed.splitlines()[1].split()[2])
    assert len(seen) == 9


def test_score_of_a_listed_pool(capsys: Output, tmp_path: Path) -> None:
    (tmp_path / "cells.txt").write_text(f"{CELL}\n")
    _, printed, _ = run(
        capsys, "score", "nasbench201", "--pool", str(tmp_path / "cells.txt"), "--scores", "snip", *SMALL
    )
    assert CELL in printed


def test_score_of_a_user_s_network(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n"
        "def build():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))\n"
        "def number():\n    return 3\n"
    )
    code, printed, _ = run(capsys, "score", f"{file}:build", "--batch", "16")
    assert code == 0
    assert "kappa" in printed
    assert "parameters" in printed
    code, _, err = run(capsys, "score", f"{file}:number")
    assert (code, "gives a int, not a network" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["score", "nasbench201", "--scores", "snipp"], "did you mean snip"),
        (["score", "nasbench201", "--pool", "0"], "--pool must be a number of at least 1"),
        (["score", "darts", "--pool", "all"], "darts does not: give a number"),
        (["score", "nasbench201", "--options", "chanels=3"], "did you mean channels"),
        (["score", "nasbench201", "--options", "channels=x"], "channels must be of type int, not 'x'"),
        (["score", "nasbench201", "--batch", "99999"], "larger than the data set"),
        (["score", "nasbench201", "--pool", "1", "--batch", "8", "--out", "x.txt"], "not to 'x.txt'"),
        (["score", "nasbench201", "--out", "/no/such/folder/x.npz"], "there is no folder /no/such/folder"),
        (["describe", "nasbench201", "|nor~0|"], "expected one of none, skip_connect"),
        (["describe", "nasbench21", CELL], "did you mean nasbench201"),
        (["describe", "nasbench201", CELL, "--skeleton", "x"], "has no skeleton 'x'"),
        (["describe", "nasbench201", CELL, "--shape", "3x32"], "channels x height x width"),
        (["describe", "nasbench201", CELL, "--shape", "0x32x32"], "channels x height x width"),
        (["describe", "nasbench201", CELL, "--classes", "0"], "--classes must be at least 1, not 0"),
        (["describe", "nasbench201", CELL, "--svg", "/no/such/folder/a.svg"], "No such file or directory"),
        (["describe", "nasbench201", CELL, "--data", "/no/such/data"], "found nothing there"),
        (["describe", "examples/plain_space.py:Block", "x"], "is not a space"),
        (["sample", "no.module:Space"], "cannot be imported"),
        (["sample", "--count", "0"], "--count must be at least 1, not 0"),
        (["sample", "--seed", "-1"], "--seed must be 0 or more, not -1"),
        (["data", "get"], "needs the name of a data set"),
        (["data", "get", "cifar11"], "did you mean cifar10"),
        (["data", "check", "cifar10", "--root", "/no/such/root"], "theta0 data get cifar10"),
        (["data", "check", "nasbench101", "--root", "/no/such/root"], "theta0 data get nasbench101"),
        (["data", "check", "digits", "--space", "darts"], "--space and --hardware are for tables"),
        (["data", "check", "nasbench21"], "did you mean nasbench201"),
        (["data", "check", "no/such.parquet"], "no/such.parquet: expected a table, found nothing there"),
        (["data", "get", "nasbench201"], "nasbench201 has no official address"),
        (["data", "get", "cifar10", "x.npz"], "writes no file; leave 'x.npz' out"),
        (["data", "convert", "README.md"], "needs the .npz file to write after the source"),
        (["data", "convert", "README.md", "x.csv"], "tables are written to .npz files, not to 'x.csv'"),
        (["data", "convert", "README.md", "x.npz"], "README.md: no kind of table matches"),
        (["data", "convert", "README.md", "/no/such/folder/x.npz"], "there is no folder /no/such/folder"),
    ],
)
def test_bad_input_is_one_message_and_code_2(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(ROOT)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.startswith("theta0: error: ")
    assert words in err
    assert "Traceback" not in err


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0.spaces.nasbench201 import NASBench201

    def broken(self: object, text: str) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(NASBench201, "parse", broken)
    with pytest.raises(KeyError, match="a bug"):
        main(["describe", "nasbench201", CELL])


def test_data_check(capsys: Output) -> None:
    code, out, _ = run(capsys, "data", "check", "digits")
    assert code == 0
    assert "digits/train: 1,438 images of 1 x 8 x 8, 10 classes" in out
    _, out, _ = run(capsys, "data", "list")
    assert "comes with scikit-learn" in out


def test_data_of_tables(capsys: Output, tmp_path: Path, shared: Path) -> None:
    own = tmp_path / "nasbench201.npz"
    code, out, _ = run(capsys, "data", "convert", str(shared / "nb201.parquet"), str(own))
    assert (code, f"{own}: 15,625 rows of NAS-Bench-201" in out) == (0, True)
    code, out, _ = run(capsys, "data", "check", "nasbench201", "--root", str(tmp_path))
    assert code == 0
    for words in (
        "NAS-Bench-201: 15,625 rows, space nasbench201",
        "cifar10, 200 epochs: runs 2 to 3, best validation 91.607, test 94.373, 1,828 s on average",
        "imagenet16, 12 epochs: mean of runs, best validation 38.667",
        "costs: parameters, flops, gpu_latency",
        "suspect rows: 204",
        "sha256: ",
    ):
        assert words in out
    _, again, _ = run(capsys, "data", "check", str(own))
    assert again == out
    hardware = ("--hardware", str(shared / "nb201_hw.parquet"))
    _, out, _ = run(capsys, "data", "check", str(shared / "nb201.parquet"), *hardware)
    assert "raspi4_latency" in out
    _, out, _ = run(capsys, "data", "list", "--root", str(tmp_path))
    assert str(own) in out
    assert "`theta0 data get nasbench101` downloads the official file" in out


def test_data_of_official_files(capsys: Output, tmp_path: Path) -> None:
    from tests.tables import official

    official.tfrecord(tmp_path)
    root = ("--root", str(tmp_path))
    _, out, _ = run(capsys, "data", "list", *root)
    assert "`theta0 data convert nasbench101` makes a file that loads at once" in out
    code, _, err = run(capsys, "data", "check", "nasbench101", *root)
    assert (code, "must be converted, once" in err) == (2, True)
    code, out, _ = run(capsys, "data", "convert", "nasbench101", *root)
    assert (code, f"{tmp_path / 'nasbench101.npz'}: 5 rows of NAS-Bench-101" in out) == (0, True)
    _, out, _ = run(capsys, "data", "check", "nasbench101", *root)
    assert "cifar10, 108 epochs: runs 3, best validation 54.100, test 44.100" in out
    code, _, err = run(capsys, "data", "check", "nasbench101", "--space", "darts", *root)
    assert (code, "darts is not a space of NAS-Bench-1Shot1" in err) == (2, True)


def test_an_npz_file_of_images_is_no_table(capsys: Output, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "x.npz", x=np.zeros((4, 8, 8, 3), dtype=np.uint8), y=np.array([0, 1, 0, 1]))
    code, out, _ = run(capsys, "data", "check", str(tmp_path / "x.npz"))
    assert (code, "4 images" in out) == (0, True)


@pytest.mark.parametrize("arguments", [[], ["describe"], ["sample", "--nothing"], ["data", "fetch"]])
def test_wrong_usage_is_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "theta0", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_runs_as_a_module_without_torch() -> None:
    help_ = process("--help")
    assert help_.returncode == 0
    assert all(command in help_.stdout for command in ("spaces", "describe", "sample", "data"))
    code = "import sys; from theta0.cli import main; main(['spaces']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=ROOT).returncode == 0


def test_a_reader_that_leaves_early() -> None:
    command = f"{sys.executable} -m theta0 spaces | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
