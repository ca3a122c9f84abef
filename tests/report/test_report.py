from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import re
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from tests.report import making
from tests.report.reading import Read, read
from tests.runs.making import open_folder, without_rights
from theta0 import report
from theta0.errors import DataError
from theta0.report.confusion import confusion
from theta0.report.html import join
from theta0.report.material import Material
from theta0.report.summary import Gain
from theta0.runs import Run

SECTIONS = [
    "result",
    "cell",
    "progress",
    "scores",
    "training",
    "mistakes",
    "limits",
    "use",
    "trials",
    "events",
    "environment",
]
EVIL = "<script>alert(1)</script>\"'>&amp;"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def finished(root: Path) -> Run:
    return making.finished(root)


@pytest.fixture(scope="module")
def page(finished: Run) -> Read:
    return read(report.page(finished))


@pytest.fixture(scope="module")
def darts(root: Path) -> Run:
    return making.darts(root)


@pytest.fixture
def flying(tmp_path: Path) -> Iterator[Run]:
    """A run at work."""
    run = making.in_flight(tmp_path)
    yield run
    run.close()


def facts(run: Run) -> dict[str, Any]:
    return dict(next(event.facts for event in reversed(run.events()) if event.kind == "finished"))


def plain(text: str) -> str:
    """With usual spaces and signs."""
    return " ".join(text.replace("−", "-").split())


def said(found: Read, section: str) -> str:
    return plain(found.sections[section].text)


# One file.


@pytest.mark.parametrize("kind", ["finished", "darts", "failed"])
def test_the_page_is_one_file(kind: str, tmp_path: Path) -> None:
    with getattr(making, kind)(tmp_path) as run:
        page = report.page(run)
    namespaces = ("http://www.w3.org/2000/svg",)
    addresses = set(re.findall(r"\w+://[^\s\"'<>)&]+", page))
    assert addresses <= set(namespaces)
    whole = read(page).whole
    for tag, attributes in whole.tags:
        for name, value in attributes.items():
            if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
                assert value is not None
                assert value.startswith(("data:image/", "#")), (tag, name, value)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    assert not whole.having("iframe")
    assert "@import" not in page
    assert "url(" not in page
    assert len(page) < 400_000


def test_only_its_own_script_may_run(finished: Run) -> None:
    page = report.page(finished)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    (policy,) = [tag["content"] for tag in read(page).whole.having("meta") if "http-equiv" in tag]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert "connect-src" not in rules
    assert "connect-src &#x27;self&#x27;" in report.page(finished, live=True)


def test_it_does_not_depend_on_the_time_but_for_its_foot(finished: Run) -> None:
    first, second = (re.sub(r"<footer>.*?</footer>", "", report.page(finished)) for _ in range(2))
    assert first == second


# Its sections.


@pytest.mark.parametrize("kind", ["finished", "darts", "failed"])
def test_every_section_is_there(kind: str, tmp_path: Path) -> None:
    with getattr(making, kind)(tmp_path) as run:
        found = read(report.page(run))
    assert list(found.sections) == SECTIONS
    assert all(section.text for section in found.sections.values())
    assert not found.whole.having("p", cls="problem")
    linked = [str(tag["href"]).removeprefix("#") for tag in found.whole.having("a")]
    assert set(linked) == set(SECTIONS)
    identifiers = [tag["id"] for _, tag in found.whole.tags if "id" in tag]
    assert len(set(identifiers)) == len(identifiers)
    text = found.whole.text
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b", text), re.search(r".{30}(\bnan\b|\bNone\b|\binf\b).{30}", text)


def test_the_result(finished: Run, page: Read) -> None:
    told, text = facts(finished), said(page, "result")
    images, accuracy = told["test"]["images"], told["test"]["accuracy"]
    right = round(images * accuracy / 100)
    interval = stats.binomtest(right, images).proportion_ci(0.95, "wilson")
    assert f"Test accuracy {accuracy:.1f} %" in text
    assert f"95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f} % from {images} images" in text
    others = told["random"]["accuracies"]
    mean, deviation = statistics.mean(others), statistics.stdev(others)
    assert f"{accuracy - mean:+.1f} points" in text
    assert f"8 random architectures, test accuracy: mean {mean:.2f} ± {deviation:.2f} % (deviation)." in text
    assert "more than twice the spread" in text
    assert f"{sum(one < accuracy for one in others)} of 8 random architectures, each trained for 60 epochs" in text
    for words in ("Parameters 73.5 k", "Multiply-adds 4.19 M", "Latency 1.31 ms", "Calibration error 1.12 %"):
        assert words in text
    done = [one for one in finished.evaluations() if not math.isnan(one.value)]
    assert f"Architectures trained {len(done)}" in text
    assert "Architectures scored 400" in text
    assert "Time in all 2 min 51 s" in text
    assert "The accuracy of 2 trials that failed." in text
    assert "A network for digits" in page.whole.text
    assert page.whole.having("span", cls="finished")


