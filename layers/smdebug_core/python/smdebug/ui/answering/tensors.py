"""One tensor of a run: its history, its sample, its values per worker, and a part of its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMNS
from smdebug.plain_text import escaped
from smdebug.runs.overview import thinned
from smdebug.trials import Trial
from smdebug.ui.answer_types import AtStepAnswer, HistoryAnswer, SampleAnswer, ValuesAnswer
from smdebug.ui.drawing.json_numbers import numbers
from smdebug.ui.drawing.saved_values import row_of_reductions, row_of_value
from smdebug.ui.read_run import ReadRun

SLICE = 64
"""Rows and columns of the part of a tensor that is shown."""
BINS = 40
WHOLE = "the whole"
"""Stands among the workers of a sharded tensor."""
MEMBER_STEPS = 48
"""Steps of a tensor that shares its row with others."""


def history_of(reader: ReadRun, kind: str, name: str) -> HistoryAnswer:
    """Return every statistic of a tensor over the steps."""
    first, last, low, high = reader.kinds[kind].history(name)
    return {
        "name": escaped(name),
        "kind": kind,
        "first": first.tolist(),
        "last": last.tolist(),
        "exact": bool(np.array_equal(first, last) and np.array_equal(low, high, equal_nan=True)),
        "low": {column: numbers(low[:, at]) for at, column in enumerate(COLUMNS)},
        "high": {column: numbers(high[:, at]) for at, column in enumerate(COLUMNS)},
    }


def history_of_member(reader: ReadRun, kind: str, name: str) -> HistoryAnswer:
    """Return the statistics of a tensor that shares its row with others, at some of the steps.

    They are read for this answer: keeping them of every tensor would take too much memory.
    """
    trial = reader.trial
    assert trial is not None  # its rows were read from it
    steps, rows = [], []
    for step in thinned(reader.steps[: reader.steps_read], MEMBER_STEPS):
        matrix = trial.observations.at(step).statistics(kind)
        if matrix is not None and name in matrix:
            steps.append(step)
            rows.append(matrix.values[matrix.names.index(name)])
    values = np.array(rows, np.float32).reshape(-1, len(COLUMNS))
    columns = {column: numbers(values[:, at]) for at, column in enumerate(COLUMNS)}
    return {
        "name": escaped(name),
        "kind": kind,
        "first": steps,
        "last": steps,
        "exact": True,
        "low": columns,
        "high": columns,
    }


def last_step_of(reader: ReadRun, kind: str, name: str) -> int:
    """Return the last step at which a tensor was measured; of one that shares its row, that of the run."""
    statistics = reader.kinds[kind]
    last = reader.steps[-1] if reader.steps else 0
    if name not in statistics.names:
        return last
    place = statistics.last_measured(statistics.names.index(name))
    return last if place is None else int(statistics.stretches[1][place])


def at_step(trial: Trial, kind: str, name: str, step: int) -> AtStepAnswer:
    """Return what a step has of a tensor: the statistics of each worker, a sample, a part of its values."""
    workers: dict[str, dict[str, float | None]] = {}
    written = trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
    for worker in list(written)[:256]:
        row = _row(trial, kind, name, step, worker)
        if row is not None:
            workers[escaped(worker)] = dict(zip(COLUMNS, numbers(row), strict=True))
    whole = _whole(trial, name, step)
    if whole is not None:
        workers[WHOLE] = dict(zip(COLUMNS, numbers(whole), strict=True))
    return {
        "step": step,
        "name": escaped(name),
        "workers": workers,
        "sample": _sample(trial, kind, name, step),
        "values": _values(trial, name, step),
    }


def _whole(trial: Trial, name: str, step: int) -> Any:
    """Return the statistics of a sharded tensor as a whole; None if its parts were not all measured."""
    if not trial.observations.has_facts:
        return None
    try:
        matrix = trial.observations.measured.matrix(name, step, wholes=True)
    except SMDebugError:
        return None
    return None if matrix is None else matrix.combined.get(name)


def _row(trial: Trial, kind: str, name: str, step: int, worker: str) -> Any:
    try:
        matrix = trial.observations.at(step, worker).statistics(kind)
        if matrix is not None and name in matrix:
            return matrix.values[matrix.names.index(name)]
        if trial.observations.exist:
            return None
        tensor = trial.tensor(name)
        row, _ = row_of_value(tensor, step, worker)
        return row_of_reductions(tensor, step, worker) if row is None else row
    except SMDebugError:
        return None


def _sample(trial: Trial, kind: str, name: str, step: int) -> SampleAnswer | None:
    """Return a histogram of the sampled values, or of all that were saved."""
    try:
        values = trial.observations.at(step).samples(kind).get(name)
        if values is None:
            values = trial.tensor(name).value(step).reshape(-1)
    except SMDebugError:
        return None
    if not is_numeric(values) or values.dtype.kind == "c":
        return None
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        return None
    counts, edges = np.histogram(finite, BINS)
    return {"count": int(finite.size), "counts": counts.tolist(), "edges": numbers(edges)}


def _values(trial: Trial, name: str, step: int) -> ValuesAnswer | None:
    """Return the first rows and columns of a tensor that was saved whole."""
    if not trial.has_tensor(name):
        return None
    try:
        value = trial.tensor(name).value(step)
    except SMDebugError:
        return None
    if not is_numeric(value) or value.dtype.kind == "c":
        return None
    flat = value.reshape(value.shape[0], -1) if value.ndim > 1 else value.reshape(1, -1)
    part = flat[:SLICE, :SLICE]
    return {
        "shape": list(value.shape),
        "dtype": value.dtype.name,
        "rows": [numbers(row.astype(np.float64)) for row in part],
    }
