"""The epochs of a training: where each begins, the axis that they make, and the mean of a scalar in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.files.names import EPOCHS
from smdebug.runs.curves.training_steps import Integers, TrainingSteps
from smdebug.runs.thinned_steps import thinned

NAMES = (EPOCHS, "epoch")
"""The series of epochs, in the order in which they are trusted: as the library counts them, or the user."""
NOT_RECORDED = "no epochs are recorded"
ONE_SO_FAR = "one epoch so far"


@dataclass(frozen=True)
class Epochs:
    """The training steps at which epochs begin, in order. The last epoch may not be over."""

    begins: Integers
    last: int
    """The last training step so far."""

    @property
    def missing(self) -> str:
        """Why there is no axis of epochs; "" if there is one."""
        if not len(self.begins):
            return NOT_RECORDED
        return "" if len(self.begins) > 1 else ONE_SO_FAR

    def of(self, steps: NDArray[Any]) -> Integers:
        """Return the number of the epoch, from 1 on, that each training step is in."""
        return np.maximum(np.searchsorted(self.begins, steps, side="right"), 1)

    def knots(self, most: int) -> list[tuple[int, float]]:
        """Return training steps with the epochs that are over before them; empty without an axis.

        The last epoch is expected to be as long as the one before it.
        """
        if self.missing:
            return []
        begins = self.begins.tolist()
        usual, so_far = begins[-1] - begins[-2], self.last + 1 - begins[-1]
        end = (self.last + 1, len(begins) - 1 + so_far / max(usual, so_far, 1))
        return thinned([*zip(begins, map(float, range(len(begins))), strict=True), end], most)

    def means(self, steps: NDArray[Any], values: NDArray[Any], most: int) -> list[tuple[int, float | None]]:
        """Return the mean of the values in each epoch, of which at most `most` are kept.

        A value that is not finite is left out, and the mean of no value is None. `steps` are training steps.
        """
        if not len(self.begins) or not len(steps):
            return []
        epochs, known = self.of(steps), np.isfinite(values)
        size = int(epochs.max()) + 1
        counts = np.bincount(epochs[known], minlength=size)
        sums = np.bincount(epochs[known], weights=values[known], minlength=size)
        return [
            (int(epoch), float(sums[epoch] / counts[epoch]) if counts[epoch] else None)
            for epoch in thinned(np.unique(epochs).tolist(), most)
        ]


def epochs_of(steps: NDArray[Any], values: NDArray[Any], clock: TrainingSteps, last: int) -> Epochs:
    """Return the epochs in a series whose value is the number of the epoch: it rises where one begins.

    `last` is the last step of the run. Steps count all modes; `clock` knows the training steps.
    """
    known = np.isfinite(values)
    steps, values = np.asarray(steps, np.int64)[known], np.asarray(values)[known]
    highest = np.maximum.accumulate(values) if len(values) else values
    begins = np.append(True, highest[1:] > highest[:-1])[: len(values)]
    first, end = clock.of(steps[begins]), clock.of(np.array([last]))
    return Epochs(np.unique(first), int(end[0]))
