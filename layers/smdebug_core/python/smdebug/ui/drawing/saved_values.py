"""Statistics of a run whose hook was configured to save tensors, instead of observing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMN, COLUMNS, MEASURED, SAMPLE_SIZE, matrix_of
from smdebug.runs.overview import collections_of
from smdebug.runs.statistics import TensorSummary, from_reductions
from smdebug.runs.tensors import kind_of_collections
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor

SCALARS = frozenset({"losses", "metrics", "sm_metrics"})
MOST_BYTES = 1 << 30
"""Values of a run beyond that many bytes are left out of the heat map."""

Rows = tuple[list[str], NDArray[np.float32]]


class SavedValues:
    """Reads the scalars of each step, and the statistics of its other tensors within a budget."""

    def __init__(self, trial: Trial, most_bytes: int = MOST_BYTES):
        self._trial = trial
        self._left = most_bytes
        self.left_out_from: int | None = None
        """The first step whose values were left out, as the budget was used up; None if none were."""
        self._members: dict[str, tuple[str, ...]] = {}
        self._kinds: dict[str, str | None] = {}

    def scalars(self, step: int) -> dict[str, float]:
        """Return the losses and metrics of a step."""
        names = self._names(step, None)
        values = self._trial.in_parallel(lambda name: self._scalar(name, step), names)
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    def _scalar(self, name: str, step: int) -> float | None:
        try:
            value = self._trial.tensor(name).value(step)
        except SMDebugError:
            return None
        is_number = value.size == 1 and is_numeric(value) and value.dtype.kind != "c"
        return float(value.reshape(-1)[0]) if is_number else None

    def statistics(self, step: int) -> dict[str, Rows]:
        """Return the statistics of each kind of tensors at a step."""
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for name, kind in self._kinds_at(step).items():
            if kind is not None:
                by_kind[kind].append(name)
        return {kind: self._rows(names, step) for kind, names in by_kind.items()}

    def _rows(self, names: Sequence[str], step: int) -> Rows:
        matrix = np.full((len(names), len(COLUMNS)), np.nan, np.float32)
        rows = self._trial.in_parallel(lambda name: self._row(name, step), list(names))
        for place, row in enumerate(rows):
            if row is not None:
                matrix[place] = row
        return list(names), matrix

    def _row(self, name: str, step: int) -> Any:
        """Return the statistics of a tensor, from its value or else from what was saved of it."""
        tensor = self._trial.tensor(name)
        if self._left > 0:
            row, size = row_of_value(tensor, step)
            self._left -= size
            if row is not None:
                return row
        else:
            self.left_out_from = step if self.left_out_from is None else self.left_out_from
        return row_of_reductions(tensor, step)

    def _names(self, step: int, kind: str | None) -> list[str]:
        return [name for name, known in self._kinds_at(step).items() if known == kind]

    def _kinds_at(self, step: int) -> dict[str, str | None]:
        names = self._trial.tensor_names(step=step)
        if any(name not in self._kinds for name in names):
            self._members = dict(collections_of(self._trial))
            for name in names:
                self._kinds[name] = _kind_of(self._members.get(name, ()))
        return {name: self._kinds[name] for name in names}


def row_of_value(tensor: Tensor, step: int, worker: str | None = None) -> tuple[Any, int]:
    """Return the statistics of a saved value, and its bytes; None and 0 if it was not saved."""
    try:
        value = tensor.value(step, worker=worker)
        return matrix_of([value], SAMPLE_SIZE)[0][0], value.nbytes
    except SMDebugError:
        return None, 0


def row_of_reductions(tensor: Tensor, step: int, worker: str | None = None) -> Any:
    """Return the statistics that were saved instead of a value; None if there are none."""
    try:
        summary = from_reductions(tensor.reduction_values(step, worker=worker))
    except SMDebugError:
        return None
    return None if summary is None else _row_of(summary)


def _kind_of(collections: Sequence[str]) -> str | None:
    """Return the first known collection, None for scalars, `tensors` for any other."""
    if SCALARS.intersection(collections):
        return None
    return kind_of_collections(tuple(collections))


def _row_of(summary: TensorSummary) -> Any:
    row = np.full(len(COLUMNS), np.nan, np.float32)
    for name in MEASURED:
        value = summary.of(name)
        if value is not None:
            row[COLUMN[name]] = value
    return row
