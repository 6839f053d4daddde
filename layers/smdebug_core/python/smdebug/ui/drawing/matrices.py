"""The statistics of every tensor of one kind over the steps of a run, in bounded memory.

Each column is a stretch of saved steps with the smallest and the largest of every statistic. As long as
there is room, a stretch is one step. When the room is used up, neighbouring stretches are joined, so a value
that stands out at a single step remains visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError
from smdebug.numbers.rows import COLUMN, COLUMNS

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

BUDGET = 48 << 20
"""Bytes that the stretches of one kind may take."""
MOST_STRETCHES = 4096
_LEAST_STRETCHES = 8
_FIRST_ROOM = 32


@dataclass(frozen=True)
class Window:
    """One statistic over a window of steps: a row per tensor, a column per stretch."""

    first: Integers
    last: Integers
    low: Floats
    high: Floats

    @property
    def is_exact(self) -> bool:
        """Whether each cell is one value: one step of one tensor."""
        return bool(
            np.array_equal(self.first, self.last) and np.array_equal(self.low, self.high, equal_nan=True)
        )


class Statistics:
    """The statistics of one kind of tensors, step after step."""

    def __init__(self, budget: int = BUDGET, most: int = MOST_STRETCHES, *, per_stretch: int = 1) -> None:
        self.names: list[str] = []
        self._budget = budget
        self._most = most
        self._per_stretch = per_stretch
        self._count = 0
        self._in_last = 0
        self._first: Integers = np.empty(0, np.int64)
        self._last: Integers = np.empty(0, np.int64)
        self._low: Floats = np.empty((0, 0, len(COLUMNS)), np.float32)
        self._high: Floats | None = None  # None: as `_low`, while every stretch is one step

    def __len__(self) -> int:
        return self._count

    @property
    def steps_in_a_stretch(self) -> int:
        """How many saved steps were joined."""
        return self._per_stretch

    @property
    def last_step(self) -> int | None:
        return int(self._last[self._count - 1]) if self._count else None

    @property
    def nbytes(self) -> int:
        """The memory that the stretches take."""
        return self._low.nbytes + (0 if self._high is None else self._high.nbytes)

    @property
    def stretches(self) -> tuple[Integers, Integers, Floats, Floats | None]:
        """The first and last steps of the stretches, and their extremes; no `high` while each is a step."""
        count = self._count
        high = None if self._high is None else self._high[:count]
        return self._first[:count], self._last[:count], self._low[:count], high

    @classmethod
    def of_stretches(
        cls,
        names: Sequence[str],
        stretches: tuple[Integers, Integers, Floats],
        high: Floats | None,
        *,
        per_stretch: int,
        budget: int = BUDGET,
    ) -> Statistics:
        """Return statistics that continue those stretches; the last of them counts as full."""
        made = cls(budget)
        made._first, made._last, made._low = stretches
        made._count = len(made._first)
        shape = (made._count, len(names), len(COLUMNS))
        if made._low.shape != shape or (high is not None and high.shape != shape):
            raise ValueError("The matrices do not belong together")
        made.names, made._high = list(names), high
        made._per_stretch = made._in_last = per_stretch
        return made

    def append(self, step: int, names: Sequence[str], values: Floats, high: Floats | None = None) -> None:
        """Add a step. A step that is not later than the last one drops those from there on.

        With `high`, the rows stand for several tensors, and `values` has their smallest ones.
        """
        self._add(step, step, 1, names, values, high)

    def extend(self, later: Statistics) -> None:
        """Add the stretches of later steps, with the same result as of their steps one by one.

        That is so where stretches begin at multiples of their lengths, which are powers of two.
        """
        while self._per_stretch < later._per_stretch:
            self._join_neighbours()
        firsts, lasts, low, high = later.stretches
        for at, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
            steps = later._in_last if at == len(firsts) - 1 else later._per_stretch
            top = None if high is None else high[at]
            self._add(int(first), int(last), steps, later.names, low[at], top)

    def _add(
        self,
        first: int,
        last: int,
        steps: int,
        names: Sequence[str],
        values: Floats,
        high: Floats | None,
    ) -> None:
        """Add a stretch of some steps, as one of its own or to the last one while that has room."""
        if self._count and first <= self._last[self._count - 1]:
            self._drop_from(first)
        top = self._arranged(names, values if high is None else high)
        values = top if high is None else self._arranged(names, values)
        if self._high is None and (high is not None or self._per_stretch > 1):
            self._high = self._low.copy()
        # Twice if need be: once stretches have two extremes, half as many fit.
        while self._in_last >= self._per_stretch and self._count >= self._room():
            self._join_neighbours()
        if 0 < self._in_last < self._per_stretch:
            at = self._count - 1
            assert self._high is not None
            np.fmin(self._low[at], values, out=self._low[at])
            np.fmax(self._high[at], top, out=self._high[at])
            self._last[at] = last
            self._in_last += steps
            return
        self._grow()
        at = self._count
        self._low[at] = values
        if self._high is not None:
            self._high[at] = top
        self._first[at], self._last[at] = first, last
        self._count += 1
        self._in_last = steps

    def window(
        self,
        statistic: str,
        first: int | None = None,
        last: int | None = None,
        most: int = 2048,
        *,
        mark_odd: bool = False,
    ) -> Window:
        """Return one statistic of the steps between `first` and `last`, in at most `most` columns.

        With `mark_odd` it is infinite where a tensor has values that are not finite, which statistics leave
        out.
        """
        place = COLUMN.get(statistic)
        if place is None:
            raise SMDebugValueError(f"{statistic!r} is not a statistic. Known are {', '.join(COLUMNS)}")
        start, stop = self._places(first, last)
        low = self._low[start:stop, :, place]
        high = low if self._high is None else self._high[start:stop, :, place]
        if mark_odd and statistic != "non_finite":
            ends_at = self._low if self._high is None else self._high
            has_odd = ends_at[start:stop, :, COLUMN["non_finite"]] > 0
            high = np.where(has_odd, np.float32(np.inf), high)
            low = high if self._high is None else low
        firsts, lasts = self._first[start:stop], self._last[start:stop]
        if stop - start > max(1, most):
            width = -(-(stop - start) // max(1, most))
            edges = np.arange(0, stop - start, width)
            ends = np.append(edges[1:], stop - start) - 1
            low, high = np.fmin.reduceat(low, edges), np.fmax.reduceat(high, edges)
            firsts, lasts = firsts[edges], lasts[ends]
        return Window(firsts.copy(), lasts.copy(), low.T.copy(), high.T.copy())

    def history(self, name: str) -> tuple[Integers, Integers, Floats, Floats]:
        """Return the stretches' first and last steps, and the extremes of all statistics of a tensor."""
        row = self.names.index(name)
        low = self._low[: self._count, row].copy()
        high = low if self._high is None else self._high[: self._count, row].copy()
        return self._first[: self._count].copy(), self._last[: self._count].copy(), low, high

    def last_measured(self, row: int) -> int | None:
        """Return the place of the last stretch that has any statistic of a tensor but its count."""
        known = np.isfinite(np.delete(self._low[: self._count, row], COLUMN["count"], axis=1))
        places = np.flatnonzero(known.any(axis=1))
        return int(places[-1]) if len(places) else None

    def joined(self, most: int) -> tuple[Integers, Integers, Floats, Floats | None]:
        """Return every statistic in at most `most` columns: first and last steps, and the extremes.

        There is no `high` while each column is one step.
        """
        firsts, lasts, low, high = self.stretches
        if self._count <= most:
            return firsts.copy(), lasts.copy(), low.copy(), None if high is None else high.copy()
        width = -(-self._count // max(1, most))
        edges = np.arange(0, self._count, width)
        ends = np.append(edges[1:], self._count) - 1
        top = np.fmax.reduceat(low if high is None else high, edges, axis=0)
        return firsts[edges], lasts[ends], np.fmin.reduceat(low, edges, axis=0), top

    def together_with(self, other: Statistics) -> tuple[Integers, Floats, Floats]:
        """Return the stretches that both have, with the smallest of every statistic of each."""
        here, there = self._first[: self._count], other._first[: other._count]
        same, ours, theirs = np.intersect1d(here, there, return_indices=True)
        return same, self._low[ours], other._low[theirs]

    def _places(self, first: int | None, last: int | None) -> tuple[int, int]:
        """Return the stretches of a window, with one more on each side."""
        start, stop = 0, self._count
        if first is not None:
            start = max(0, int(np.searchsorted(self._last[: self._count], first)) - 1)
        if last is not None:
            found = int(np.searchsorted(self._first[: self._count], last, side="right"))
            stop = min(stop, found + 1)
        return start, max(start, stop)

    def _arranged(self, names: Sequence[str], values: Floats) -> Floats:
        """Return the rows in the order of `self.names`, which gets the new ones at its end."""
        if list(names) == self.names:
            return values
        known = {name: place for place, name in enumerate(self.names)}
        for name in names:
            if name not in known:
                known[name] = len(self.names)
                self.names.append(name)
        self._widen()
        arranged = np.full((len(self.names), len(COLUMNS)), np.nan, np.float32)
        arranged[[known[name] for name in names]] = values
        return arranged

    def _room(self) -> int:
        """How many stretches may be kept."""
        row = max(1, len(self.names)) * len(COLUMNS) * 4 * (1 if self._high is None else 2)
        return max(_LEAST_STRETCHES, min(self._most, self._budget // row))

    def _grow(self) -> None:
        if self._count < len(self._first):
            return
        room = min(self._room(), max(_FIRST_ROOM, 2 * self._count))
        self._first, self._last = np.resize(self._first, room), np.resize(self._last, room)
        self._low = self._taller(self._low, room)
        if self._high is not None:
            self._high = self._taller(self._high, room)

    def _widen(self) -> None:
        rows = len(self.names)
        while self._count > self._room():
            self._join_neighbours()
        for attribute in ("_low", "_high"):
            old = getattr(self, attribute)
            if old is None or old.shape[1] == rows:
                continue
            new = np.full((old.shape[0], rows, len(COLUMNS)), np.nan, np.float32)
            new[:, : old.shape[1]] = old
            setattr(self, attribute, new)

    def _taller(self, old: Floats, room: int) -> Floats:
        new = np.empty((room, len(self.names), len(COLUMNS)), np.float32)
        new[: self._count] = old[: self._count]
        return new

    def _join_neighbours(self) -> None:
        """Join each two neighbours: half as many stretches, each twice as long."""
        count = self._count
        if count:
            firsts = np.arange(0, count, 2)
            ends = np.minimum(firsts + 1, count - 1)
            half = len(firsts)
            low, high = self._low, self._low if self._high is None else self._high
            if self._high is None:
                self._low, self._high = np.empty_like(low[:half]), np.empty_like(low[:half])
            # Row by row and in place, as large temporary arrays take time and memory.
            for at, (first, end) in enumerate(zip(firsts, ends, strict=True)):
                np.fmin(low[first], low[end], out=self._low[at])
                np.fmax(high[first], high[end], out=self._high[at])
            room = len(self._low)
            self._first = np.resize(self._first[firsts], room)
            self._last = np.resize(self._last[ends], room)
            self._in_last += self._per_stretch if count % 2 == 0 else 0
            self._count = half
        self._per_stretch *= 2

    def _drop_from(self, step: int) -> None:
        """Drop the stretches with this step or later ones."""
        self._count = int(np.searchsorted(self._last[: self._count], step))
        self._in_last = self._per_stretch if self._count else 0
