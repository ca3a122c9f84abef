from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from theta0 import kernel
from theta0.errors import DataError, Theta0Error
from theta0.pool import PoolScores, score_pool, shipped
from theta0.scoring import score
from theta0.space import get_space
from theta0.spaces.nasbench201 import NASBench201

space = NASBench201()
SMALL = {"channels": 4, "cells": 1}
SPECS = ["snip", "kappa", "naswot"]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(8)


def pool(count: int) -> list[object]:
    generator = np.random.default_rng(0)
    return [space.sample(generator) for _ in range(count)]


def test_the_same_as_single_scores() -> None:
    cells = pool(6)
    table = score_pool(space, cells, *batch(), SPECS, seed=3, **SMALL)
    assert table.names == ["parameters", "flops", "snip:zerocost", "kappa:official", "naswot:paper"]
    for i, cell in enumerate(cells):
        cost = space.measure(cell, shape=(3, 8, 8), **SMALL)  # type: ignore[arg-type]
        assert table.values[i, :2].tolist() == list(cost)
        model = space.build(cell, shape=(3, 8, 8), live=True, seed=3, **SMALL)  # type: ignore[arg-type]
        records = score(model, *batch(), SPECS)
        for name in SPECS:
            record = next(r for r in records if r.name == name)
            assert table.valid(name)[i] == record.validity
            if record.validity == "ok":
                assert table[name][i] == pytest.approx(record.value, rel=1e-3)


def test_equal_cells_are_scored_once() -> None:
    cells = [
        space.parse(t)
        for t in (
            "|nor_conv_3x3~0|+|skip_connect~0|none~1|+|none~0|skip_connect~1|none~2|",
            "|none~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|skip_connect~2|",
        )
    ]
    folded = score_pool(space, cells, *batch(), ["snip"], **SMALL)
    assert folded.facts["networks"] == 1
    assert folded["snip"][0] == folded["snip"][1]
    assert folded["parameters"][0] == folded["parameters"][1]
    assert score_pool(space, cells, *batch(), ["snip"], fold=False, **SMALL).facts["networks"] == 2


def test_dead_cells_are_dead() -> None:
    dead = space.parse("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|nor_conv_1x1~2|")
    table = score_pool(space, [dead], *batch(), ["snip", "trace", "kappa", "naswot"], **SMALL)
    assert table.valid("snip") == ["dead"]
    assert table["snip"][0] == 0
    assert table.valid("kappa")[0] in ("dead", "singular")


def test_processes_give_the_same() -> None:
    cells = pool(5)
    one = score_pool(space, cells, *batch(), ["snip", "naswot"], **SMALL)
    two = score_pool(space, cells, *batch(), ["snip", "naswot"], processes=2, **SMALL)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-3)
    assert (two.validity == one.validity).all()


def test_progress_tells_how_far() -> None:
    out = io.StringIO()
    score_pool(space, pool(3), *batch(), ["snip"], progress=out, **SMALL)
    assert out.getvalue().splitlines()[-1].startswith("3 of 3 networks")


def test_a_stop_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import theta0.pool as module

    calls = []
    scored = module._scored

    def interrupted(work: object, cell: object) -> object:
        calls.append(cell)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return scored(work, cell)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_scored", interrupted)
    table = score_pool(space, pool(6), *batch(), ["snip"], fold=False, **SMALL)
    assert table.facts["scored"] == 2
    assert np.isfinite(table["snip"][:2]).all()
    assert np.isnan(table["snip"][2:]).all()
    assert set(table.valid("snip")[2:]) == {"undefined"}
    assert "stopped: 2 of 6 networks" in capsys.readouterr().err


@pytest.mark.parametrize(("failures", "validity"), [(2, "ok"), (99, "refused")])
def test_memory_that_runs_out(monkeypatch: pytest.MonkeyPatch, failures: int, validity: str) -> None:
    """The network is tried again in smaller pieces; in the end its scores are refused, and the others are kept."""
    import theta0.pool as module

    pieces: list[int] = []

    def short(*arguments: object, **more: object) -> object:
        pieces.append(kernel.CHUNK["cuda"])
        if len(pieces) <= failures:
            raise torch.cuda.OutOfMemoryError("no memory left")
        return score(*arguments, **more)  # type: ignore[arg-type]

    usual = kernel.CHUNK["cuda"]
    monkeypatch.setattr(module, "score", short)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    table = score_pool(space, pool(1), *batch(), ["snip"], **SMALL)
    assert table.valid("snip") == [validity]
    assert pieces[0] == usual == kernel.CHUNK["cuda"]
    assert set(pieces[1:]) == {kernel.CHUNK["cpu"]}