def test_the_number_line_has_every_random_architecture(page: Read) -> None:
    (strip,) = [tag for tag in page.sections["result"].having("svg") if tag["class"] == "strip"]
    assert len(page.sections["result"].having("circle", cls="random")) == 8
    assert len(page.sections["result"].having("circle", cls="ring")) == 1
    assert "the chosen network 97.50" in str(strip["aria-label"])


def gain(chosen: float, others: list[float]) -> Gain:
    mean, deviation = statistics.mean(others), statistics.stdev(others) if len(others) > 1 else math.nan
    return Gain(chosen - mean, others, mean, deviation, "test accuracy")


@pytest.mark.parametrize(
    ("chosen", "others", "words"),
    [
        (95.0, [90.0, 91.0, 92.0], "more than twice the spread"),
        (92.5, [90.0, 91.0, 92.0], "weak evidence"),
        (90.0, [90.0, 91.0, 92.0], "found nothing better than random architectures"),
        (95.0, [90.0], "no spread to compare"),
        (math.nan, [90.0, 91.0], "does not tell the gain"),
    ],
)
def test_what_a_gain_says(chosen: float, others: list[float], words: str) -> None:
    assert words in gain(chosen, others).words()


def test_the_cell_is_drawn(finished: Run, page: Read, darts: Run) -> None:
    cell = page.sections["cell"]
    assert facts(finished)["chosen"] in cell.text
    (svg,) = cell.having("svg", cls="cell")
    assert svg["role"] == "img"
    both = read(report.page(darts)).sections["cell"]
    label = str(both.having("svg", cls="cell")[0]["aria-label"])
    assert "normal:" in label
    assert "reduce:" in label
    assert "Genotype(normal=" in both.text


def test_progress_tells_the_incumbent(finished: Run, page: Read) -> None:
    best = finished.incumbent
    assert best is not None
    progress = page.sections["progress"]
    assert f"38 trials; the best so far is trial {best.number} with {best.value:.2f} %." in plain(progress.text)
    (chart,) = progress.having("svg", cls="chart")
    lines = str(chart["data-tips"]).splitlines()
    assert len(lines) == 38
    assert any(f"trial {best.number}: {best.value:.2f} %" in line for line in lines)
    assert "failed" in progress.text


def test_every_score_has_a_panel_and_its_correlation(finished: Run, page: Read) -> None:
    scores = page.sections["scores"]
    panels = [tag["data-panel"] for tag in scores.having("div", cls="panel")]
    assert panels == making.SCORES
    assert [tag["data-panel"] for tag in scores.having("div", cls="on")] == ["trace:official"]  # of the settings
    pool = Material.of(finished).pool
    assert pool is not None
    text = plain(scores.text)
    values = {text: row for row, text in enumerate(pool.architectures)}
    trials = [one for one in finished.evaluations() if not math.isnan(one.value)]
    for column in range(len(pool.names)):
        pairs = [
            (pool.values[values[one.architecture], column], one.value)
            for one in trials
            if pool.validity[values[one.architecture], column] == 0
        ]
        correlation = stats.spearmanr(*zip(*pairs, strict=True)).statistic
        assert f"Spearman’s ρ = {correlation:.2f}, n = {len(pairs)} trials of 12 epochs" in text
        ok = pool.validity[:, column] == 0
        assert f"{ok.sum()} architectures in 40 bins." in text
        assert f"Left out: {(~ok).sum()} singular." in text


