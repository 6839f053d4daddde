"""Tables of numbers: `metrics.csv` of Lightning, the file of Keras' CSVLogger, and others with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

from smdebug.importing.files_below import folders_below, name_below
from smdebug.importing.formats.flat_yaml import read_flat_yaml
from smdebug.importing.records import Details, Found, Point
from smdebug.importing.text_values import RowReader, step_column

_ENDINGS = (".csv", ".tsv")
_KNOWN = ("metrics.csv", "training.log", "log.csv", "history.csv", "progress.csv", "results.csv")
_LONGEST_HEADER = 1 << 20


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the tables at that path; in a folder, those whose header names a step or an epoch."""
    if path.is_file():
        if path.suffix.lower() in (*_ENDINGS, ".log"):
            yield Found("csv", path, path.stem, partial(_read, path))
        return
    for folder, files in folders_below(path):
        tables = [name for name in files if _is_log(folder / name)]
        for name in tables:
            place = folder / name
            is_alone = len(tables) == 1 and (name in _KNOWN or folder != path)
            inside = name_below(folder, path)
            run_name = inside if is_alone else f"{inside}-{place.stem}" if folder != path else place.stem
            yield Found("csv", place, run_name, partial(_read, place))


def _is_log(path: Path) -> bool:
    if path.suffix.lower() not in _ENDINGS and path.name not in _KNOWN:
        return False
    try:
        with _opened(path) as file:
            return step_column(dict.fromkeys(_header(file)[0])) is not None
    except (OSError, csv.Error):
        return False


def _read(path: Path, details: Details) -> Iterator[Point]:
    if (path.parent / "hparams.yaml").is_file():
        details.config.update(read_flat_yaml(path.parent / "hparams.yaml", details))
    with _opened(path) as file:
        columns, separator = _header(file)
        names = _distinct(columns, details)
        if not names:
            details.leave_out("a table without a header")
            return
        reader = RowReader(details, dict.fromkeys(names))
        rows = csv.reader(file, delimiter=separator)
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                details.leave_out(f"rows that are not csv ({error})")
                continue
            if cells is None:
                return
            if cells == columns:  # appended by a training that was started again
                continue
            if len(cells) > len(columns):
                details.leave_out("rows of more cells than the header")
            elif any(cells):
                yield from reader.points(
                    {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
                )


def _opened(path: Path) -> IO[str]:
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _header(file: IO[str]) -> tuple[list[str], str]:
    """Return the names of the columns, and what separates them."""
    line = file.readline(_LONGEST_HEADER)
    separator = max(",;\t", key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=separator), [])], separator


def _distinct(columns: list[str], details: Details) -> list[str]:
    if len(set(columns)) < len(columns):
        details.leave_out(
            "columns whose name comes twice (the last one counts)", len(columns) - len(set(columns))
        )
    return list(dict.fromkeys(columns)) if any(columns) else []
