"""The rows of a table, outside of memory: a million runs have more than a small machine holds."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import overload

import numpy as np
from numpy.typing import NDArray

from smdebug.backtesting.rows import Row

_IN_MEMORY = 8 << 20
"""Bytes of rows that are kept in memory; with more, all are in a temporary file."""


class _Lines(SpooledTemporaryFile[bytes]):
    """Is closed when nobody reads it any more."""

    def __del__(self) -> None:
        self.close()


class KeptRows(Sequence[Row]):
    """Rows that are read anew each time: go through them, and keep none."""

    def __init__(self, lines: _Lines, starts: NDArray[np.int64]):
        self._lines = lines
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Row]:
        return map(self._at, self._starts)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> KeptRows: ...
    def __getitem__(self, place: int | slice) -> Row | KeptRows:
        if isinstance(place, slice):
            return KeptRows(self._lines, self._starts[place])
        return self._at(self._starts[place])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(Row.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment] # as a list's

    def __repr__(self) -> str:
        return f"<{len(self):,} rows>"

    def _at(self, start: np.int64) -> Row:
        self._lines.seek(int(start))
        return Row(*json.loads(self._lines.readline()))


class RowWriter:
    """Takes the rows of runs as they come, in any order of the runs."""

    def __init__(self) -> None:
        self._lines = _Lines(_IN_MEMORY)
        self._runs, self._run_of_row, self._starts = array("q"), array("q"), array("q")
        self._known = array("q")
        self._end = 0

    @property
    def runs(self) -> int:
        """The number of runs so far."""
        return len(self._runs)

    def add(self, number: int, rows: Iterable[Row], *, is_known: bool = False) -> None:
        """Add the rows of the run that has this number; it `is_known` if it was not judged again."""
        self._runs.append(number)
        if is_known:
            self._known.append(number)
        for row in rows:
            line = json.dumps(row.values()).encode() + b"\n"
            self._lines.write(line)
            self._run_of_row.append(number)
            self._starts.append(self._end)
            self._end += len(line)

    def in_order(self, limit: int | None = None) -> KeptRows:
        """Return the rows in the order of the runs, of the first so many runs. No more can be added."""
        number, starts = (np.array(each, np.int64) for each in (self._run_of_row, self._starts))
        order = np.argsort(number, kind="stable")
        return KeptRows(self._lines, starts[order[number[order] < self._end_of(limit)]])

    def known(self, limit: int | None = None) -> int:
        """Return how many of the first so many runs were known."""
        return int((np.array(self._known, np.int64) < self._end_of(limit)).sum())

    def _end_of(self, limit: int | None) -> float:
        """Return the number of the first run after so many."""
        return math.inf if limit is None or limit >= self.runs else float(np.sort(self._runs)[limit])