def test_where_the_chosen_one_stands_in_the_pool(finished: Run, page: Read) -> None:
    pool, text = Material.of(finished).pool, plain(page.sections["scores"].text)
    assert pool is not None
    row = pool.architectures.index(facts(finished)["chosen"])
    for name, higher in (("trace:official", True), ("kappa:official", False)):
        column = pool.names.index(name)
        ok = pool.validity[:, column] == 0
        values = np.where(ok, pool.values[:, column] * (1 if higher else -1), -np.inf)
        if ok[row]:
            share = (stats.rankdata(values)[row] - 1) / (len(values) - 1)
            better = "higher" if higher else "lower"
            assert f"better than {100 * share:.0f} % of the pool ({better} is taken for better)" in text


def test_the_histogram_counts_the_pool(finished: Run, page: Read) -> None:
    charts = [tag for tag in page.sections["scores"].having("svg", cls="chart") if "over the pool" in str(tag)]
    pool = Material.of(finished).pool
    assert pool is not None
    for column, chart in enumerate(charts):
        counts = [int(re.findall(r"([\d,]+) architectures?$", line)[0]) for line in str(chart["data-tips"]).split("\n")]
        assert len(counts) == 40
        assert sum(counts) == (pool.validity[:, column] == 0).sum()


def test_the_score_that_the_searcher_reads_comes_first(tmp_path: Path) -> None:
    for searcher, first in (("hnas-paper", "trace:official"), ("hnas", "synflow:log"), ("mine", "snip:zerocost")):
        run, _ = making.begin(tmp_path, trials=3, pooled=20, score=None, searcher=searcher)
        with run:
            (shown,) = read(report.page(run)).sections["scores"].having("div", cls="on")
        assert shown["data-panel"] == first


def test_training_curves(page: Read) -> None:
    training = page.sections["training"]
    accuracy, loss = training.having("svg", cls="chart")
    lines = str(accuracy["data-tips"]).splitlines()
    assert sum("final, epoch" in line for line in lines) == 60
    assert sum("random-3, epoch" in line for line in lines) == 60
    assert "final, epoch 60: 97.50 %" in str(accuracy["data-tips"])
    assert "final, epoch 60: 0.1338" in str(loss["data-tips"])
    assert len(training.having("path", cls="thin")) == 2 * (38 + 1)  # each trial, and the key of the legend
    assert "At the end: final 97.50 %" in plain(training.text)


def test_the_confusion_matrix_is_that_of_the_run(finished: Run, page: Read) -> None:
    counts = facts(finished)["test"]["confusion"]
    table, worst = page.sections["mistakes"].tables
    assert table[0] == ["", *making.CLASSES]
    for name, row, cells in zip(making.CLASSES, counts, table[1:], strict=True):
        assert cells == [name, *(f"{count}" if count else "·" for count in row)]
    assert "9 mistakes in 360 test images." in page.sections["mistakes"].text
    for true, taken, images, share in worst[1:]:
        count = counts[int(true)][int(taken)]
        assert int(images) == count
        assert plain(share) == f"{100 * count / sum(counts[int(true)]):.1f} %"
    missed = sorted((c for i, row in enumerate(counts) for j, c in enumerate(row) if i != j and c), reverse=True)
    assert [int(row[2]) for row in worst[1:]] == missed[:10]


def test_many_classes_are_a_picture(darts: Run) -> None:
    section = read(report.page(darts)).sections["mistakes"]
    (image,) = section.having("img")
    data = base64.b64decode(str(image["src"]).removeprefix("data:image/png;base64,"))
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    counts = np.array(facts(darts)["test"]["confusion"])
    assert pixels.shape == (30, 30, 4)
    assert ((pixels[..., 3] > 0) == (counts > 0)).all()  # one mistake is seen too
    assert (pixels[np.eye(30, dtype=bool), 2] > pixels[np.eye(30, dtype=bool), 0]).all()  # right is blue
    assert "species 4" in section.text


def with_test(run: Run, matrix: object, **changes: Any) -> str:
    """The section on mistakes for a matrix."""
    material = Material.of(run)
    material.__dict__["result"] = {"test": {"confusion": matrix}}
    material.__dict__["classes"] = changes.get("classes", material.classes)
    return plain(read(join(confusion(material))).whole.text)


def test_long_names_of_classes_stand_upright(finished: Run, page: Read) -> None:
    assert not page.sections["mistakes"].having("table", cls="long")
    material = Material.of(finished)
    material.__dict__["classes"] = ["airplane", *making.CLASSES[1:]]
    found = read(join(confusion(material))).whole
    assert found.having("table", cls="long")
    assert [tag["title"] for tag in found.having("th") if "title" in tag] == 2 * material.classes


