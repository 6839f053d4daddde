"""A scalar as lines: one of training, and one of validation, whose points are whole evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import number
from smdebug.mode_keys import ModeKeys
from smdebug.runs.curves.training_steps import Integers, TrainingSteps
from smdebug.trials.observations.series import settled

Floats = NDArray[np.float64]

LABELS = {ModeKeys.TRAIN: "training", ModeKeys.EVAL: "validation", ModeKeys.PREDICT: "prediction"}
"""The modes whose steps are lines of their own, in the order in which they are shown."""


@dataclass(frozen=True)
class Line:
    """The values of one mode, in order. A point of validation is the mean over one evaluation."""

    mode: ModeKeys
    first: Integers
    """The step of the run at which each point begins."""
    last: Integers
    training_steps: Integers
    """The training step that each point belongs to."""
    values: Floats

    @property
    def label(self) -> str:
        """Its name beside the others: `training` or `validation`."""
        return LABELS[self.mode]

    @property
    def lowest(self) -> tuple[float, int] | None:
        """The lowest value with its training step; None if no value is finite."""
        return self.extreme(highest=False)

    def extreme(self, *, highest: bool) -> tuple[float, int] | None:
        """Return the highest or the lowest value with its training step; None if no value is finite."""
        known = np.flatnonzero(np.isfinite(self.values))
        if not len(known):
            return None
        finite = self.values[known]
        place = known[np.argmax(finite) if highest else np.argmin(finite)]
        return float(self.values[place]), int(self.training_steps[place])

    def in_words(self) -> str:
        """Return the last and the lowest value: `0.104 after training step 360, lowest …`."""
        where = "at" if self.mode is ModeKeys.TRAIN else "after"
        text = f"{number(float(self.values[-1]))} {where} training step {self.training_steps[-1]:,}"
        lowest = self.lowest
        if lowest is None or lowest[1] == self.training_steps[-1]:
            return text
        return f"{text}, lowest {number(lowest[0])} {where} training step {lowest[1]:,}"

    def __len__(self) -> int:
        return len(self.values)


def line_of(mode: ModeKeys, steps: NDArray[Any], values: NDArray[Any], clock: TrainingSteps) -> Line:
    """Return the values of a mode at these steps of the run as a line."""
    steps, values = np.asarray(steps, np.int64), np.asarray(values, np.float64)
    belongs_to = clock.of(steps)
    if mode is ModeKeys.TRAIN or not len(steps):
        return Line(mode, steps, steps, belongs_to, values)
    starts = np.flatnonzero(np.append(True, belongs_to[1:] != belongs_to[:-1]))
    counts = np.diff(np.append(starts, len(steps)))
    means = np.add.reduceat(values, starts) / counts
    return Line(mode, steps[starts], steps[starts + counts - 1], belongs_to[starts], means)


def lines_of(rows: NDArray[Any]) -> list[Line]:
    """Return the lines in rows of step, mode, step of the mode, value; none if none has a mode."""
    rows = settled(rows)
    of_mode = {mode: rows[rows[:, 1] == mode.value] for mode in LABELS}
    clock = TrainingSteps()
    clock.note(of_mode[ModeKeys.TRAIN][:, 0], of_mode[ModeKeys.TRAIN][:, 2])
    return [line_of(mode, each[:, 0], each[:, 3], clock) for mode, each in of_mode.items() if len(each)]
