"""The stages of a search, each of which is done once and written down in the run."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import theta0
from theta0.errors import DivergedError
from theta0.evaluation import Evaluation, evaluate
from theta0.job.asked import Asked
from theta0.job.drawing import drawn, objective
from theta0.job.pace import scoring_batch
from theta0.job.parts import Parts, share
from theta0.job.plan import LAST, POOL, Plan, final, plan
from theta0.job.told import Told
from theta0.model import Card, save
from theta0.pool import PoolScores, score_pool
from theta0.recipe import Recipe, get_recipe
from theta0.runs import Run
from theta0.scoring import score
from theta0.searchers import Budget
from theta0.searching import Trial
from theta0.searching import run as run_searcher
from theta0.seeding import derived
from theta0.space import Skeleton
from theta0.threads import threads
from theta0.train import Record, Result, train
from theta0.training_objective import TrainingObjective

MODEL, CHECKPOINT = "model.ckpt", "final.ckpt"
_LARGE = 64
"""Pixels a side; the spaces' networks are made for 32."""
_CHUNKS = (8, 512)
"""Networks that are scored between two visits to the disk, at least and at most."""
_VISIT = 3.0
"""Seconds between two such visits."""
_LINES = 10
"""Lines of progress that a pool takes."""
_PATIENCE, _FEWEST = 1.5, 16
"""How much longer than planned the scores may take, but for the first few networks."""


