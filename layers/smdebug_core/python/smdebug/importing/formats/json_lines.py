"""JSON lines: an object of numbers on each line, as many training loops write their log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from smdebug.importing.files_below import folders_below, name_below
from smdebug.importing.formats.json_files import parse_json
from smdebug.importing.records import Details, Found, Point
from smdebug.importing.text_values import RowReader, step_column

_ENDINGS = (".jsonl", ".ndjson", ".jsonlines")
_LONGEST_LINE = 1 << 20


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the logs at that path; a file may have any ending if its first line names a step."""
    if path.is_file():
        if path.suffix.lower() in _ENDINGS or _begins_with_a_step(path):
            yield Found("jsonl", path, path.stem, partial(_read, path))
        return
    for folder, files in folders_below(path):
        logs = [name for name in files if name.lower().endswith(_ENDINGS)]
        for name in logs:
            place = folder / name
            inside = name_below(folder, path)
            run_name = inside if len(logs) == 1 and folder != path else place.stem
            yield Found("jsonl", place, run_name, partial(_read, place))


def _begins_with_a_step(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    try:
        row = parse_json(line)
    except ValueError:
        return False
    return isinstance(row, dict) and step_column(row) is not None


def _read(path: Path, details: Details) -> Iterator[Point]:
    reader = RowReader(details)
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except ValueError:
                details.leave_out("lines that are not JSON")
                continue
            if isinstance(row, dict):
                yield from reader.points(row)
            else:
                details.leave_out("lines that are not JSON objects")
