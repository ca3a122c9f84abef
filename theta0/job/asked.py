"""What a search was asked to do: checked before anything is written, and read again from a run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from theta0.device import resolved
from theta0.errors import DataError, Theta0Error, nearest
from theta0.job.parts import Parts
from theta0.recipe import Precision, get_recipe
from theta0.searchers import Budget, searchers
from theta0.searching import options as options_of
from theta0.space import Skeleton, Space, get_space

MINUTES = 3.0
"""The budget if nothing is said."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 60.0}


def seconds_of(budget: float | str) -> float:
    """Seconds of a budget: a number of minutes, or a text such as 90s, 3m, 1.5h."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)\s*", str(budget))
    seconds = float(found[1]) * _UNITS[found[2]] if found else math.nan
    if not seconds > 0 or math.isinf(seconds):
        raise Theta0Error(f"a budget is a time such as 90s, 3m or 1h, or a number of minutes, above 0; not {budget!r}")
    return seconds


@dataclass(frozen=True)
class Asked:
    """Everything that decides how a search goes, in plain values."""

    data: str
    fingerprint: str
    space: str
    searcher: str
    seed: int
    budget: dict[str, float | None]
    """``evaluations`` and ``seconds``."""
    limits: dict[str, float]
    device: str
    precision: Precision
    recipe: str
    classes: list[str]
    size: int | None = None
    skeleton: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    pool: int | None = None
    epochs: int | None = None
    final_epochs: int | None = None
    random: int | None = None

    @classmethod
    def check(
        cls,
        parts: Parts,
        *,
        space: str,
        searcher: str,
        budget: float | str | None,
        evaluations: int | None,
        limits: Mapping[str, float | None],
        seed: int,
        device: str,
        precision: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        recipe: str,
        **counts: Any,
    ) -> Asked:
        """An error for what cannot be done, or what was asked with nothing left open but the plan."""
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise Theta0Error(f"a seed is an integer of 0 or more, not {seed!r}")
        for name in ("pool", "epochs", "final_epochs", "random"):
            least = 0 if name == "random" else 1
            if (count := counts[name]) is not None and (not isinstance(count, int) or count < least):
                raise Theta0Error(f"{name} is a number of {least} or more, not {count!r}")
        for name, limit in limits.items():
            if limit is not None and not limit > 0:
                raise Theta0Error(f"the limit of {name} is more than 0, not {limit!r}")
        if evaluations is not None and (not isinstance(evaluations, int) or evaluations < 1):
            raise Theta0Error(f"evaluations are a number of 1 or more, not {evaluations!r}")
        seconds = None if budget is None and evaluations else seconds_of(MINUTES if budget is None else budget)
        known = options_of(searchers.get(searcher))
        for name in settings:
            if name not in known:
                raise Theta0Error(f"the searcher {searcher} has no option {name!r}; {nearest(name, known)}")
        get_recipe(recipe)
        asked = cls(
            data=parts.name,
            fingerprint=parts.fingerprint,
            space=_anywhere(space),
            searcher=searcher,
            seed=seed,
            budget=asdict(Budget(evaluations, seconds)),
            limits={name: float(limit) for name, limit in limits.items() if limit is not None},
            device=resolved(device),
            precision=_precision(precision, resolved(device)),
            recipe=recipe,
            classes=list(parts.train.classes),
            options=dict(options),
            settings=dict(settings),
            **counts,
        )
        made = asked.made_skeleton(parts)
        if getattr(made, "track", True) is False:
            raise Theta0Error("a network that is trained in the end needs running statistics: options track=true")
        return asked

    @classmethod
    def read(cls, settings: Mapping[str, Any], run: str) -> Asked:
        """What :meth:`facts` gave."""
        names = {one.name for one in fields(cls)}
        if not names <= set(settings):
            missing = ", ".join(sorted(names - set(settings)))
            raise DataError(f"the run {run} does not tell {missing}, so it is no run of `theta0 search`; begin one")
        told = {name: settings[name] for name in names}
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in told["settings"].items()}
        return cls(**{**told, "settings": lists})

    def facts(self) -> dict[str, Any]:
        """All of it, for a run's settings."""
        return asdict(self)

    @property
    def architectures(self) -> Space[Any]:
        """The space."""
        return get_space(self.space)

    @property
    def scores(self) -> list[str]:
        """The scores that the searcher reads: those that its options name."""
        from theta0.metrics import metrics

        known = {**options_of(searchers.get(self.searcher)), **self.settings}
        named = [one for value in known.values() for one in (value if isinstance(value, tuple) else (value,))]
        texts = dict.fromkeys(one for one in named if isinstance(one, str))
        return [one for one in texts if one.partition(":")[0] in metrics.names()]

    def made_skeleton(self, parts: Parts, **changes: Any) -> Skeleton:
        """The skeleton for these images; ``options`` of the user come last."""
        own = {"shape": parts.train.shape, "classes": len(parts.train.classes)}
        return self.architectures.options(self.skeleton, **{**own, **changes, **self.options})


def _anywhere(space: str) -> str:
    """A space by a name that means the same from every folder."""
    get_space(space)
    file, colon, name = space.rpartition(":")
    return f"{Path(file).absolute()}:{name}" if colon and file.endswith(".py") else space


def _precision(name: str, device: str) -> Precision:
    if name == "auto":
        return "bf16" if device.startswith("cuda") else "fp32"
    for known in get_args(Precision):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise Theta0Error(f"precision is one of auto, {', '.join(get_args(Precision))}, not {name!r}")
