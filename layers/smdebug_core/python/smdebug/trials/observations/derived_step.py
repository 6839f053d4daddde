"""What a step would have observed, derived from the tensors that it saved.

A run whose tensors somebody chose, as every run of the old library, holds no statistics and no facts. They
follow from its tensors: statistics, samples, digests and the scalars of the step. What no tensor shows, such
as the optimizer, the modes of modules and the losses between two saved steps, stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from smdebug.files.observations import (
    GRADIENTS,
    INPUTS,
    OUTPUTS,
    PARAMETERS,
    UPDATES,
    ObservationLayout,
    ObservedTensor,
    Rows,
)
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.packed import Measurements, digests_together, measure_together
from smdebug.numbers.rows import completed
from smdebug.numbers.statistics import is_numeric
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.saved_kinds import (
    SavedKinds,
    Sorted,
    parameter_of,
    plain_name,
)
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix

LOSS = "loss"
KEPT_BYTES = 256 << 20
"""Parameters of more bytes are not compared with those of the step before."""
BATCH_BYTES = 16 << 20
Array = NDArray[Any]
Floats = NDArray[np.float32]


class Saved(Protocol):
    """What reads the saved tensors of a run."""

    def value(self, name: str, step: int, worker: str) -> Array: ...
    def layout_of(
        self,
        names: Sorted,
        rows: Mapping[str, tuple[ObservedTensor, ...]],
        facts: Callable[[], dict[str, Any]],
    ) -> ObservationLayout: ...
    def loss_among(self, names: Collection[str], kinds: SavedKinds, mode: ModeKeys) -> str | None: ...
    def parameters_before(self, step: int, worker: str) -> tuple[int, Mapping[str, Array]] | None: ...
    def keep_parameters(self, step: int, worker: str, values: Mapping[str, Array]) -> None: ...


class DerivedStep(ObservedStep):
    """A step of a run without observations, as the rules see it: what follows from its tensors."""

    def __init__(
        self,
        observations: Any,
        at: tuple[int, ModeKeys, int, str],
        sorted_names: Sorted,
        kinds: SavedKinds,
        saved: Saved,
    ):
        step, mode, mode_step, worker = at
        super().__init__(observations, step, mode, worker, frozenset())
        self._mode_step = mode_step
        self._sorted = sorted_names
        self._kinds = kinds
        self._saved = saved

    @cached_property
    def layout(self) -> ObservationLayout | None:
        """The tensors that the step has, by kind, with what their names tell of the model."""
        return self._saved.layout_of(self._sorted, self._measured.rows, self._facts_of_names)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What the tensors show of the step."""
        rows = self._measured.rows
        if not rows:
            return {}
        facts: dict[str, Any] = {} if self.layout is None else {**self.layout.facts}
        if INPUTS in rows:
            facts["shapes"] = [list(row.shape) for row in rows[INPUTS][:8]]
        if UPDATES in rows:
            facts |= {
                "optimizer_steps": 1,
                "updates_are_differences": True,
                "steps_apart": self._measured.apart,
            }
        return facts

    @cached_property
    def series_names(self) -> list[str]:
        """The scalars of the step: its loss, metrics, and those that the training saved."""
        return sorted(self._scalars)

    @cached_property
    def _scalars(self) -> dict[str, float]:
        found = {}
        for name in self._sorted.scalars:
            value = self._read(name, lambda name=name: self._value(name))  # type: ignore[misc]
            if value is None or not is_numeric(value) or value.dtype.kind == "c" or not value.size:
                continue
            with np.errstate(all="ignore"):
                found[name.removeprefix("scalar/")] = float(value.mean(dtype=np.float64))
        loss = self._saved.loss_among(found, self._kinds, self.mode)
        if loss is not None:
            found[LOSS] = found[loss]
        return found

    @cached_property
    def _measured(self) -> _Measured:
        """The statistics and samples of all tensors, each of which is read once."""
        found = _Measured()
        parameters: dict[str, Array] = {}
        kept = 0
        for kind, names in self._sorted.kinds.items():
            rows = _Rows()
            for name in names:
                value = self._numbers(name)
                if value is None:
                    continue
                rows.add(name, value)
                if kind == PARAMETERS and kept <= KEPT_BYTES:
                    parameters[name] = value
                    kept += value.nbytes
            found.add(kind, rows)
        if parameters and kept <= KEPT_BYTES and GRADIENTS in found.rows:
            found.add(UPDATES, self._updates(parameters, found))
        return found

    def _updates(self, parameters: Mapping[str, Array], found: _Measured) -> _Rows:
        """Measure what has changed of the parameters since the step before."""
        worker, rows = str(self.worker), _Rows()
        before = self._saved.parameters_before(self.step, worker)
        self._saved.keep_parameters(self.step, worker, parameters)
        if before is None:
            return rows
        step, earlier = before
        found.apart = self.step - step
        for name, value in parameters.items():
            old = earlier.get(name)
            if old is not None and old.shape == value.shape and value.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    rows.add(f"update/{name}", value - old)
        return rows

    def _facts_of_names(self) -> dict[str, Any]:
        """What holds for all steps that have the same tensors."""
        parameters = {plain_name(row.name): row.name for row in self._measured.rows.get(PARAMETERS, ())}
        known = {
            parameter_of(name): name for name in (*sorted(self._kinds.gradients), *self._names_of(GRADIENTS))
        }
        trained = {name: known[plain] for plain, name in parameters.items() if plain in known}
        facts: dict[str, Any] = {"derived": True, "modules": self._modules()}
        if trained:
            facts["gradient_names"] = trained
            facts["optimizers"] = [{"class": "", "groups": [{"parameters": sorted(trained)}]}]
        return facts

    def _modules(self) -> list[list[Any]]:
        root = self._sorted.root
        rows = [[root, "", False]] if root else [["", "", False]]
        for name in self._names_of(OUTPUTS):
            layer = name.removesuffix("_output_0")
            if layer not in (name, root):
                rows.append([layer, self._kinds.layer_class(name), False])
        return rows

    def _names_of(self, kind: str) -> list[str]:
        return [row.name for row in self._measured.rows.get(kind, ())]

    def _numbers(self, name: str) -> Array | None:
        value = self._read(name, lambda: self._value(name))
        if value is None or not is_numeric(value) or value.dtype.kind == "c":
            return None
        return value  # type: ignore[no-any-return]

    def _value(self, name: str) -> Array:
        return self._saved.value(name, self.step, str(self.worker))

    def _part(self, what: str, name: str, read: Any) -> Any:
        """The parts of `ObservedStep`, by what was measured."""
        if what == "series":
            if name not in self._scalars:
                return None
            return np.array([[self.step, self.mode.value, self._mode_step, self._scalars[name]]])
        if what == "digests":
            return self._digests(name)
        if name not in self._measured.rows:
            return None
        rows, (matrix, samples) = self._measured.rows[name], self._measured.matrices[name]
        if what == "statistics":
            return StatisticsMatrix(self.step, rows, (name,) * len(rows), matrix)
        return {row.name: sample[: row.size] for row, sample in zip(rows, samples, strict=True)}

    def _digests(self, kind: str) -> Mapping[str, tuple[int, int]]:
        """Read the tensors of one kind again: few rules compare contents."""
        names = self._names_of(kind) if kind in self._sorted.kinds else []
        values = {name: value for name in names if (value := self._numbers(name)) is not None}
        halves = digests_together(list(values.values())).tolist()
        return {name: (first, second) for name, (first, second) in zip(values, halves, strict=True)}

    @property
    def nbytes(self) -> int:
        """About how much memory its statistics and samples take."""
        if "_measured" not in self.__dict__:
            return 4096
        matrices = self._measured.matrices.values()
        return 4096 + sum(matrix.nbytes + samples.nbytes for matrix, samples in matrices)