class Work:
    """One run under way, or being continued."""

    def __init__(self, run: Run, asked: Asked, parts: Parts, told: Told) -> None:
        self.run, self.asked, self.parts, self.told = run, asked, parts, told
        self.space = asked.architectures
        self.started = time.time()
        self._records: list[Record] = []
        self.before = _spent(run)

    def done(self) -> dict[str, Any]:
        """Goes through all stages; the facts that a run ends with."""
        asked, parts = self.asked, self.parts
        self.told(
            f"{asked.data}: {len(parts.whole):,} images to train and choose by, {len(parts.test):,} for the test, "
            f"{len(asked.classes)} classes; {asked.space}, {asked.searcher}, seed {asked.seed}, {asked.device}"
        )
        self.told(f"the run is {self.run.path}; `theta0 watch {self.run.name}` shows it in a browser")
        pixels = min(parts.train.shape[1:])
        if pixels > _LARGE:
            times = (pixels / _LARGE) ** 2
            self.told(
                f"images have {pixels} pixels a side; with --size {_LARGE} networks are {times:.1f} times as fast"
            )
        planned = self.plan
        self.told(_words(planned))
        with threads(planned.threads):
            return self._stages(planned)

    def _stages(self, planned: Plan) -> dict[str, Any]:
        pool = self.scored(planned.pool) if planned.pool else None
        chosen, validation = self.searched(pool)
        epochs, images = self.decided(chosen)
        facts = self.trained(chosen, epochs, images)
        random = self.compared(epochs, images, chosen)
        if random["accuracies"]:
            facts["gain"] = facts["test"]["accuracy"] - statistics.mean(random["accuracies"])
        architecture = self.space.parse(chosen)
        cost = self.space.measure(architecture, self.skeleton)
        return {
            "chosen": chosen,
            "validation": validation,
            **facts,
            "random": random,
            "parameters": cost.parameters,
            "flops": cost.flops,
            "latency_ms": self.latency(architecture),
            "model": MODEL,
            "seconds": round(self.elapsed, 1),
        }

    @property
    def elapsed(self) -> float:
        """Seconds of work on this run, those before an interruption too."""
        return self.before + time.time() - self.started

    # What is decided once.

    @cached_property
    def recipe(self) -> Recipe:
        """The final training's, but for its epochs; on a GPU with many images the batches of short ones are larger."""
        recipe = replace(get_recipe(self.asked.recipe), precision=self.asked.precision)
        if self.asked.recipe == "brief" and self.asked.device.startswith("cuda") and len(self.parts.train) >= 10_000:
            recipe = replace(recipe, batch=256)
        if not getattr(self.asked.made_skeleton(self.parts), "auxiliary", False):
            recipe = replace(recipe, auxiliary=0.0)
        return replace(recipe, batch=min(recipe.batch, max(2, len(self.parts.train) // 4)))

    @cached_property
    def brief(self) -> Recipe:
        """The trials'."""
        return replace(get_recipe("brief"), precision=self.asked.precision, batch=self.recipe.batch)

    @cached_property
    def plan(self) -> Plan:
        """As it is written down; the first time, made."""
        if known := self._noted("planned"):
            return Plan(**known)
        made = plan(self.asked, self.parts, self.brief)
        self.run.event("planned", **made.facts())
        return made

    @cached_property
    def skeleton(self) -> Skeleton:
        """Of all networks of this run."""
        return self.asked.made_skeleton(self.parts, **self.plan.shrink)

    @cached_property
    def objective(self) -> TrainingObjective:
        """What trials are judged by."""
        few = share(self.parts.train, self.plan.images, derived(self.asked.seed, "fewer images"))
        epochs = self.plan.epochs
        return objective(
            self.asked,
            self.parts,
            self.skeleton,
            train_set=few,
            validation=self.parts.validation,
            recipe=replace(self.brief, epochs=epochs, warmup=min(self.brief.warmup, epochs / 2)),
            validate_every=1,
            on_record=lambda _, record: self._records.append(record),
        )

    def _noted(self, kind: str) -> dict[str, Any]:
        """The facts of an event of this run, if it was there."""
        return next((dict(event.facts) for event in self.run.events() if event.kind == kind), {})

    # Scores.

    def scored(self, count: int) -> PoolScores:
        """A pool with the scores that the searcher reads."""
        if self._noted("pool"):
            return self.run.scores()
        architectures = drawn(self.asked, self.objective, count, "pool")
        done = len(self.run.scores().architectures)  # the first ones
        x, y = scoring_batch(self.parts, self.asked)
        start, rate, first = time.perf_counter(), 0.0, done
        most = _PATIENCE * POOL * (self.asked.budget["seconds"] or math.inf)
        while done < len(architectures) and (done < _FEWEST or time.perf_counter() - start + rate < most):
            size = min(_CHUNKS[1], max(_CHUNKS[0], int(_VISIT / rate))) if rate else _CHUNKS[0]
            chunk = architectures[done : done + size]
            scores = score_pool(
                self.space, chunk, x, y, self.asked.scores, skeleton=self.skeleton, device=self.asked.device
            )
            if scores.facts["scored"] < len(chunk):  # the keyboard
                raise KeyboardInterrupt
            self.run.add_scores(scores)
            told = done * _LINES // len(architectures)
            done += len(chunk)
            rate = (time.perf_counter() - start) / (done - first)
            if done * _LINES // len(architectures) > told:
                left = rate * (len(architectures) - done)
                self.told(f"scored {done:,} of {len(architectures):,} networks, {left:.0f} s left")
        if done < len(architectures):
            self.told("that took longer than planned; the pool ends here")
        self.run.event("pool", networks=done)
        return self.run.scores()

    # Trials.

    def searched(self, pool: PoolScores | None) -> tuple[str, float | None]:
        """The architecture that the searcher chose, and its validation accuracy if it was trained."""
        trials = self.run.trials()
        if known := self._noted("chose"):
            return known["architecture"], known["validation"]
        result = run_searcher(
            self.asked.searcher,
            self.objective,
            Budget(self.plan.evaluations, self.plan.seconds),
            seed=derived(self.asked.seed, "search") % 2**32,
            scores=pool,
            trials=trials,
            on_start=self._begins,
            on_trial=self._ended,
            settings=self.asked.settings,
        )
        chosen = self.space.format(result.chosen)
        values = [one.value for one in result.trials if one.architecture == result.chosen and not math.isnan(one.value)]
        validation = values[-1] if values else None
        self.run.event("chose", architecture=chosen, validation=validation)
        return chosen, validation

    def _begins(self, number: int, architecture: Any, epochs: int) -> None:
        self._records = []
        self.run.claim(number, architecture, epochs, seed=self.asked.seed)

    def _ended(self, trial: Trial) -> None:
        for record in self._records:
            self._point(trial.number, record)
        self.run.add_trial(trial)
        best = self.run.incumbent
        said = trial.note or f"{trial.value:.2f} %"
        self.told(
            f"trial {trial.number + 1} of {self.plan.evaluations or 'many'}: {said}"
            + (f", best {best.value:.2f} %" if best else "")
            + f"  {self.space.format(trial.architecture)}"
        )

    def _point(self, curve: int | str, record: Record) -> None:
        if record.epochs == round(record.epochs):
            facts = {"loss": record.loss, "learning_rate": record.learning_rate, "accuracy": record.accuracy}
            known = {name: value for name, value in facts.items() if value is not None}
            self.run.add_point(curve, round(record.epochs), **known)

    # The final trainings.

    def decided(self, chosen: str) -> tuple[int, int]:
        """Epochs and images of the final trainings: what fits into the time that is left."""
        if known := self._noted("decided"):
            return known["epochs"], known["images"]
        images, seconds = len(self.parts.whole), self.asked.budget["seconds"]
        epochs, taken = self.plan.final_epochs, images
        if epochs is None:
            assert seconds is not None
            left = max(0.93 * seconds - self.elapsed, 0.5 * LAST * seconds)
            each = self._image_seconds()
            mean = statistics.mean(each.values()) if each else 0.0
            total = each.get(chosen, mean) + self.plan.random * mean
            epochs, taken = final(left / total if total else 0.0, images, self.recipe.batch, self.plan)
        self.run.event("decided", epochs=epochs, images=taken)
        return epochs, taken

    def _image_seconds(self) -> dict[str, float]:
        """What one image of a training took, for each architecture that had a whole trial."""
        views = self.plan.epochs * self.plan.images + len(self.parts.validation)
        return {
            self.space.format(trial.architecture): trial.seconds / views
            for trial in self.run.trials()
            if not trial.note and trial.seconds > 0
        }

    def _final(self, name: str, text: str, epochs: int, images: int, checkpoint: Path | None) -> tuple[Any, Result]:
        seed = derived(self.asked.seed, name)
        model = self.space.build(self.space.parse(text), self.skeleton, seed=seed)
        recipe = replace(self.recipe, epochs=epochs, warmup=min(self.recipe.warmup, epochs / 2))
        result = train(
            model,
            share(self.parts.whole, images, derived(self.asked.seed, "fewer images")),
            recipe,
            seed=seed,
            device=self.asked.device,
            checkpoint=checkpoint,
            progress=lambda record: self._point(name, record),
        )
        return model, result

    def _tested(self, model: Any, result: Result) -> Evaluation:
        return evaluate(
            model,
            self.parts.test,
            normalization=result.normalization,
            batch=self.recipe.batch,
            precision=self.asked.precision,
        )

    def trained(self, chosen: str, epochs: int, images: int) -> dict[str, Any]:
        """The chosen network, trained, tested and kept."""
        if known := self._noted("trained"):
            return known
        self.told(f"training {chosen} for {epochs} epochs on {images:,} images")
        path = self.run.path / CHECKPOINT
        model, result = self._final("final", chosen, epochs, images, path)
        found = self._tested(model, result)
        test = asdict(found)
        card = Card(
            self.asked.space,
            chosen,
            asdict(self.skeleton),
            tuple(self.asked.classes),
            self.parts.train.shape,
            result.normalization,
            {
                "test": {name: value for name, value in test.items() if name != "confusion"},
                "data": self.asked.data,
                "run": self.run.name,
                "recipe": {**self.recipe.facts(), "epochs": epochs},
                "images": images,
                "seed": self.asked.seed,
                "theta0": theta0.__version__,
            },
        )
        save(self.run.path / MODEL, model, card)
        self.run.event("trained", test=test, epochs=epochs, images=images)
        path.unlink(missing_ok=True)
        self.told(f"test accuracy {found.accuracy:.2f} %")
        return {"test": test, "epochs": epochs, "images": images}

    def compared(self, epochs: int, images: int, chosen: str) -> dict[str, Any]:
        """Random architectures after the same training."""
        known = {event.facts["number"]: event.facts for event in self.run.events() if event.kind == "compared"}
        others = drawn(self.asked, self.objective, self.plan.random, "random") if self.plan.random else []
        for number, architecture in enumerate(others):
            if number in known:
                continue
            text = self.space.format(architecture)
            try:
                model, result = self._final(f"random-{number}", text, epochs, images, None)
                accuracy: float | None = self._tested(model, result).accuracy
            except DivergedError as error:
                accuracy, why = None, str(error)
                self.told(f"random architecture {number + 1} of {len(others)}: {why}")
            known[number] = {"number": number, "architecture": text, "accuracy": accuracy}
            self.run.event("compared", **known[number])
            if accuracy is not None:
                self.told(f"random architecture {number + 1} of {len(others)}: test accuracy {accuracy:.2f} %")
        values = [known[number]["accuracy"] for number in sorted(known)]
        accuracies = [value for value in values if value is not None]
        return {"accuracies": accuracies, "measure": "test accuracy", "epochs": epochs}

    def latency(self, architecture: Any) -> float:
        """Milliseconds for one image on the device."""
        model = self.space.build(architecture, self.skeleton, seed=0).to(self.asked.device)
        x, y = self.parts.train.to(self.asked.device).batch(1, seed=0)
        return score(model, x, y, ["latency"]).value("latency")


def _spent(run: Run) -> float:
    """Seconds that earlier processes worked on a run, as far as they wrote down what they did."""
    spans: dict[int, list[float]] = {}
    for event in run.events():
        spans.setdefault(event.process or 0, []).append(event.time)
    *earlier, _ = (spans[process] for process in sorted(spans))  # the last one is this process
    return sum(times[-1] - times[0] for times in earlier)


def _words(planned: Plan) -> str:
    parts = [f"score {planned.pool} networks"] if planned.pool else []
    parts.append(f"{planned.evaluations or 'some'} trials of {planned.epochs} epochs on {planned.images:,} images")
    last = f"the best and {planned.random} random ones" if planned.random else "the best"
    epochs = "as long as the time lasts" if planned.final_epochs is None else f"for {planned.final_epochs} epochs"
    parts.append(f"train {last} {epochs}")
    smaller = ", ".join(f"{name} {value}" for name, value in planned.shrink.items())
    return f"plan: {'; '.join(parts)}" + (f"; smaller networks to fit the time: {smaller}" if smaller else "")