def test_matrices_that_are_none(finished: Run) -> None:
    for matrix in (None, [], [[0, 0], [0, 0]], [[1, 2]], [1, 2]):
        assert "No confusion matrix was measured." in with_test(finished, matrix)
    assert "No image was taken for another class." in with_test(finished, [[5, 0], [0, 5]], classes=["a", "b"])
    assert "they are numbered" in with_test(finished, [[5, 1], [0, 5]])
    assert "the matrix is not drawn" in with_test(finished, np.eye(1001, dtype=int).tolist())


def test_limits(finished: Run, page: Read, tmp_path: Path) -> None:
    text = said(page, "limits")
    assert "Parameters 73.5 k · 15 % of 500 k" in text
    assert "Multiply-adds 4.19 M, no limit" in text
    assert "Latency 1.31 ms · 52 % of 2.5 ms" in text
    assert "Trials 40 · 100 % of 40" in text
    assert "Time 2 min 51 s · 95 % of 3 min" in text
    run, _ = making.begin(tmp_path, trials=3, limits={"parameters": 1000})
    with run:
        making.finish(run, parameters=1500)
        over = read(report.page(run)).sections["limits"]
    assert "above the limit of 1 k" in plain(over.text)
    assert len(over.having("div", cls="over")) == 1


def test_trials(finished: Run, page: Read) -> None:
    (table,) = page.sections["trials"].tables
    titles = ["trial", "accuracy, %", "epochs", "seconds", "ended at, s", "mu", "expected improvement"]
    assert table[0] == [*titles, "architecture", "note"]
    assert len(table) == 41
    for one, row in zip(finished.evaluations(), table[1:], strict=True):
        assert row[0] == str(one.number)
        assert row[1] == ("failed" if math.isnan(one.value) else f"{one.value:.2f}")
        assert row[4] == f"{one.spent:,.1f}"
        assert row[7].removesuffix("chosen") == one.architecture
        assert row[7].endswith("chosen") == (one.architecture == facts(finished)["chosen"])
        assert row[8] == one.note


def test_of_very_many_trials_the_best_are_shown(tmp_path: Path) -> None:
    from theta0.searching import Trial

    run, architectures = making.begin(tmp_path, trials=0, pooled=320)
    with run:
        for number in range(310):
            made = run.space.parse(architectures[number])
            run.add_trial(Trial(number, made, 1, number / 10, 1.0, number + 1.0, "", {}))
        found = read(report.page(run)).sections["trials"]
    assert [int(row[0]) for row in found.tables[0][1:]] == list(range(10, 310))
    assert "The table has the 300 best" in found.text


def test_events_come_last_first(page: Read) -> None:
    (table,) = page.sections["events"].tables
    assert [row[1] for row in table[1:]] == ["finished", "scored", "planned", "began"]
    assert "confusion" not in page.sections["events"].text


def test_the_environment(finished: Run, page: Read) -> None:
    text = said(page, "environment")
    assert str(finished.path) in text
    for name, version in finished.environment["versions"].items():
        assert f"{name} {version}" in text
    assert f"begun in {finished.environment['folder']}" in text
    assert finished.environment["machine"]["processor"] in text
    assert "data digits" in text
    assert "seed 3" in text


def test_how_to_use_it(finished: Run, page: Read) -> None:
    text = said(page, "use")
    assert f"load({str(finished.path / 'model.ckpt')!r})" in text
    for form in ("onnx", "pt2", "safetensors"):
        assert f"theta0 export {finished.path} --to {form}" in text
    assert "model.ckpt is not in the run's folder now" in text
    (finished.path / "model.ckpt").touch()
    try:
        assert "is not in the run's folder" not in said(read(report.page(finished)), "use")
    finally:
        (finished.path / "model.ckpt").unlink()


# Runs that have only some of it.


