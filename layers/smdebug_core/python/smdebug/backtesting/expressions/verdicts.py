"""The verdicts of an expression on many runs: rows of the same table as those of other rules."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import number
from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import STEP, Call, columns_of
from smdebug.backtesting.expressions.matrices import Checked, check
from smdebug.backtesting.rows import FOUND, NOT_CHECKED, PASSED, Row

Array = NDArray[Any]

_MOST_NUMBERS = 1 << 19
"""In one matrix: what is computed at a time, so that most of it stays in the processor's caches."""

ColumnsOfRun = Mapping[str, Values]


def verdicts(condition: Call, runs: Sequence[tuple[str, ColumnsOfRun]]) -> list[Row]:
    """Return the row of each run, in order; a run is checked at the steps that all of its columns have."""
    begun = time.perf_counter()
    keys = read_keys(condition)
    rows: list[Row | None] = [None] * len(runs)
    of_length: dict[int, list[int]] = {}
    aligned: dict[int, list[Array]] = {}
    for place, (path, columns) in enumerate(runs):
        lacking = [key for key in keys if not len(columns[key].steps)]
        if lacking:
            rows[place] = Row(path, condition.text, NOT_CHECKED, note=f"the run has no {name_of(lacking[0])}")
            continue
        aligned[place] = _aligned([columns[key] for key in keys])
        of_length.setdefault(len(aligned[place][0]), []).append(place)
    for length, places in of_length.items():
        for chunk in _chunks(places, max(1, _MOST_NUMBERS // max(1, length))):
            parts = [aligned.pop(place) for place in chunk]
            steps = np.stack([part[0] for part in parts])
            values = {key: np.stack([part[1 + at] for part in parts]) for at, key in enumerate(keys)}
            checked = check(condition, values, steps.astype(float)) if length else None
            for at, place in enumerate(chunk):
                rows[place] = _row(runs[place][0], condition, checked, at, steps[at])
    each = (time.perf_counter() - begun) / max(1, len(runs))
    return [_timed(row, each) for row in rows if row is not None]


def read_keys(condition: Call) -> tuple[str, ...]:
    """Return the keys of the columns to read; `step` is known without reading."""
    keys = columns_of(condition)
    return tuple(key for key in keys if key != f"series:{STEP}") or ("series:loss",)


def _timed(row: Row, seconds: float) -> Row:
    return replace(row, seconds=round(seconds, 6))


def name_of(key: str) -> str:
    """Return what a key stands for, in words."""
    kind, _, name = key.partition(":")
    if kind == "series":
        return f"series {name}"
    statistic, _, tensor = name.partition(":")
    return f"{statistic} of {tensor}"


def _aligned(columns: list[Values]) -> list[Array]:
    """Return the common steps, and the values of each column there."""
    first = columns[0].steps
    if all(column.steps is first or np.array_equal(first, column.steps) for column in columns[1:]):
        return [first, *(column.values for column in columns)]
    steps = reduce(np.intersect1d, (column.steps for column in columns))
    return [steps, *(column.values[np.searchsorted(column.steps, steps)] for column in columns)]


def _chunks(places: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _row(path: str, condition: Call, checked: Checked | None, at: int, steps: Array) -> Row:
    if checked is None:
        return Row(path, condition.text, NOT_CHECKED, note="the series have no step in common")
    holds = np.flatnonzero(checked.holds[at])
    first = int(holds[0]) if len(holds) else None
    values = None if checked.values is None else checked.values[at]
    known = np.empty(0) if values is None else values[np.isfinite(values)]
    message = ""
    if first is not None:
        message = condition.text
        if values is not None and checked.limit is not None:
            message = f"{checked.statistic} {number(float(values[first]))} (limit {number(checked.limit)})"
    step = None if first is None else int(steps[first])
    return Row(
        path,
        condition.text,
        PASSED if first is None else FOUND,
        first_finding=message,
        first_step=step,
        onset=step,
        findings=len(holds),
        steps_found=len(holds),
        looked=len(steps),
        statistic=checked.statistic if values is not None else "",
        lowest=float(known.min()) if len(known) else None,
        highest=float(known.max()) if len(known) else None,
        limit=checked.limit,
    )
