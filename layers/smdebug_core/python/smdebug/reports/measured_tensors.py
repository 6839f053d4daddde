"""Tensors that a run measured without saving them: their statistics, as sections of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.numbers.rows import COLUMN
from smdebug.reports.tensor_series import MOST_TENSORS, STATISTICS, Section, Series
from smdebug.runs.statistics import TensorSummary
from smdebug.trials import Trial
from smdebug.trials.statistics_matrix import StatisticsMatrix

# In the order in which a training goes wrong, with the titles of the sections.
_KINDS = ("gradients", "parameters", "updates", "outputs", "inputs")
_COLUMNS = {
    "abs_mean": COLUMN["mean_abs"],
    "std": COLUMN["std"],
    "minimum": COLUMN["min"],
    "maximum": COLUMN["max"],
    "mean": COLUMN["mean"],
}


def measured_sections(
    trial: Trial, steps: Sequence[int], named: Iterable[str], left_room: int = MOST_TENSORS
) -> tuple[tuple[Section, ...], int]:
    """Return a section per kind, its tensors in the order of the model; and how many are left out.

    Tensors named in findings are drawn first if there are more than `left_room`.
    """
    matrices = _matrices(trial, steps)
    rows = {
        (kind, tensor.name): tensor
        for _, matrix in matrices
        for kind, tensor in zip(matrix.kinds, matrix.tensors, strict=True)
    }
    important = set(named)
    by_rank = sorted(rows, key=lambda row: (row[1] not in important, _rank(row[0])))
    chosen = set(by_rank[: max(0, left_room)])
    drawn = [row for row in rows if row in chosen]
    series = {row: _Growing(len(steps)) for row in drawn}
    for at, matrix in matrices:
        for place, row in enumerate(
            zip(matrix.kinds, (tensor.name for tensor in matrix.tensors), strict=True)
        ):
            if row in series:
                series[row].add(at, steps[at], matrix, place)
    sections = []
    for kind in sorted({kind for kind, _ in drawn}, key=_rank):
        of_kind = [series[row].finished(row[1]) for row in drawn if row[0] == kind]
        sections.append(Section(f"{kind.capitalize()}, measured", tuple(of_kind)))
    return tuple(sections), len(rows) - len(drawn)


class _Growing:
    """The statistics of a tensor, while they are read step by step."""

    def __init__(self, steps: int):
        self._numbers: dict[str, NDArray[np.float32]] = {
            name: np.full(steps, np.nan, np.float32) for name in STATISTICS
        }
        self._odd: list[tuple[int, int, int]] = []
        self._last: tuple[int, TensorSummary] | None = None

    def add(self, at: int, step: int, matrix: StatisticsMatrix, place: int) -> None:
        values = matrix.values[place]
        if not values[COLUMN["count"]] > 0:
            return
        for name, column in _COLUMNS.items():
            self._numbers[name][at] = values[column]
        odd = int(values[COLUMN["non_finite"]])
        if odd:
            self._odd.append((step, odd, 0))
        tensor = matrix.tensors[place]
        summary = TensorSummary(
            minimum=_number(values[COLUMN["min"]]),
            maximum=_number(values[COLUMN["max"]]),
            mean=_number(values[COLUMN["mean"]]),
            std=_number(values[COLUMN["std"]]),
            abs_mean=_number(values[COLUMN["mean_abs"]]),
            dtype=tensor.dtype,
            shape=tensor.shape,
        )
        self._last = step, summary

    def finished(self, name: str) -> Series:
        step, summary = self._last or (None, None)
        return Series(name, self._numbers, tuple(self._odd), summary, step)


def _matrices(trial: Trial, steps: Sequence[int]) -> list[tuple[int, StatisticsMatrix]]:
    found = []
    for at, step in enumerate(steps):
        try:
            found.append((at, trial.statistics(step)))
        except SMDebugError:  # a step without statistics; damage is listed elsewhere
            continue
    return found


def _rank(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


def _number(value: np.float32) -> float | None:
    return float(value) if np.isfinite(value) else None
