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
    """The rows in order; if several rows describe a step in one mode, the last one counts.

    In a run that was imported, a step of the training and its validation have the same number.
    """
    last = {(int(step), int(mode)): place for place, (step, mode) in enumerate(rows[:, :2])}
    rows = rows[[last[moment] for moment in sorted(last)]]
    known = {mode.value: mode for mode in ModeKeys}
    modes = tuple(known.get(int(mode), GLOBAL) for mode in rows[:, 1])
    return Series(name, rows[:, 0].astype(np.int64), rows[:, 3], modes, rows[:, 2].astype(np.int64))
