"""A tabular benchmark in memory: what training an architecture gave, so that a search costs a look-up.

table = theta0.tables.load("nasbench201.npz")
rows = table.rows(architectures)                        # (n,) int64
table.validation("cifar10", 12, rows)                   # (n,) float64 in percent, the mean of the runs
table.seconds("cifar10", 12, rows)                      # what that training costs
table.test("cifar10", 200, rows)                        # read once, for the result
view = table.search_view()                              # what a searcher is given: no test accuracy anywhere

Rows are in the order of the benchmark. All arrays are read-only; a row number is an int, or any array of ints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theta0.errors import Theta0Error, nearest
from theta0.space import Space, get_space

Floats = NDArray[np.float64]
Rows = ArrayLike | None
Run = ArrayLike | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Trained:
    """What one training budget on one data set gave, in percent and seconds.

    Accuracies are (runs, rows); a row with fewer runs has NaN in the last places. ``averaged`` says that the source
    knows only the mean of an unknown number of runs, for ``validation`` and ``test`` in this order.
    """

    validation: Floats
    seconds: Floats
    test: Floats | None = None
    averaged: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, eq=False)
class Table:
    """A tabular benchmark. ``trained`` is by (data set, epochs), ``costs`` by (data set, name of the cost)."""

    name: str
    space: str
    source: str
    """Where the numbers come from, for a reader."""
    cells: tuple[str, ...]
    """The architecture of each row in the notation of the space."""
    trained: Mapping[tuple[str, int], Trained]
    costs: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    """``parameters``; ``flops``: multiply-adds of convolutions and linear layers; ``<device>_latency`` in
    milliseconds, ``<device>_energy`` in millijoules; NaN where a device did not run an architecture."""
    keys: tuple[str, ...] | None = None
    """The :meth:`~theta0.space.Space.key` of each row, where it is not the notation."""
    suspect: NDArray[np.bool_] | None = None
    """Rows whose numbers the source or its reader doubts."""
    notes: tuple[str, ...] = ()
    hidden: bool = False
    """Test accuracy was taken out, as for a searcher."""

    def __post_init__(self) -> None:
        rows = len(self.cells)
        if not rows or not self.trained:
            raise Theta0Error(f"the table {self.name} has {rows} rows and {len(self.trained)} budgets; it needs both")
        for (dataset, epochs), trained in self.trained.items():
            where = f"{self.name}, {dataset}, {epochs} epochs"
            _check(trained.validation, (None, rows), f"{where}: validation accuracy", 100)
            if trained.test is not None:
                _check(trained.test, (None, rows), f"{where}: test accuracy", 100)
            _check(trained.seconds, (rows,), f"{where}: seconds")
        for (dataset, name), values in self.costs.items():
            _check(values, (rows,), f"{self.name}, {dataset}: {name}", gaps=True)
        for title, each in (("keys", self.keys), ("suspect", self.suspect)):
            if each is not None and len(each) != rows:
                raise Theta0Error(f"{self.name}: expected {title} for {rows} rows, found {len(each)}")

    def __len__(self) -> int:
        return len(self.cells)

    # Rows.

    @cached_property
    def _space(self) -> Space[Any]:
        return get_space(self.space)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {key: row for row, key in enumerate(self.cells if self.keys is None else self.keys)}

    def row(self, architecture: Any) -> int:
        """The row of an architecture, given as such or in the notation."""
        parsed = self._space.parse(architecture) if isinstance(architecture, str) else architecture
        found = self._places.get(self._space.key(parsed))
        if found is None:
            raise Theta0Error(
                f"{self._space.format(parsed)} is not in the table {self.name}, which has {len(self):,} of the "
                f"{self._space.size:,} architectures of {self.space}; take architectures from the table's own rows, "
                f"or a table with all of them"
            )
        return found

    def rows(self, architectures: Iterable[Any]) -> NDArray[np.int64]:
        """The row of each architecture."""
        return np.fromiter((self.row(architecture) for architecture in architectures), dtype=np.int64)

    def __contains__(self, architecture: Any) -> bool:
        parsed = self._space.parse(architecture) if isinstance(architecture, str) else architecture
        return self._space.key(parsed) in self._places

    def architecture(self, row: int) -> Any:
        """The architecture of a row."""
        return self._space.parse(self.cells[int(self._checked(row))])

    def select(self, rows: ArrayLike) -> Table:
        """The table of some of the rows, in their order."""
        chosen = np.atleast_1d(self._checked(rows))
        return replace(
            self,
            cells=tuple(self.cells[row] for row in chosen),
            keys=None if self.keys is None else tuple(self.keys[row] for row in chosen),
            suspect=None if self.suspect is None else self.suspect[chosen],
            costs={key: values[chosen] for key, values in self.costs.items()},
            trained={
                key: replace(
                    one,
                    validation=one.validation[:, chosen],
                    seconds=one.seconds[chosen],
                    test=None if one.test is None else one.test[:, chosen],
                )
                for key, one in self.trained.items()
            },
        )

    # What training gave.

    @property
    def datasets(self) -> list[str]:
        """The data sets, in the order of the source."""
        return list(dict.fromkeys(dataset for dataset, _ in self.trained))

    def epochs(self, dataset: str) -> list[int]:
        """The budgets on a data set, in epochs, smallest first."""
        found = sorted(epochs for name, epochs in self.trained if name == dataset)
        if not found:
            raise Theta0Error(f"the table {self.name} has no data set {dataset!r}; {nearest(dataset, self.datasets)}")
        return found

    def validation(self, dataset: str, epochs: int, rows: Rows = None, run: Run = None) -> Floats:
        """Validation accuracy in percent: the mean of the runs, or one of them.

        ``run`` is the number of a run, or one for each row, or a generator that draws one of its runs for each row.
        """
        trained = self._at(dataset, epochs)
        return self._accuracy(trained.validation, trained.averaged[0], f"{dataset}, {epochs} epochs", rows, run)

    def test(self, dataset: str, epochs: int, rows: Rows = None, run: Run = None) -> Floats:
        """Test accuracy in percent, as :meth:`validation`; never a search signal."""
        trained = self._at(dataset, epochs)
        if trained.test is None:
            reason = (
                "a searcher sees validation accuracy only; read the result from the whole table"
                if self.hidden
                else "its source gives none; take validation(), or convert a source with test accuracy"
            )
            raise Theta0Error(f"the table {self.name} has no test accuracy of {dataset} at {epochs} epochs: {reason}")
        return self._accuracy(trained.test, trained.averaged[1], f"{dataset}, {epochs} epochs, test", rows, run)

    def has_test(self, dataset: str, epochs: int) -> bool:
        """Whether :meth:`test` has an answer."""
        return self._at(dataset, epochs).test is not None

    def seconds(self, dataset: str, epochs: int, rows: Rows = None) -> Floats:
        """The training time of evaluating a row with this budget, in seconds."""
        return self._taken(self._at(dataset, epochs).seconds, rows)

    def runs(self, dataset: str, epochs: int, rows: Rows = None) -> NDArray[np.int64]:
        """How many separate validation runs each row has; 0 where the source knows their mean only."""
        trained = self._at(dataset, epochs)
        counts = (~np.isnan(trained.validation)).sum(axis=0) * (not trained.averaged[0])
        return np.asarray(counts[self._checked(rows)], dtype=np.int64)

    def noise(self, dataset: str, epochs: int, rows: Rows = None) -> Floats:
        """The spread of validation accuracy across runs: the sample deviation, in percent."""
        counts = self.runs(dataset, epochs, rows)
        if np.any(counts < 2):
            if self._at(dataset, epochs).averaged[0]:
                found = "its source gives the mean of the runs only"
            else:
                found = f"{np.count_nonzero(counts < 2):,} of {counts.size:,} rows have one run"
            raise Theta0Error(
                f"noise needs two runs of a row; {self.name}, {dataset}, {epochs} epochs: {found}; take rows for which "
                f"runs() is 2 or more, or another budget"
            )
        values = self._at(dataset, epochs).validation[:, self._checked(rows)]
        return np.asarray(np.nanstd(values, axis=0, ddof=1))

    def best(self, dataset: str, epochs: int) -> int:
        """The row of best mean test accuracy: the optimum that searches are measured by."""
        return int(np.argmax(self.test(dataset, epochs)))

    # What an architecture costs.

    def cost(self, name: str, dataset: str | None = None, rows: Rows = None) -> Floats:
        """A cost by name, on one data set (the first, unless it is named)."""
        dataset = self.datasets[0] if dataset is None else dataset
        self.epochs(dataset)
        if (dataset, name) not in self.costs:
            known = [known for where, known in self.costs if where == dataset]
            raise Theta0Error(f"the table {self.name} has no {name!r} on {dataset}; {nearest(name, known)}")
        return self._taken(self.costs[dataset, name], rows)

    def parameters(self, dataset: str | None = None, rows: Rows = None) -> Floats:
        """Trainable parameters."""
        return self.cost("parameters", dataset, rows)

    def flops(self, dataset: str | None = None, rows: Rows = None) -> Floats:
        """Multiply-adds of convolutions and linear layers for one image."""
        return self.cost("flops", dataset, rows)

    def latency(self, device: str, rows: Rows = None, *, dataset: str | None = None) -> Floats:
        """Latency on a device, in milliseconds."""
        return self.cost(f"{device}_latency", dataset, rows)

    def energy(self, device: str, rows: Rows = None, *, dataset: str | None = None) -> Floats:
        """Energy of one inference on a device, in millijoules."""
        return self.cost(f"{device}_energy", dataset, rows)

    @property
    def devices(self) -> list[str]:
        """The devices with a latency."""
        names = dict.fromkeys(name for _, name in self.costs if name.endswith("_latency"))
        return [name.removesuffix("_latency") for name in names]

    def within(self, limits: Mapping[str, float], dataset: str | None = None) -> NDArray[np.int64]:
        """The rows whose costs are at most the limits, such as ``{"parameters": 1e6, "edgegpu_latency": 5}``."""
        meets = np.ones(len(self), dtype=bool)
        for name, limit in limits.items():
            values = self.cost(name, dataset)
            if not np.any(values <= limit):
                raise Theta0Error(
                    f"no row of {self.name} has {name} of at most {limit:g}; the smallest is {np.nanmin(values):g}"
                )
            meets &= values <= limit
        if not meets.any():
            wanted = ", ".join(f"{name} <= {limit:g}" for name, limit in limits.items())
            raise Theta0Error(f"no row of {self.name} meets all of {wanted}; raise one of the limits")
        return np.flatnonzero(meets)

    # What a searcher is given.

    def search_view(self, datasets: Sequence[str] | None = None) -> Table:
        """The table without any test accuracy, on some or all of its data sets."""
        for dataset in datasets or ():
            self.epochs(dataset)
        kept = self.datasets if datasets is None else datasets
        trained = {
            (dataset, epochs): replace(one, test=None, averaged=(one.averaged[0], False))
            for (dataset, epochs), one in self.trained.items()
            if dataset in kept
        }
        costs = {key: values for key, values in self.costs.items() if key[0] in kept}
        return replace(self, trained=trained, costs=costs, hidden=True)

    # Parts of the above.

    def _at(self, dataset: str, epochs: int) -> Trained:
        if (dataset, epochs) not in self.trained:
            budgets = ", ".join(map(str, self.epochs(dataset)))
            raise Theta0Error(f"the table {self.name} has no budget of {epochs} epochs on {dataset}; it has {budgets}")
        return self.trained[dataset, epochs]

    def _checked(self, rows: Rows) -> NDArray[np.int64]:
        if rows is None:
            return np.arange(len(self))
        places = np.asarray(rows)
        if not places.size:
            return places.astype(np.int64)
        if places.dtype.kind not in "iu":
            raise Theta0Error(f"rows are integers, not {places.dtype}; table.rows(architectures) gives them")
        if places.min() < 0 or places.max() >= len(self):
            wrong = places[(places < 0) | (places >= len(self))].flat[0]
            raise Theta0Error(f"rows of {self.name} run from 0 to {len(self) - 1}; found {wrong}")
        return places.astype(np.int64)

    def _taken(self, values: Floats, rows: Rows) -> Floats:
        return values if rows is None else np.asarray(values[self._checked(rows)])

    def _accuracy(self, values: Floats, averaged: bool, where: str, rows: Rows, run: Run) -> Floats:
        chosen = values[:, self._checked(rows)]
        if run is None:
            return np.asarray(chosen[0] if len(chosen) == 1 else np.nanmean(chosen, axis=0))
        if averaged:
            raise Theta0Error(
                f"{self.name}, {where}: the source gives the mean of the runs only; leave out run=, or take another "
                f"budget or source"
            )
        counts = (~np.isnan(chosen)).sum(axis=0)
        if isinstance(run, np.random.Generator):
            number = run.integers(counts)
        else:
            number = np.asarray(run)
            if number.dtype.kind not in "iu" or np.any(number < 0) or np.any(number >= counts):
                raise Theta0Error(
                    f"{self.name}, {where}: run must be an integer from 0 to the number of a row's runs less one, "
                    f"which runs() tells ({counts.min()} to {counts.max()} here); found {run}"
                )
            number = np.broadcast_to(number, counts.shape)
        return np.asarray(np.take_along_axis(chosen, np.asarray(number)[None], axis=0)[0])


def _check(
    values: Floats, shape: tuple[int | None, ...], where: str, most: float = np.inf, *, gaps: bool = False
) -> None:
    """Refuses arrays of another shape or with impossible numbers, and makes the others read-only."""
    fits = values.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, values.shape, strict=True)
    )
    if values.dtype != np.float64 or not fits or not len(values):
        raise Theta0Error(f"{where}: expected float64 of shape {shape}, found {values.dtype} {values.shape}")
    missing = np.isnan(values)
    # Runs come first: a gap may only be followed by gaps, and no row is without a run.
    gap = missing.any() if values.ndim == 1 else missing[0].any() or (missing[:-1] & ~missing[1:]).any()
    if missing.all() or (gap and not gaps):
        raise Theta0Error(f"{where}: a value is missing; each row needs one")
    low, high = np.nanmin(values), np.nanmax(values)
    if low < 0 or high > most:
        raise Theta0Error(f"{where}: expected values from 0 to {most:g}, found {low:g} to {high:g}")
    values.setflags(write=False)
