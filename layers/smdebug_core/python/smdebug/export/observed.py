"""What a run measured of its tensors, and the scalars of every step, for exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.export.selection import Selection
from smdebug.mode_keys import ModeKeys
from smdebug.runs.statistics import TensorSummary, statistics_in_row
from smdebug.trials import Trial
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.series import Series, in_order


class Measured(NamedTuple):
    """The statistics of a tensor at a step of one worker."""

    name: str
    kind: str
    step: int
    mode: ModeKeys
    mode_step: int
    worker: str
    summary: TensorSummary
    wall_time: float | None


class Scalars(NamedTuple):
    """The values of a scalar that one worker wrote at a saved step: those since the step before."""

    series: Series
    worker: str
    wall_time: float | None


class Rows(NamedTuple):
    """A scalar as one worker wrote it at a saved step: rows of step, mode, step of the mode, value."""

    name: str
    worker: str
    wall_time: float | None
    rows: NDArray[np.float64]


@dataclass(frozen=True)
class Observed:
    """The measured tensors and the scalars of a run that an export selects."""

    trial: Trial
    selection: Selection
    tensors: frozenset[str]
    scalars: frozenset[str]

    @classmethod
    def of(cls, trial: Trial, selection: Selection) -> Observed:
        """Return what the selection holds of a run's observations."""
        tensors, scalars = selection.observed_names(trial)
        return cls(trial, selection, frozenset(tensors), frozenset(scalars))

    def measured_at(self, step: int) -> Iterator[Measured]:
        """Yield what was measured of the selected tensors at a step."""
        if not self.tensors:
            return
        mode, mode_step = self.trial.mode_modestep(step)
        for worker, wall_time, seen in self._seen_at(step):
            for kind in () if seen.layout is None else seen.layout.tensors:
                matrix = seen.statistics(kind)
                self._refuse_damage(seen)
                for tensor in () if matrix is None else matrix.tensors:
                    if matrix is None or tensor.name not in self.tensors:
                        continue
                    row = matrix.row(tensor.name)
                    summary = statistics_in_row(row, tensor.dtype, tensor.shape)
                    if summary is not None:
                        yield Measured(
                            tensor.name,
                            kind,
                            step,
                            mode or ModeKeys.GLOBAL,
                            step if mode_step is None else mode_step,
                            worker,
                            summary,
                            wall_time,
                        )

    def scalars_at(self, step: int) -> Iterator[Scalars]:
        """Yield the selected scalars that a saved step holds, of it and of the unsaved steps before."""
        for name, worker, wall_time, rows in self.rows_at(step):
            yield Scalars(self._selected(in_order(name, rows)), worker, wall_time)

    def rows_at(self, step: int) -> Iterator[Rows]:
        """Yield the same scalars as they were written: each batch of an evaluation has a row of its own."""
        if not self.scalars:
            return
        for worker, wall_time, seen in self._seen_at(step):
            for name in seen.series_names:
                if name in self.scalars:
                    rows = seen.series(name)
                    self._refuse_damage(seen)
                    yield Rows(name, worker, wall_time, rows)

    def _selected(self, series: Series) -> Series:
        steps = self.selection.steps
        return series if steps is None else series.at(steps)

    def _seen_at(self, step: int) -> Iterator[tuple[str, float | None, ObservedStep]]:
        written = self.trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
        for worker in sorted(written):
            if self.selection.worker in (None, worker):
                seen = self.trial.observations.at(step, worker)
                yield worker, written[worker].saved_at, seen

    def _refuse_damage(self, seen: ObservedStep) -> None:
        if seen.damaged and not self.selection.skips_damaged:
            for error in self.trial.damaged_files.values():
                raise error