def test_files(tmp_path: Path) -> None:
    table = score_pool(space, pool(4), *batch(), SPECS, **SMALL)
    for suffix in (".npz", ".csv", ".parquet"):
        table.save(tmp_path / f"scores{suffix}")
    read = PoolScores.load(tmp_path / "scores.npz")
    np.testing.assert_array_equal(read.values, table.values)
    assert (read.architectures, read.names, read.space) == (table.architectures, table.names, "nasbench201")
    assert read.facts["seed"] == 0
    for frame in (pd.read_csv(tmp_path / "scores.csv"), pd.read_parquet(tmp_path / "scores.parquet")):
        assert frame["architecture"].to_list() == table.architectures
        np.testing.assert_array_equal(frame["snip:zerocost"], table["snip"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["scores.csv", "scores.npz", "scores.parquet"]


def test_columns_by_name() -> None:
    table = score_pool(space, pool(2), *batch(), ["grad:zerocost", "grad:paper", "snip"], **SMALL)
    assert (table["snip"] == table["snip:zerocost"]).all()
    with pytest.raises(Theta0Error, match="2 of these scores is 'grad'"):
        table["grad"]
    with pytest.raises(Theta0Error, match="none of these scores is 'kapa'"):
        table["kapa"]


def test_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for name, words in (
        ("none.npz", "none.npz"),
        ("text.npz", "expected a score file"),
        ("other.npz", "found no space"),
    ):
        with pytest.raises(DataError, match=words):
            PoolScores.load(tmp_path / name)
    table = score_pool(space, pool(1), *batch(), ["snip"], **SMALL)
    with pytest.raises(Theta0Error, match=r"not to 'a\.txt'"):
        table.save(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"processes": 0}, "processes must be at least 1, not 0"),
        ({"classes": 4}, "labels run from 0 to 3; found 7"),
        ({"chanels": 4}, "has no option 'chanels'"),
        ({"initialization": "hee"}, "no initialization"),
    ],
)
def test_bad_input(change: dict[str, object], words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        score_pool(space, pool(1), *batch(), ["snip"], **{**SMALL, **change})  # type: ignore[arg-type]
    with pytest.raises(Theta0Error, match="the pool is empty"):
        score_pool(space, [], *batch())


@pytest.mark.parametrize("name", ["nasbench101", "nasbench1shot1_1", "darts", "mlp"])
def test_every_space_has_scores(name: str) -> None:
    other = get_space(name)
    generator = np.random.default_rng(0)
    small = {"darts": {"channels": 4, "layers": 3}, "mlp": {"width": 16}}.get(name, {"channels": 8, "cells": 1})
    shape = (1, 8, 8) if name == "mlp" else (3, 8, 8)
    x = torch.randn(8, *shape, generator=torch.Generator().manual_seed(0))
    table = score_pool(
        other, [other.sample(generator) for _ in range(2)], x, torch.arange(8), ["snip", "trace"], **small
    )
    assert np.isfinite(table.values).all()


def test_shipped_scores_of_nasbench201() -> None:
    """All 15,625 cells; facts of the space that any table of it must show."""
    for data in ("cifar10", "cifar100", "tiny16"):
        table = shipped("nasbench201", data)
        assert len(set(table.architectures)) == len(table.architectures) == 15_625
        assert table.facts["scored"] == table.facts["networks"] == 5_260
        assert table.valid("snip:zerocost").count("dead") == 341
        assert np.isfinite(table["naswot"][[text == "ok" for text in table.valid("naswot")]]).all()
        cell = space.parse(table.architectures[777])
        cost = space.measure(cell, classes=table.facts["skeleton"]["classes"], shape=table.facts["skeleton"]["shape"])
        assert table.values[777, :2].tolist() == list(cost)
    with pytest.raises(Theta0Error, match="no scores of nasbench201 on cifar11 come with theta0; did you mean"):
        shipped("nasbench201", "cifar11")


def test_shipped_scores_can_be_made_again() -> None:
    """The batch of the shipped table is not in the repository; two scores do not look at the images."""
    table = shipped("nasbench201", "cifar10")
    skeleton = space.options(shape=(3, 32, 32), live=True)
    for row in (5_000, 9_000, 15_000):
        model = space.build(space.parse(table.architectures[row]), skeleton, seed=table.facts["seed"])
        x = torch.randn(2, 3, 32, 32)
        value = score(model, x, torch.arange(2), ["synflow"]).value("synflow")
        # Cells with one canonical form share the value of the first of them, whose weights are drawn in another order.
        assert table["synflow:log"][row] == pytest.approx(value, rel=0.02)