def test_a_run_in_flight(flying: Run) -> None:
    found = read(report.page(flying))
    assert list(found.sections) == SECTIONS
    assert found.whole.having("span", cls="running")
    assert "7 of 40 trials ended so far." in found.whole.text
    assert "Go on with" not in found.whole.text
    best = flying.incumbent
    assert best is not None
    assert f"Best validation accuracy so far {best.value:.1f} %" in said(found, "result")
    assert "no test accuracy yet" in said(found, "result")
    assert "Not measured yet." in said(found, "result")
    assert "1 trial in flight." in said(found, "result")
    assert found.sections["trials"].tables[0][-1][1] == "in flight"
    assert "8 trials, 0 failed, 1 in flight." in found.sections["trials"].text
    assert "The final training has not begun." in said(found, "training")
    assert "The run has no trained model yet." in said(found, "use")
    assert "best" in found.sections["trials"].tables[0][1 + best.number][7]


def test_a_run_whose_process_died(tmp_path: Path) -> None:
    run = making.in_flight(tmp_path)
    run.close()
    with Run.open(run.path) as again:
        found = read(report.page(again))
    assert found.whole.having("span", cls="stopped")
    assert f"Go on with `theta0 resume {run.name}`." in found.whole.text
    assert found.sections["trials"].tables[0][-1][1] == "cut off"
    assert f"theta0 resume {run.path}" in said(found, "use")
    assert "the test accuracy was not measured" in said(found, "result")


def test_a_run_that_failed(tmp_path: Path) -> None:
    with making.failed(tmp_path) as run:
        found = read(report.page(run))
    assert found.whole.having("span", cls="failed")
    assert "It failed: DataError: /data/photos: no space left on device" in found.whole.text
    missing = {
        "result": "Nothing yet.",
        "cell": "No architecture has been chosen yet.",
        "progress": "No trial has ended with an accuracy.",
        "scores": "The run has no scored pool.",
        "training": "No training history has been stored.",
        "mistakes": "No confusion matrix was measured.",
        "limits": "at most 500 k; the chosen network was not measured",
        "use": "The run has no trained model yet.",
        "trials": "No trial has begun.",
    }
    for section, words in missing.items():
        assert words in said(found, section)


def test_a_run_of_the_first_moment(tmp_path: Path) -> None:
    with Run.create(tmp_path, making.SETTINGS) as run:
        found = read(report.page(run))
    assert list(found.sections) == SECTIONS
    assert "Nothing has been noted yet." in found.sections["events"].text
    assert not found.whole.having("p", cls="problem")


def test_darts_without_random_architectures(darts: Run) -> None:
    found = read(report.page(darts))
    text = said(found, "result")
    assert "Random architectures were not trained, so there is no gain to tell." in text
    assert "The gain over random architectures." in text
    assert "Latency." in text
    assert "A network for photos" in found.whole.text
    assert "No limit was set" in said(found, "limits")


def test_trainings_that_all_failed(tmp_path: Path) -> None:
    from theta0.searching import Trial

    run, architectures = making.begin(tmp_path, trials=0, pooled=20)
    with run:
        for number in range(2):
            made = run.space.parse(architectures[number])
            run.add_trial(Trial(number, made, 12, math.nan, 1.0, number + 1.0, "DivergedError: nan", {}))
        found = read(report.page(run))
    assert "No trial ended with an accuracy." in said(found, "result")
    assert "2 trials failed." in said(found, "progress")
    assert "No trial of the pool has ended with an accuracy." in said(found, "scores")


def test_a_pool_in_the_database(tmp_path: Path) -> None:
    """A search keeps its scores there."""
    run, architectures = making.begin(tmp_path, trials=5, pooled=0)
    with run:
        run.add_scores(making.pool("nasbench201", architectures[:5]))
        found = read(report.page(run))
    assert "7 scores of 5 architectures. All are of networks with the same seed (0)." in said(found, "scores")


