"""The official NAS-Bench-201 and NATS-Bench files; the real ones are not here, so their layouts are made here."""

from __future__ import annotations

import bz2
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tables import official
from tests.tables.official import CELLS
from theta0.errors import DataError
from theta0.spaces.nasbench201 import NASBench201
from theta0.tables import Table, checksum, load

FORMS: dict[str, Callable[[Path], Path]] = {
    "folder": official.nats_folder,
    "file": official.nats_file,
    "zip": lambda path: official.pth(path, legacy=False),
    "legacy": lambda path: official.pth(path, legacy=True),
}


@pytest.fixture(params=FORMS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return load(FORMS[request.param](tmp_path))


NAMES = {"cifar10": ("cifar10-valid", "cifar10", "ori-test")}
NAMES |= {ours: (theirs, theirs, "x-test") for ours, theirs in (("cifar100",) * 2, ("imagenet16", "ImageNet16-120"))}


def test_every_number(table: Table) -> None:
    assert table.cells == tuple(CELLS)
    assert table.datasets == ["cifar10", "cifar100", "imagenet16"]
    for dataset, (valid, tested, part) in NAMES.items():
        assert table.epochs(dataset) == [12, 200]
        for epochs in (12, 200):
            for index in range(3):
                seeds = [777] if epochs == 12 else official.seeds(index)
                for kind, name, where in ((table.validation, valid, "x-valid"), (table.test, tested, part)):
                    expected = [official.accuracy(index, name, where, seed, epochs, epochs - 1) for seed in seeds]
                    for run, value in enumerate(expected):
                        assert kind(dataset, epochs, index, run=run) == value
                    assert kind(dataset, epochs, index) == pytest.approx(np.mean(expected))
                seconds = np.mean([epochs * (2 + index + seed / 1000) for seed in seeds])
                assert table.seconds(dataset, epochs, index) == pytest.approx(seconds)
        assert table.runs(dataset, 200).tolist() == [3, 2, 3]
        np.testing.assert_allclose(table.latency("gpu", dataset=dataset), 20)


def test_costs_are_those_of_the_networks(table: Table) -> None:
    space = NASBench201()
    for row, text in enumerate(CELLS):
        assert (table.parameters()[row], table.flops()[row]) == space.measure(space.parse(text))


def test_all_forms_hold_the_same(tmp_path: Path) -> None:
    sums = set()
    for name, write in FORMS.items():
        (tmp_path / name).mkdir()
        table = load(write(tmp_path / name))
        table = Table("same", table.space, "same", table.cells, table.trained, table.costs)
        sums.add(checksum(table))
    assert len(sums) == 1


def test_pth_needs_no_torch(tmp_path: Path) -> None:
    import subprocess

    file = official.pth(tmp_path, legacy=True)
    code = f"import sys, theta0.tables as t; assert len(t.load({str(file)!r})) == 3; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Evil:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.witness}",)


