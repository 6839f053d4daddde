"""Which training step a step of the run belongs to.

The steps of a run are counted over all modes: after an evaluation of 20 batches, the next training step is 21
steps later. People count training steps, and say that an evaluation came after one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.mode_keys import ModeKeys
from smdebug.runs.thinned_steps import thinned

Integers = NDArray[np.int64]


class TrainingSteps:
    """The steps of a run, counted over all modes, as training steps. It grows as the run is read."""

    def __init__(self, begins: Iterable[tuple[int, int]] = (), last: int = -1):
        self._begins = dict(begins)
        """By the number of steps of other modes before: the first training step that follows them."""
        self._last = last

    def note(self, steps: NDArray[Any], mode_steps: NDArray[Any]) -> None:
        """Add training steps: their numbers in the run, and among the training steps."""
        if not len(steps):
            return
        shifts, places = np.unique(steps - mode_steps, return_index=True)
        for shift, first in zip(shifts.tolist(), steps[places].tolist(), strict=True):
            self._begin(int(shift), int(first))
        self._last = max(self._last, int(steps.max()))

    def note_rows(self, rows: NDArray[np.float64]) -> None:
        """Add the training steps among rows of step, mode, step of the mode, value."""
        training = rows[rows[:, 1] == ModeKeys.TRAIN.value]
        self.note(training[:, 0].astype(np.int64), training[:, 2].astype(np.int64))

    @property
    def last(self) -> int:
        """The last of the training steps, by its number in the run; -1 before the first."""
        return self._last

    def extend(self, later: TrainingSteps) -> None:
        """Add what is known of other steps."""
        for shift, first in later._begins.items():
            self._begin(shift, first)
        self._last = max(self._last, later._last)

    def of(self, steps: NDArray[Any]) -> Integers:
        """Return the training step of each step: itself, or the last one before an evaluation.

        It is the first one for an evaluation before training. A run without training has its own steps.
        """
        steps = np.asarray(steps, np.int64)
        if not self._begins:
            return steps
        firsts, shifts, ends = self._columns()
        place = np.searchsorted(firsts, steps, side="right") - 1
        found = np.minimum(steps - shifts[place], ends[place])
        return np.where(place < 0, firsts[0] - shifts[0], found)

    def knots(self, most: int) -> list[tuple[int, int]]:
        """Return steps of the run with their training steps, between which a line can be drawn.

        There are none if every step is a training step; of many, at most about `most` are kept.
        """
        if not self._begins or list(self._begins) == [0]:
            return []
        firsts, shifts, ends = self._columns()
        begins = zip(firsts.tolist(), (firsts - shifts).tolist(), strict=True)
        finishes = zip((ends + shifts).tolist(), ends.tolist(), strict=True)
        return thinned(sorted({*begins, *finishes}), most)

    def to_list(self) -> list[Any]:
        """As JSON has it; `TrainingSteps(*list)` is the same."""
        return [sorted(self._begins.items()), self._last]

    def _begin(self, shift: int, first: int) -> None:
        self._begins[shift] = min(first, self._begins.get(shift, first))

    def _columns(self) -> tuple[Integers, Integers, Integers]:
        """Return, of each stretch of training: its first step, its shift, its last training step."""
        pairs = np.array(sorted((first, shift) for shift, first in self._begins.items()), np.int64)
        firsts, shifts = pairs[:, 0], pairs[:, 1]
        ends = np.append((firsts - shifts)[1:] - 1, self._last - shifts[-1])
        return firsts, shifts, np.maximum(ends, firsts - shifts)
