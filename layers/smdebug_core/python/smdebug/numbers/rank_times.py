"""Times of a rank's steps, ten together: how long they took, and how much of it no other rank had part in.

In a training whose ranks wait for each other, all steps take as long on every rank. What differs is how much
of that a rank needs for itself, and how much it waits for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

WINDOW = 10
"""How many steps are summed up together. One slow step, such as that of a checkpoint, changes no median."""


class WindowTimes(NamedTuple):
    """The medians of one window of one rank's steps, in seconds."""

    first: int
    """The first step of the window, as the mode counts."""
    offset: int
    """What to add to it for the number of the step in the run."""
    steps: int
    total: float
    outside_backward: float
    """Data, forward and update together: what a rank does alone where backward passes exchange gradients."""
    outside_passes: float
    """Data and update together: what it does alone where forwards exchange parameters, too."""
    data: float
    forward: float
    backward: float
    update: float

    @classmethod
    def of(cls, row: Sequence[float]) -> WindowTimes:
        """The times of a row."""
        return cls(int(row[0]), int(row[1]), int(row[2]), *row[3:])


def window_row(first: int, offset: int, steps: Sequence[Sequence[float]]) -> list[float]:
    """The row of a window, from the seconds of data, forward, backward and update of each step."""
    parts = [
        [sum(step) for step in steps],
        [step[0] + step[1] + step[3] for step in steps],
        [step[0] + step[3] for step in steps],
        *zip(*steps, strict=True),
    ]
    return [first, offset, len(steps), *(float(f"{median(part):.4g}") for part in parts)]


def window_times(row: Any) -> WindowTimes | None:
    """The row as it was saved; None if it has another form."""
    if not isinstance(row, list) or len(row) != len(WindowTimes._fields):
        return None
    if not all(type(value) is int for value in row[:3]):
        return None
    if not all(isinstance(value, int | float) and 0 <= value < 1e9 for value in row[3:]):
        return None
    return WindowTimes.of(row)