def test_a_damaged_pool_leaves_the_rest(tmp_path: Path) -> None:
    with making.finished(tmp_path, pooled=60) as run:
        whole = (run.path / "pool.npz").read_bytes()
        for content in (b"", b"no archive", whole[: len(whole) // 2]):
            (run.path / "pool.npz").write_bytes(content)
            found = read(report.page(run))
            assert "The scores of the pool cannot be read:" in said(found, "scores")
            assert "pool.npz: expected a score file" in said(found, "scores")
            assert "Test accuracy 97.5" in said(found, "result")


def test_facts_of_another_version_lose_one_section_only(tmp_path: Path) -> None:
    run, _ = making.begin(tmp_path, trials=4)
    with run:
        making.finish(run)
        run.event("finished", chosen="no|cell", test={"accuracy": 50.0, "images": 10, "confusion": [["a"]]}, random=3)
        found = read(report.page(run))
    assert "This part cannot be shown: ValueError" in said(found, "mistakes")
    assert "The architecture cannot be drawn here" in said(found, "cell")
    assert "Test accuracy 50.0 %" in said(found, "result")
    assert len(found.whole.having("p", cls="problem")) == 1


def test_a_space_that_is_not_here(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text((Path(__file__).parents[2] / "examples" / "plain_space.py").read_text())
    with Run.create(tmp_path, {**making.SETTINGS, "space": f"{file}:PlainResNet"}) as run:
        from theta0.searching import Trial

        architecture = run.space.parse("depth=1, width=8, kernel=3")
        run.add_trial(Trial(0, architecture, 1, 50.0, 1.0, 1.0, "", {}))
        assert "are no cells; there is nothing to draw" in said(read(report.page(run)), "cell")
    file.unlink()
    with Run.open(run.path) as again:
        found = read(report.page(again))
    assert "The architecture cannot be drawn here" in said(found, "cell")
    assert "depth=1, width=8, kernel=3" in said(found, "cell")


# What somebody else wrote is text.


def test_names_are_escaped(tmp_path: Path) -> None:
    names = [EVIL, *making.CLASSES[1:]]
    run, architectures = making.begin(tmp_path, trials=3, data=f"/data/{EVIL}", classes=names, device=EVIL)
    with run:
        from theta0.searching import Trial

        run.add_trial(Trial(3, run.space.parse(architectures[3]), 12, math.nan, 1.0, 20.0, EVIL, {EVIL: 1.0}))
        making.finish(run)
        run.event("noted", **{EVIL: EVIL})
        run.add_point(EVIL, 1, loss=1.0, accuracy=50.0)
        page = report.page(run)
    found = read(page)
    assert page.count("<script") == 1
    assert page.count("alert(1)") == page.count("&lt;script&gt;alert(1)")
    for section in ("mistakes", "trials", "events", "environment"):
        assert EVIL in found.sections[section].text
    assert f"A network for {Path(f'/data/{EVIL}').name}" in found.whole.text
    assert len(found.whole.having("script")) == 1


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """File names of another encoding."""
    run, _ = making.begin(tmp_path, trials=2, data="/data/\udcff")
    with run:
        path = report.write(run)
    assert "\\udcff" in path.read_text(encoding="utf-8")


# The file.


def test_it_is_written_into_the_run(tmp_path: Path) -> None:
    with making.finished(tmp_path, pooled=40) as run:
        before = set(run.path.iterdir())
        path = report.write(run)
        assert path == run.path / "report.html"
        assert set(run.path.iterdir()) - before == {path}
        first = path.read_text(encoding="utf-8")
        assert first.startswith("<!doctype html>")
        other = report.write(run, tmp_path / "other.html")
        assert other == tmp_path / "other.html"
        assert other.is_file()


def test_an_old_report_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with making.finished(tmp_path, pooled=40) as run:
        path = report.write(run)
        path.write_text("the old one")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(DataError, match=r"report.html: the report cannot be written: No space left on device"):
                report.write(run)
        assert path.read_text() == "the old one"
        assert not list(run.path.glob("*.part"))
        assert not list(run.path.glob(".*.part"))


def test_many_writers_at_once(finished: Run, tmp_path: Path) -> None:
    """Each page is whole, whoever comes last."""
    out = tmp_path / "report.html"
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: report.write(finished, out), range(12))) == [out] * 12
    assert list(read(out.read_text(encoding="utf-8")).sections) == SECTIONS
    assert list(tmp_path.iterdir()) == [out]


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    with making.failed(tmp_path) as run:
        with pytest.raises(DataError, match="No such file or directory; make room or get permission"):
            report.write(run, tmp_path / "no" / "report.html")
        with pytest.raises(DataError, match="Is a directory"):
            report.write(run, tmp_path)
    assert not list(tmp_path.parent.glob(".*.part"))
    with open_folder() as folder, making.failed(folder) as run:
        run.path.chmod(0o755)
        with without_rights(run.path, folder), pytest.raises(DataError, match="Permission denied; make room or get"):
            report.write(run)
        assert not (run.path / "report.html").exists()
        with without_rights(run.path, folder):
            assert "It failed" in report.page(run)
