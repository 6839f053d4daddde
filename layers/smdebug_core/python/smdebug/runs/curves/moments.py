"""When the steps of a run were saved: the axis of time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate

from smdebug.runs.thinned_steps import thinned


class Moments:
    """When steps of the run were saved. It grows as the run is read, in the order of steps."""

    def __init__(self, steps: Iterable[int] = (), seconds: Iterable[float] = ()):
        self.steps = array("q", steps)
        self.seconds = array("d", seconds)
        """Since 1970."""

    def note(self, step: int, seconds: float | None) -> None:
        """Add when a step was saved. One that is not later than the last replaces those from there on."""
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.seconds.pop()
        if seconds is not None:
            self.steps.append(step)
            self.seconds.append(seconds)

    def extend(self, later: Moments) -> None:
        """Add those of later steps."""
        for step, seconds in zip(later.steps, later.seconds, strict=True):
            self.note(step, seconds)

    def knots(self, most: int) -> list[tuple[int, float]]:
        """Return steps with the seconds since the first one, at most `most`; between two, time runs evenly.

        There are none if fewer than two steps have a time. A clock that was set back stands still.
        """
        if len(self.steps) < 2:
            return []
        begun = self.seconds[0]
        seconds = accumulate(self.seconds, max)
        return thinned(
            [(step, round(now - begun, 3)) for step, now in zip(self.steps, seconds, strict=True)], most
        )