@pytest.mark.parametrize("form", FORMS)
def test_malicious_files_do_not_run(form: str, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    evil = {"meta_archs": CELLS, "arch2infos": {0: Evil(witness)}, "evaluated_indexes": [0]}
    path = FORMS[form](tmp_path)
    if form == "folder":
        official.pbz2(path / "000001.pickle.pbz2", evil)
    elif form == "file":
        official.pbz2(path, evil)
    else:
        torch.save(evil, path, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(DataError, match=r"asks for posix\.system, .* refused, nothing was run"):
        load(path)
    assert not witness.exists()


def test_a_v1_0_file_has_only_some_short_trainings(tmp_path: Path) -> None:
    """In NAS-Bench-201 v1.0 the short schedule knows cifar10-valid only, and no seconds."""
    content = official.whole(("less", "full"))
    for infos in content["arch2infos"].values():
        trials = infos["less"]["all_results"]
        infos["less"]["all_results"] = kept = {key: trials[key] for key in trials if key[0] == "cifar10-valid"}
        for trial in kept.values():
            trial["train_times"] = None
    file = tmp_path / "NAS-Bench-201-v1_0-e61699.pth"
    torch.save(content, file)
    table = load(file)
    assert [table.epochs(dataset) for dataset in table.datasets] == [[12, 200], [200], [200]]
    assert not table.has_test("cifar10", 12)
    np.testing.assert_allclose(table.seconds("cifar10", 12), table.seconds("cifar10", 200) * 12 / 200)


def test_the_schedule_of_one_epoch_is_left_out(tmp_path: Path) -> None:
    folder = official.nats_folder(tmp_path)
    for index in range(3):
        content = official.schedules(index, ("12", "200")) | {"01": official.schedule(index, 1, [777])}
        official.pbz2(folder / f"{index:06d}.pickle.pbz2", content)
    assert load(folder).epochs("cifar10") == [12, 200]


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Path]:
    """A folder in which cell 1 is another."""

    def write(path: Path) -> Path:
        folder = official.nats_folder(path)
        content = official.schedules(1, ("12", "200"))
        change(content)
        official.pbz2(folder / "000001.pickle.pbz2", content)
        return folder

    return write


def cut(form: str, bytes_: int) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        whole = FORMS[form](path)
        file = whole / "000002.pickle.pbz2" if whole.is_dir() else whole
        file.write_bytes(file.read_bytes()[:bytes_])
        return whole

    return write


def without(name: str) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        folder = official.nats_folder(path)
        (folder / name).unlink()
        return folder

    return write


def other(content: object, name: str = "NATS-tss-v1_0-3ffb9.pickle.pbz2") -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        (path / name).write_bytes(bz2.compress(pickle.dumps(content)))
        return path / name

    return write


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (changed(lambda c: c["200"].pop("all_results")), "cell 1: expected a schedule with all_results"),
        (changed(lambda c: c["200"].update(arch_str=CELLS[0])), r"cell 1: expected the records of \|nor_conv_3x3"),
        (changed(lambda c: c.clear()), "cell 1: expected one of the schedules 12, 200, less, full"),
        (changed(lambda c: c["200"]["all_results"][("cifar100", 777)].pop("flop")), "cell 1: expected a trial with"),
        (
            changed(lambda c: c["200"]["all_results"][("cifar100", 777)].update(epochs=90)),
            "a trial of 200 epochs, found 90",
        ),
        (changed(lambda c: c["200"]["all_results"][("cifar100", 777)]["eval_acc1es"].clear()), "accuracy x-valid@199"),
        (changed(lambda c: c["200"]["all_results"][("cifar100", 777)].update(params="x")), "a str where a number"),
        (changed(lambda c: c["200"]["all_results"].clear()), "accuracies for all of 3 cells, found 2"),
        (without("000002.pickle.pbz2"), r"found none for 1 of them, the first 000002\.pickle\.pbz2"),
        (cut("folder", 3000), r"000002\.pickle\.pbz2: expected"),
        (cut("folder", 0), r"000002\.pickle\.pbz2: expected"),
        (cut("file", 3000), "expected a pickled dictionary with meta_archs"),
        (cut("zip", 30000), "expected"),
        (cut("legacy", 30000), "expected a pickled dictionary with meta_archs"),
        (cut("legacy", 10), "expected a file of torch.save"),
        (other([1]), "no list meta_archs"),
        (other({"meta_archs": CELLS}), "no arch2infos"),
        (other({"meta_archs": CELLS, "arch2infos": {}}), "expected cells with results, found none"),
        (other({"meta_archs": CELLS, "arch2infos": {7: {}}}), "list index out of range"),
        (other(1, "a.pth"), "expected a file of torch.save"),
    ],
)
def test_damage_is_named(write: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as caught:
        load(write(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_a_text_is_no_bzip2(tmp_path: Path) -> None:
    folder = official.nats_folder(tmp_path)
    (folder / "000000.pickle.pbz2").write_text("a page that says not found")
    with pytest.raises(DataError, match=r"000000\.pickle\.pbz2: expected a bzip2 file"):
        load(folder)
    (tmp_path / "b.pickle.pbz2").write_text("a page that says not found")
    with pytest.raises(DataError, match=r"b\.pickle\.pbz2: "):
        load(tmp_path / "b.pickle.pbz2")


def test_a_cell_that_unpacks_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from theta0.tables.readers import nats_bench

    monkeypatch.setattr(nats_bench, "_LARGEST", 1000)
    with pytest.raises(DataError, match="less than 1000 bytes; found more"):
        load(official.nats_folder(tmp_path))
