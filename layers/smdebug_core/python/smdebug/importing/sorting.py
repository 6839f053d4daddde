"""The values of a log in the order of their steps, in bounded memory: a database in a temporary file."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NamedTuple

from smdebug.importing.records import Details, Point

_AT_ONCE = 10_000
_TABLE = """
    CREATE TABLE points (series INTEGER, step INTEGER, number INTEGER, value REAL, kind INTEGER, time REAL)
"""
_IN_ORDER = "SELECT step, series, value, kind, time FROM points ORDER BY step, series, number"
_NOT_FINITE = {1: math.nan, 2: math.inf, 3: -math.inf}  # SQLite stores a NaN as NULL


class Value(NamedTuple):
    """The value of a series at a step: the last one that was logged."""

    series: str
    step: int
    value: float
    time: float | None


class SortedPoints:
    """Takes values in any order, and gives them by step. Of several at a step, the last one counts."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="smdebug-import-", ignore_cleanup_errors=True)
        self._database = sqlite3.connect(str(Path(self._folder.name) / "points.db"), isolation_level=None)
        for setting in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "temp_store = FILE",
            "cache_size = -16000",
        ):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute(_TABLE)
        self._numbers: dict[str, int] = {}
        self._newest: dict[int, int] = {}

    def __enter__(self) -> SortedPoints:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()
        self._folder.cleanup()

    def add(self, points: Iterable[Point], details: Details) -> None:
        """Take all values; note steps that go back."""
        rows = (self._row(number, point, details) for number, point in enumerate(points))
        while batch := list(islice(rows, _AT_ONCE)):
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, ?)", batch)
            self._database.execute("COMMIT")

    def counts(self) -> Mapping[str, int]:
        """Return how many values each series has, in the order of their first values."""
        found = dict(
            self._database.execute("SELECT series, COUNT(DISTINCT step) FROM points GROUP BY series")
        )
        return {name: found[number] for name, number in self._numbers.items() if number in found}

    def steps(self) -> int:
        """Return how many steps have values."""
        (count,) = self._database.execute("SELECT COUNT(DISTINCT step) FROM points").fetchone()
        return int(count)

    def span(self, series: str) -> tuple[int, int]:
        """Return the first and the last step of a series."""
        query = "SELECT MIN(step), MAX(step) FROM points WHERE series = ?"
        first, last = self._database.execute(query, (self._numbers[series],)).fetchone()
        return int(first), int(last)

    def in_order(self) -> Iterator[Value]:
        """Yield the values by step; those of one step in the order in which their series were first seen."""
        names = list(self._numbers)
        last: Value | None = None
        for step, number, value, kind, time in self._database.execute(_IN_ORDER):
            found = Value(names[number], step, _NOT_FINITE[kind] if kind else value, time)
            if last is not None and last[:2] != found[:2]:
                yield last
            last = found
        if last is not None:
            yield last

    def _row(
        self, number: int, point: Point, details: Details
    ) -> tuple[int, int, int, float | None, int, float | None]:
        series = self._numbers.setdefault(point.series, len(self._numbers))
        newest = self._newest.get(series, -1)
        if point.step < newest:
            details.leave_out(GOES_BACK)
        elif point.step == newest:
            details.leave_out(REPEATED)
        self._newest[series] = max(newest, point.step)
        kind = _kind_of(point.value)
        return series, point.step, number, None if kind else point.value, kind, point.time


GOES_BACK = "values whose step went back (of several at a step, the last one counts)"
REPEATED = "values that another one at the same step replaced"


def _kind_of(value: float) -> int:
    if math.isfinite(value):
        return 0
    return 1 if math.isnan(value) else 2 if value > 0 else 3
