"""Runs of MLflow: the folder `mlruns/`, or the tables of its SQLite database."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.importing.files_below import folders_below
from smdebug.importing.formats.flat_yaml import read_flat_yaml
from smdebug.importing.records import Details, Found, Point, plain_number, whole_step
from smdebug.importing.text_values import seconds

_META = "meta.yaml"
_LONGEST_PARAMETER = 10_000
_SQLITE = b"SQLite format 3\x00"
_LARGEST = 1.7976931348623157e308  # what its database has in the place of infinity
_NOTE = "mlflow.note.content"
_SYSTEM = "system/"


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the runs of a file store, of an experiment or of a database; or the one run in the folder."""
    if path.is_file():
        if _is_sqlite(path):
            yield from _runs_of_database(path)
        return
    for folder, files in folders_below(path):
        if _META in files and (folder / "metrics").is_dir():
            name = _name_in(folder)
            yield Found("mlflow", folder, name, partial(_read_folder, folder))
    database = path / "mlflow.db"
    if database.is_file() and _is_sqlite(database):
        yield from _runs_of_database(database)


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _name_in(folder: Path) -> str:
    meta = read_flat_yaml(folder / _META, Details())
    return str(meta.get("run_name") or folder.name)


# The file store


def _read_folder(folder: Path, details: Details) -> Iterator[Point]:
    meta = read_flat_yaml(folder / _META, Details())
    details.started = seconds(meta.get("start_time"))
    for name, text in _texts_below(folder / "params", details):
        details.config[name] = _as_number(text)
    tags = dict(_texts_below(folder / "tags", details))
    details.tags += [f"{name}={text}" for name, text in tags.items() if not name.startswith("mlflow.")]
    details.note = tags.get(_NOTE, "")
    if (folder / "metrics").is_dir():
        for place, files in folders_below(folder / "metrics"):
            for file in files:
                path = place / file
                yield from _metric(path, path.relative_to(folder / "metrics").as_posix(), details)


def _texts_below(folder: Path, details: Details) -> Iterator[tuple[str, str]]:
    if not folder.is_dir():
        return
    for place, files in folders_below(folder):
        for file in files:
            path = place / file
            try:
                with path.open(encoding="utf-8", errors="replace") as opened:
                    yield path.relative_to(folder).as_posix(), opened.read(_LONGEST_PARAMETER)
            except OSError as error:
                details.leave_out(f"{file}: {error.strerror}")


def _metric(path: Path, name: str, details: Details) -> Iterator[Point]:
    """Yield the lines of a metric: wall time in milliseconds, value and step."""
    if name.startswith(_SYSTEM):
        details.leave_out("system metrics")
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split()
            if not fields:
                continue
            value = plain_number(fields[1]) if len(fields) > 1 else None
            step = whole_step(fields[2]) if len(fields) > 2 else 0
            if value is None or step is None:
                details.leave_out(f"lines of {name} without a time, a value and a step")
            else:
                yield Point(name, step, value, seconds(fields[0]))


def _as_number(text: Any) -> Any:
    """Return a parameter, which MLflow keeps as text, as the number it was."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return text
    if not math.isfinite(number) or "_" in text:
        return text
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 16 else number


# The database


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    database.text_factory = lambda data: data.decode(errors="replace")
    return database


def _runs_of_database(path: Path) -> Iterator[Found]:
    try:
        with closing(_connected(path)) as database:
            rows = database.execute(
                "SELECT run_uuid, name FROM runs ORDER BY start_time, run_uuid"
            ).fetchall()
    except sqlite3.Error as error:
        raise DamagedFile(str(path), f"the runs of this database cannot be read: {error}") from error
    for run, name in rows:
        yield Found("mlflow", path, str(name or run), partial(_read_database, path, str(run)))


def _read_database(path: Path, run: str, details: Details) -> Iterator[Point]:
    try:
        with closing(_connected(path)) as database:
            (started,) = database.execute("SELECT start_time FROM runs WHERE run_uuid = ?", (run,)).fetchone()
            details.started = seconds(started)
            rows = database.execute("SELECT key, value FROM params WHERE run_uuid = ? ORDER BY key", (run,))
            details.config.update({str(name): _as_number(value) for name, value in rows})
            tags = dict(database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run,)).fetchall())
            details.note = str(tags.get(_NOTE) or "")
            details.tags += [
                f"{name}={text}" for name, text in tags.items() if not name.startswith("mlflow.")
            ]
            metrics = database.execute(
                "SELECT key, step, value, timestamp, is_nan FROM metrics WHERE run_uuid = ? "
                "ORDER BY timestamp",
                (run,),
            )
            for name, step, value, time, is_nan in metrics:
                if str(name).startswith(_SYSTEM):
                    details.leave_out("system metrics")
                    continue
                number, at = _number(value, is_nan), whole_step(step)
                if number is None or at is None:
                    details.leave_out(f"values of {name} without a number or a step")
                else:
                    yield Point(str(name), at, number, seconds(time))
    except sqlite3.Error as error:
        details.leave_out(f"the rest of the database, which cannot be read ({error})")


def _number(value: object, is_nan: object) -> float | None:
    if is_nan:
        return math.nan
    number = plain_number(value)
    if number is not None and abs(number) >= _LARGEST:
        return math.copysign(math.inf, number)
    return number
