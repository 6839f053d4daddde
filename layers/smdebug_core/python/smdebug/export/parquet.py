"""A table with one row per tensor, step and worker: statistics, and optionally values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugCustomerError
from smdebug.export.observed import Observed
from smdebug.export.selection import Saved, Selection, nothing_exported, opened
from smdebug.extras import install_command
from smdebug.numbers.conditions import is_numeric
from smdebug.runs.statistics import COUNTS, STATISTICS, statistics_of, statistics_of_number
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial
from smdebug.trials.observations.series import Series

_GROUP_ROWS = 10_000
_GROUP_VALUES = 4_000_000


def export_parquet(
    run: str | os.PathLike[str] | Trial,
    to: str | os.PathLike[str],
    selection: Selection | None = None,
    *,
    with_values: bool = False,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> int:
    """Write a table for pandas, polars or a query engine; return the number of rows.

    The columns are tensor, source, kind, step, mode, mode_step, worker, dtype, shape and the statistics. The
    source of a row is `saved`, `measured`, or `series`: a scalar at a step at which it was not saved, its
    value in `mean`. `with_values` adds saved values as a flat list of float64. A few thousand rows at a time
    are in memory.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise SMDebugCustomerError(
            f"Exporting parquet needs the extra: {install_command('export')}"
        ) from error
    columns = [
        ("tensor", arrow.string()),
        ("source", arrow.string()),
        ("kind", arrow.string()),
        ("step", arrow.int64()),
        ("mode", arrow.string()),
        ("mode_step", arrow.int64()),
        ("worker", arrow.string()),
        ("dtype", arrow.string()),
        ("shape", arrow.list_(arrow.int64())),
        *((name, arrow.int64() if name in COUNTS else arrow.float64()) for name in STATISTICS),
        *((name, arrow.int64()) for name in ("nan", "infinite")),
        *([("values", arrow.list_(arrow.float64()))] if with_values else []),
    ]
    schema = arrow.schema(columns)
    trial = opened(run)
    count = 0
    with whole_file(to) as place, parquet.ParquetWriter(place, schema) as writer:
        for group in _groups(_rows(trial, selection, with_values, progress)):
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
            count += len(group)
        if not count:
            raise nothing_exported(trial)
    return count


def _rows(
    run: str | os.PathLike[str] | Trial,
    selection: Selection | None,
    with_values: bool,
    progress: Callable[[Iterable[int]], Iterable[int]],
) -> Iterator[dict[str, Any]]:
    selection = selection or Selection()
    trial = opened(run)
    names = set(selection.names(trial, or_observed=True))
    observed = Observed.of(trial, selection)
    for step in progress(selection.steps_of(trial)):
        saved_here = set()
        for saved in selection.values_at(trial, step, names):
            saved_here.add((saved.name, saved.worker))
            row: dict[str, Any] = {
                "tensor": saved.name,
                "source": "saved",
                "step": saved.step,
                "mode": saved.mode.name,
                "mode_step": saved.mode_step,
                "worker": saved.worker,
                **statistics_of(saved.value).to_dict(),
            }
            if with_values:
                row["values"] = _flat(saved)
            yield row
        yield from _measured_rows(observed, step)
        for series, worker, _ in observed.scalars_at(step):
            for row in _scalar_rows(series, worker):
                if row["step"] != step or (series.name, worker) not in saved_here:
                    yield row


def _measured_rows(observed: Observed, step: int) -> Iterator[dict[str, Any]]:
    for row in observed.measured_at(step):
        yield {
            "tensor": row.name,
            "source": "measured",
            "kind": row.kind,
            "step": row.step,
            "mode": row.mode.name,
            "mode_step": row.mode_step,
            "worker": row.worker,
            **row.summary.to_dict(),
        }


def _scalar_rows(series: Series, worker: str) -> Iterator[dict[str, Any]]:
    parts = series.steps.tolist(), series.modes, series.mode_steps.tolist(), series.values.tolist()
    for step, mode, mode_step, value in zip(*parts, strict=True):
        yield {
            "tensor": series.name,
            "source": "series",
            "step": step,
            "mode": mode.name,
            "mode_step": mode_step,
            "worker": worker,
            **statistics_of_number(value).to_dict(),
        }


def _flat(saved: Saved) -> Any:
    value = saved.value
    if not is_numeric(value) or value.dtype.kind == "c":
        return None
    return value.astype(np.float64).reshape(-1)


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        group.append(row)
        values = row.get("values")
        size += 0 if values is None else len(values)
        if len(group) >= _GROUP_ROWS or size >= _GROUP_VALUES:
            yield group
            group, size = [], 0
    if group:
        yield group