@dataclass
class _Measured:
    """What was measured of the tensors of a step, by kind."""

    rows: dict[str, tuple[ObservedTensor, ...]] = field(default_factory=dict)
    matrices: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """The statistics and the samples of each kind."""
    apart: int = 0
    """How many steps lie between this one and the one that its updates begin at."""

    def add(self, kind: str, rows: _Rows) -> None:
        if rows.rows:
            self.rows[kind] = Rows(rows.rows)
            self.matrices[kind] = rows.matrices()


class _Rows:
    """Measures tensors in batches, so that no more than a few megabytes of them are held at once."""

    def __init__(self) -> None:
        self.rows: list[ObservedTensor] = []
        self._waiting: list[Array] = []
        self._bytes = 0
        self._parts: list[Measurements] = []

    def add(self, name: str, value: Array) -> None:
        self.rows.append(_tensor(name, value.shape, value.dtype))
        self._waiting.append(value)
        self._bytes += value.nbytes
        if self._bytes > BATCH_BYTES:
            self._measure()

    def matrices(self) -> tuple[Floats, Floats]:
        """The statistics and the samples of all that was added, a row each."""
        self._measure()
        numbers, samples = map(np.concatenate, zip(*self._parts, strict=True))
        return completed(numbers, samples), samples

    def _measure(self) -> None:
        if self._waiting:
            self._parts.append(measure_together(self._waiting))
        self._waiting, self._bytes = [], 0


@lru_cache(maxsize=1 << 16)
def _tensor(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ObservedTensor:
    return ObservedTensor(name, shape, str(dtype))
