"""A scalar at every step of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import DamagedFile
from smdebug.files.observations import SERIES_COLUMNS, matrix
from smdebug.mode_keys import ModeKeys

GLOBAL = ModeKeys.GLOBAL
_EVALUATIONS = [ModeKeys.EVAL.value, ModeKeys.PREDICT.value]


@dataclass(frozen=True)
class Series:
    """A scalar at every step of a run, whether the step was saved or not."""

    name: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    modes: tuple[ModeKeys, ...]
    mode_steps: NDArray[np.int64]

    def of(self, mode: ModeKeys) -> Series:
        """The values of one mode alone, with its own step numbers as `mode_steps`."""
        return self._chosen(np.array([other is mode for other in self.modes], bool))

    def at(self, steps: Iterable[int]) -> Series:
        """The values of these global steps alone."""
        return self._chosen(np.isin(self.steps, list(steps)))

    def _chosen(self, chosen: NDArray[np.bool_]) -> Series:
        return Series(
            self.name,
            self.steps[chosen],
            self.values[chosen],
            tuple(mode for mode, is_chosen in zip(self.modes, chosen, strict=True) if is_chosen),
            self.mode_steps[chosen],
        )

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not len(self):
            return f"Series({self.name!r}, no values)"
        return (
            f"Series({self.name!r}, {len(self):,} values from step {self.steps[0]} to {self.steps[-1]}: "
            f"{self.values[0]:.6g} to {self.values[-1]:.6g})"
        )


def checked_rows(content: NDArray[Any], place: str) -> NDArray[np.float64]:
    rows = matrix(content, len(content), len(SERIES_COLUMNS), np.float64, place)
    if not np.isfinite(rows[:, :3]).all():
        raise DamagedFile(place, "it has steps that are not numbers")
    return rows


def in_order(name: str, rows: NDArray[np.float64]) -> Series:
    """Return a series of rows of step, mode, step of the mode, value."""
    rows = settled(rows)
    known = {mode.value: mode for mode in ModeKeys}
    modes = tuple(known.get(int(mode), GLOBAL) for mode in rows[:, 1])
    return Series(name, rows[:, 0].astype(np.int64), rows[:, 3], modes, rows[:, 2].astype(np.int64))


def settled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one row for each step of each mode, in order: the last one that describes it.

    A step of the training and the evaluation after it may have the same number. All batches of an evaluation
    have one, and their mean counts.
    """
    own = np.where(np.isin(rows[:, 1], _EVALUATIONS), rows[:, 2], 0)
    order = np.lexsort((own, rows[:, 1], rows[:, 0]))  # which keeps the order of equal ones
    rows, own = rows[order], own[order]
    is_next = np.any(rows[1:, :2] != rows[:-1, :2], axis=1)
    if is_next.all():
        return rows
    rows = rows[np.append(is_next | (own[1:] != own[:-1]), True)]
    begins = np.flatnonzero(np.append(True, np.any(rows[1:, :2] != rows[:-1, :2], axis=1)))
    counts = np.diff(np.append(begins, len(rows)))
    means = rows[begins + counts - 1]
    several = counts > 1  # the mean of one value may differ from it in its last bit
    means[several, 3] = (np.add.reduceat(rows[:, 3], begins) / counts)[several]
    return means
