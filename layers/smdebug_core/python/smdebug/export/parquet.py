"""A table with one row per tensor, step and worker: statistics, and optionally values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugCustomerError
from smdebug.export.selection import Saved, Selection, nothing_exported, opened
from smdebug.numbers.conditions import is_numeric
from smdebug.runs.statistics import statistics_of
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial

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

    The columns are tensor, step, mode, mode_step, worker, dtype, shape and the statistics; `with_values`
    adds the values as a flat list of float64. A few thousand rows at a time are in memory.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise SMDebugCustomerError(
            'Exporting parquet needs the extra: pip install "smdebug-serverless[export]"'
        ) from error
    columns = [
        ("tensor", arrow.string()),
        ("step", arrow.int64()),
        ("mode", arrow.string()),
        ("mode_step", arrow.int64()),
        ("worker", arrow.string()),
        ("dtype", arrow.string()),
        ("shape", arrow.list_(arrow.int64())),
        *(
            (name, arrow.float64())
            for name in ("minimum", "maximum", "mean", "std", "abs_mean", "l2")
        ),
        *((name, arrow.int64()) for name in ("nan", "infinite", "zeros", "size")),
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
    names = set(selection.names(trial))
    for step in progress(selection.steps_of(trial)):
        for saved in selection.values_at(trial, step, names):
            row: dict[str, Any] = {
                "tensor": saved.name,
                "step": saved.step,
                "mode": saved.mode.name,
                "mode_step": saved.mode_step,
                "worker": saved.worker,
                **statistics_of(saved.value).to_dict(),
            }
            if with_values:
                row["values"] = _flat(saved)
            yield row


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
