"""Statistics of a run whose hook was configured to save tensors, instead of observing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMN, COLUMNS, SAMPLE_SIZE, matrix_of
from smdebug.runs.overview import collections_of
from smdebug.runs.statistics import TensorSummary, from_reductions
from smdebug.trials import Trial

SCALARS = frozenset({"losses", "metrics", "sm_metrics"})
MOST_BYTES = 1 << 30
"""Values of a run beyond that many bytes are left out of the heat map."""
_KINDS = ("gradients", "weights", "biases", "outputs", "inputs", "layers", "optimizer_variables")

Rows = tuple[list[str], NDArray[np.float32]]


class SavedValues:
    """Reads the scalars of each step, and the statistics of its other tensors within a budget."""

    def __init__(self, trial: Trial, most_bytes: int = MOST_BYTES):
        self._trial = trial
        self._left = most_bytes
        self._members: dict[str, tuple[str, ...]] = {}
        self._kinds: dict[str, str | None] = {}

    @property
    def has_left_out(self) -> bool:
        """Whether the budget was used up."""
        return self._left <= 0

    def scalars(self, step: int) -> dict[str, float]:
        """Return the losses and metrics of a step."""
        found = {}
        for name in self._names(step, None):
            try:
                value = self._trial.tensor(name).value(step)
            except SMDebugError:
                continue
            if value.size == 1 and is_numeric(value) and value.dtype.kind != "c":
                found[name] = float(value.reshape(-1)[0])
        return found

    def statistics(self, step: int) -> dict[str, Rows]:
        """Return the statistics of each kind of tensors at a step."""
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for name, kind in self._kinds_at(step).items():
            if kind is not None:
                by_kind[kind].append(name)
        return {kind: self._rows(names, step) for kind, names in by_kind.items()}

    def _rows(self, names: Sequence[str], step: int) -> Rows:
        matrix = np.full((len(names), len(COLUMNS)), np.nan, np.float32)
        for place, name in enumerate(names):
            tensor = self._trial.tensor(name)
            try:
                if self._left > 0:
                    value = tensor.value(step)
                    self._left -= value.nbytes
                    matrix[place] = matrix_of([value], SAMPLE_SIZE)[0][0]
                    continue
            except SMDebugError:
                pass
            try:
                summary = from_reductions(tensor.reduction_values(step))
            except SMDebugError:
                continue
            if summary is not None:
                matrix[place] = _row_of(summary)
        return list(names), matrix

    def _names(self, step: int, kind: str | None) -> list[str]:
        return [name for name, known in self._kinds_at(step).items() if known == kind]

    def _kinds_at(self, step: int) -> dict[str, str | None]:
        names = self._trial.tensor_names(step=step)
        if any(name not in self._kinds for name in names):
            self._members = dict(collections_of(self._trial))
            for name in names:
                self._kinds[name] = _kind_of(self._members.get(name, ()))
        return {name: self._kinds[name] for name in names}


def _kind_of(collections: Sequence[str]) -> str | None:
    """Return the first known collection, None for scalars, `tensors` for any other."""
    if SCALARS.intersection(collections):
        return None
    known = [kind for kind in _KINDS if kind in collections]
    return (known or list(collections) or ["tensors"])[0]


def _row_of(summary: TensorSummary) -> Any:
    row = np.full(len(COLUMNS), np.nan, np.float32)
    known = {
        "min": summary.minimum,
        "max": summary.maximum,
        "mean": summary.mean,
        "std": summary.std,
        "mean_abs": summary.abs_mean,
    }
    for name, value in known.items():
        if value is not None:
            row[COLUMN[name]] = value
    return row
