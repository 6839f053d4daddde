"""Tables that `neptune-exporter` writes: one row for each value of an attribute of a run, as parquet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile, SMDebugCustomerError
from smdebug.extras import install_command
from smdebug.importing.files_below import folders_below
from smdebug.importing.records import Details, Found, Point, whole_step

_NEEDED = ("run_id", "attribute_path", "attribute_type", "step", "float_value")
_WANTED = (*_NEEDED, "timestamp", "int_value", "string_value", "bool_value")
_SETTINGS = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value"}
_SYSTEM = ("sys/", "monitoring/")
_AT_ONCE = 20_000


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the runs in the parquet files at that path, which may hold several, and parts of one run."""
    if path.is_file():
        files = [path] if path.suffix.lower() == ".parquet" else []
    else:
        files = [
            folder / name
            for folder, names in folders_below(path)
            for name in names
            if name.lower().endswith(".parquet")
        ]
    places: dict[str, list[Path]] = {}
    for file in files:
        for run in _runs_of(file):
            places.setdefault(run, []).append(file)
    for run, parts in places.items():
        yield Found("neptune", parts[0], run, partial(_read, parts, run))


def _opened(path: Path) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise SMDebugCustomerError(f"Reading parquet needs the extra: {install_command('export')}") from error
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these
        raise DamagedFile(str(path), f"it is not a parquet file: {error}") from error


def _runs_of(path: Path) -> list[str]:
    with _opened(path) as table:
        names = table.schema_arrow.names
        if not set(_NEEDED) <= set(names):
            missing = ", ".join(name for name in _NEEDED if name not in names)
            raise DamagedFile(
                str(path), f"it is no table of neptune-exporter: it lacks the columns {missing}"
            )
        runs: dict[str, None] = {}
        for batch in table.iter_batches(_AT_ONCE, columns=["run_id"]):
            runs |= dict.fromkeys(str(run) for run in batch.column(0).unique().to_pylist() if run is not None)
    return list(runs)


def _read(parts: list[Path], run: str, details: Details) -> Iterator[Point]:
    for part in parts:
        with _opened(part) as table:
            columns = [name for name in _WANTED if name in table.schema_arrow.names]
            for batch in table.iter_batches(_AT_ONCE, columns=columns):
                for row in batch.to_pylist():
                    if str(row["run_id"]) == run:
                        yield from _points(row, details)


def _points(row: dict[str, Any], details: Details) -> Iterator[Point]:
    name, kind = str(row["attribute_path"] or ""), str(row["attribute_type"])
    if kind in _SETTINGS:
        value = row.get(_SETTINGS[kind])
        if name == "sys/name" and value:
            details.note = str(value)
        elif name and not name.startswith(_SYSTEM):
            details.config[name] = value
    elif kind != "float_series" or name.startswith(_SYSTEM):
        details.leave_out(
            f"{name.split('/')[0]}/…" if kind == "float_series" else f"attributes of type {kind}"
        )
    elif (step := whole_step(row["step"])) is None:
        details.leave_out("values whose step is not a whole number")
    elif row["float_value"] is None:
        details.leave_out("values of a series that are empty")
    else:
        time = row.get("timestamp")
        yield Point(name, step, row["float_value"], None if time is None else time.timestamp())
