"""Values in rows of text: which column is the step, which one the time, and which ones are series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from smdebug.importing.records import Details, Point, plain_number, whole_step

STEPS = (
    "step",
    "_step",
    "global_step",
    "train/global_step",
    "trainer/global_step",
    "steps",
    "iteration",
    "iter",
    "iterations",
    "it",
    "batch",
    "epoch",
)
"""The names of columns that count steps, the first choice first."""
TIMES = ("timestamp", "_timestamp", "wall_time", "time", "ts", "date", "datetime")
_DEEPEST = 8
_SECONDS = range(10**8, 10**10)
"""Of a time since 1970: larger ones are milliseconds, smaller ones a duration."""


class RowReader:
    """Turns rows, mappings of names to values, into points. The step column is chosen from the first rows."""

    def __init__(self, details: Details, columns: Mapping[str, Any] | None = None):
        self._details = details
        self._step = None if columns is None else step_column(columns)
        self._chosen = columns is not None
        self._rows = 0
        self._said = False

    def points(self, row: Mapping[str, Any]) -> Iterator[Point]:
        """Yield the numbers of one row; note what is none."""
        flat = dict(flattened(row))
        if not self._chosen:
            self._step, self._chosen = step_column(flat), True
            if self._step is not None and self._step.lower() == "epoch" and self._is_a_part(flat):
                self._step = None
        step = self._step_of(flat)
        self._rows += 1
        if step is None:
            self._details.leave_out(f"rows without a usable number in the column {self._step}")
            return
        time, time_name = time_of(flat)
        for name, value in flat.items():
            if name in (self._step, time_name) or value is None or value == "":
                continue
            number = plain_number(value)
            if number is None:
                self._details.leave_out(f"values of {name} that are not numbers")
            else:
                yield Point(name, step, number, time)

    def _step_of(self, flat: Mapping[str, Any]) -> int | None:
        if self._step is None:
            self._details.step_is = "row"
            return self._rows
        self._details.step_is = "epoch" if self._step.lower() == "epoch" else "step"
        if flat.get(self._step) in (None, ""):
            return None
        return whole_step(flat[self._step])

    def _is_a_part(self, flat: Mapping[str, Any]) -> bool:
        """Return whether the epoch of the first row is a part of one, which no step can be."""
        epoch = plain_number(flat[str(self._step)])
        return epoch is not None and math.isfinite(epoch) and epoch != int(epoch)


def step_column(columns: Mapping[str, Any]) -> str | None:
    """Return the name that counts the steps; None if no name does."""
    lower = {name.lower(): name for name in columns}
    return next((lower[name] for name in STEPS if name in lower), None)


def flattened(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the values of a mapping, of inner ones as `outer/inner`."""
    for name, value in row.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from flattened(value, f"{full}/", depth + 1)
        else:
            yield full, value


def time_of(row: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return the wall time of a row, in seconds since 1970, and the name it has there."""
    for name in row:
        if name.lower() in TIMES:
            time = seconds(row[name])
            if time is not None:
                return time, name
    return None, None


def seconds(value: Any) -> float | None:
    """Return a wall time as seconds since 1970: of seconds, milliseconds or a date; None if it is none."""
    number = plain_number(value)
    if number is None and isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        number = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if number is None:
        return None
    if number >= _SECONDS.stop:
        number /= 1000
    return number if _SECONDS.start <= number < _SECONDS.stop else None
