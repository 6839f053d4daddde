"""The smallest and the largest value of stretches of a long series, at the resolution of a screen.

A stretch keeps both extremes and the number of values that are not finite, so that a spike of a single
step is visible however far the reader zooms out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FACTOR = 16
"""How many cells of a level one cell of the next level has."""
_FIRST_ROOM = 256


@dataclass(frozen=True)
class Stretches:
    """Consecutive parts of a series. `low` and `high` are NaN where no value is finite."""

    first: Integers
    """The first step of each part."""
    last: Integers
    low: Floats
    high: Floats
    not_finite: Integers
    """How many values of the part are not finite."""
    is_exact: bool
    """Whether each part is a single value."""


class Pyramid:
    """A series that grows at its end, with its extremes at several resolutions."""

    def __init__(self) -> None:
        self._count = 0
        self._steps: Integers = np.empty(_FIRST_ROOM, np.int64)
        self._values: Floats = np.empty(_FIRST_ROOM)
        self._levels: list[_Level] = []

    def __len__(self) -> int:
        return self._count

    @property
    def steps(self) -> Integers:
        return self._steps[: self._count]

    @property
    def values(self) -> Floats:
        return self._values[: self._count]

    @property
    def nbytes(self) -> int:
        """The memory that the series takes."""
        own = self._steps.nbytes + self._values.nbytes
        return own + sum(level.nbytes for level in self._levels)

    def append(self, steps: Integers, values: Floats) -> None:
        """Add values in the order of their steps.

        A step that is not later than the last one replaces the series from there: the training was resumed.
        """
        if not len(steps):
            return
        if self._count and steps[0] <= self._steps[self._count - 1]:
            self._count = int(np.searchsorted(self.steps, steps[0]))
        count = self._count + len(steps)
        if count > len(self._steps):
            room = max(count, 2 * len(self._steps))
            self._steps, self._values = (_longer(a, room) for a in (self._steps, self._values))
        self._steps[self._count : count] = steps
        self._values[self._count : count] = values
        begun, self._count = self._count, count
        self._summarise(begun)

    def between(self, first: int | None, last: int | None, most: int) -> Stretches:
        """Return the values of these steps in at most about `most` parts.

        The value before and the value after are included, so that a line reaches the edges of the screen.
        """
        steps = self.steps
        start = 0 if first is None else max(0, int(np.searchsorted(steps, first)) - 1)
        stop = self._count
        if last is not None:
            stop = min(stop, int(np.searchsorted(steps, last, side="right")) + 1)
        most = max(1, most)
        if stop - start <= most:
            return self._exact(start, stop)
        width = -(-(stop - start) // most)
        level = 0
        while FACTOR ** (level + 1) <= width and level < len(self._levels):
            level += 1
        cell: int = FACTOR**level
        width = -(-width // cell) * cell
        start -= start % width  # the edges of parts do not depend on the window
        edges = np.arange(start, stop, width)
        ends = np.minimum(edges + width, self._count)
        low, high, odd = self._extremes(level, edges // cell, -(-int(ends[-1]) // cell))
        return Stretches(steps[edges], steps[ends - 1], low, high, odd, is_exact=False)

    def _exact(self, start: int, stop: int) -> Stretches:
        values = self._values[start:stop]
        odd = ~np.isfinite(values)
        finite = np.where(odd, np.nan, values)
        steps = self._steps[start:stop].copy()
        return Stretches(steps, steps, finite, finite, odd.astype(np.int64), is_exact=True)

    def _extremes(self, level: int, edges: Integers, end: int) -> tuple[Floats, Floats, Integers]:
        if level:
            cells = self._levels[level - 1]
            low, high, odd = cells.low[:end], cells.high[:end], cells.odd[:end]
        else:
            low, high, odd = _cells_of(self._values[:end])
        return (
            np.fmin.reduceat(low, edges),
            np.fmax.reduceat(high, edges),
            np.add.reduceat(odd, edges),
        )

    def _summarise(self, begun: int) -> None:
        """Bring every level up to date from the value at `begun` on."""
        low, high, odd = self._values, self._values, None
        count, level = self._count, 0
        while count > FACTOR:
            begun //= FACTOR
            if level == len(self._levels):
                self._levels.append(_Level())
                begun = 0
            cells = self._levels[level]
            start = begun * FACTOR
            if odd is None:
                below = _cells_of(self._values[start:count])
            else:
                below = (low[start:count], high[start:count], odd[start:count])
            cells.put(begun, *below)
            low, high, odd = cells.low, cells.high, cells.odd
            count = -(-count // FACTOR)
            level += 1
        del self._levels[level:]  # of a longer series, before a training was resumed


class _Level:
    """Cells of one resolution."""

    def __init__(self) -> None:
        self.low: Floats = np.empty(0)
        self.high: Floats = np.empty(0)
        self.odd: Integers = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self.low.nbytes + self.high.nbytes + self.odd.nbytes

    def put(self, at: int, low: Floats, high: Floats, odd: Integers) -> None:
        """Replace the cells from `at` on, computed from the level below."""
        edges = np.arange(0, len(low), FACTOR)
        end = at + len(edges)
        if end > len(self.low):
            room = max(end, 2 * len(self.low))
            self.low, self.high = _longer(self.low, room), _longer(self.high, room)
            self.odd = _longer(self.odd, room)
        self.low[at:end] = np.fmin.reduceat(low, edges)
        self.high[at:end] = np.fmax.reduceat(high, edges)
        self.odd[at:end] = np.add.reduceat(odd, edges)


def _cells_of(values: Floats) -> tuple[Floats, Floats, Integers]:
    odd = ~np.isfinite(values)
    finite = np.where(odd, np.nan, values)
    return finite, finite, odd.astype(np.int64)


def _longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.empty(room, array.dtype)
    longer[: len(array)] = array
    return longer
