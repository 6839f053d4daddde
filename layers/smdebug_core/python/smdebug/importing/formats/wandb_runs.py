"""Runs of W&B: the `.wandb` file in the folder of a run, which is a log of protobuf records."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.files.wire import DELIMITED, VARINT, Malformed, fields, signed
from smdebug.importing.files_below import folders_below
from smdebug.importing.formats.json_files import parse_json
from smdebug.importing.formats.leveldb_log import NotALog, records_in
from smdebug.importing.records import Details, Found, Point, plain_number, whole_step
from smdebug.importing.text_values import flattened, seconds

_ENDING = ".wandb"
_HISTORY, _CONFIG, _RUN = 2, 5, 17  # fields of a record
_UPDATE, _KEY, _NESTED_KEY, _VALUE = 1, 1, 2, 16  # of a config; of an item of a config or a history
_STEP_OF_HISTORY = 2
_NAME, _NOTES, _TAG, _HOST, _CONFIG_OF_RUN, _STARTED = 8, 9, 10, 13, 4, 17  # of a run
_STEPS = ("train/global_step", "trainer/global_step", "global_step")
"""Steps of the training, which its own step, that of calls of `log`, may run ahead of."""
_INTERNAL = ("_step", "_runtime", "_timestamp", "_wandb")


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the runs at that path: a `.wandb` file, the folder of a run, or `wandb/`."""
    if path.is_file():
        if path.suffix == _ENDING:
            yield Found("wandb", path, path.stem, partial(_read, path))
        return
    for folder, files in folders_below(path):
        if folder.name == "latest-run" and folder != path:
            continue
        for name in files:
            if name.endswith(_ENDING):
                yield Found("wandb", folder / name, folder.resolve().name, partial(_read, folder / name))


def _read(path: Path, details: Details) -> Iterator[Point]:
    rows = 0
    try:
        for record in records_in(path, details):
            try:
                yield from _points(record, details, rows)
                rows += 1
            except Malformed as error:
                details.leave_out(f"records that are not of W&B ({error})")
    except NotALog as error:
        raise DamagedFile(str(path), f"it is not a file of W&B: {error}") from error


def _points(record: bytes, details: Details, row: int) -> Iterator[Point]:
    for number, kind, start, stop in fields(record, 0, len(record)):
        if kind != DELIMITED:
            continue
        if number == _HISTORY:
            yield from _history(record, start, stop, details, row)
        elif number == _CONFIG:
            _add_config(record, start, stop, details)
        elif number == _RUN:
            _add_run(record, start, stop, details)


def _history(record: bytes, start: int, stop: int, details: Details, row: int) -> Iterator[Point]:
    values: dict[str, Any] = {}
    own_step: int | None = None
    for number, kind, begin, end in fields(record, start, stop):
        if number == _UPDATE and kind == DELIMITED:
            name, value = _item(record, begin, end, details)
            values.update(flattened({name: value}))
        elif number == _STEP_OF_HISTORY and kind == DELIMITED:
            own_step = _first_number(record, begin, end)
    step = next((found for name in _STEPS if (found := whole_step(values.get(name))) is not None), None)
    if step is None:
        step = whole_step(values.get("_step", own_step if own_step is not None else row))
    if step is None:
        details.leave_out("rows without a step")
        return
    time = seconds(values.get("_timestamp"))
    for name, value in values.items():
        if name.split("/")[0] in _INTERNAL or name in _STEPS:
            continue
        number_here = plain_number(_special(value))
        if number_here is None:
            details.leave_out(f"values of {name.split('/')[0]} that are not numbers")
        else:
            yield Point(name, step, number_here, time)


def _special(value: Any) -> Any:
    """Return the value; text only if it is how W&B writes numbers that JSON does not have."""
    return value if not isinstance(value, str) or value in ("NaN", "Infinity", "-Infinity") else None


def _first_number(record: bytes, start: int, stop: int) -> int:
    for number, kind, value, _ in fields(record, start, stop):
        if number == 1 and kind == VARINT:
            return signed(value)
    return 0


def _item(record: bytes, start: int, stop: int, details: Details) -> tuple[str, Any]:
    """Return the name and the value of an item."""
    names: list[str] = []
    nested: list[str] = []
    text = b"null"
    for number, kind, begin, end in fields(record, start, stop):
        if kind != DELIMITED:
            continue
        if number == _KEY:
            names = [record[begin:end].decode(errors="replace")]
        elif number == _NESTED_KEY:
            nested.append(record[begin:end].decode(errors="replace"))
        elif number == _VALUE:
            text = record[begin:end]
    try:
        value = parse_json(text)
    except ValueError:
        details.leave_out("values that are not JSON")
        value = None
    return "/".join(nested or names), value


def _add_config(record: bytes, start: int, stop: int, details: Details) -> None:
    for number, kind, begin, end in fields(record, start, stop):
        if number == _UPDATE and kind == DELIMITED:
            name, value = _item(record, begin, end, details)
            if name.split("/")[0] != "_wandb":
                details.config[name.replace("/", ".")] = value


def _add_run(record: bytes, start: int, stop: int, details: Details) -> None:
    for number, kind, begin, end in fields(record, start, stop):
        if kind != DELIMITED:
            continue
        text = record[begin:end].decode(errors="replace")
        if number == _CONFIG_OF_RUN:
            _add_config(record, begin, end, details)
        elif number == _TAG:
            details.tags.append(text)
        elif number == _HOST:
            details.host = text
        elif number in (_NAME, _NOTES):
            details.note = text if number == _NOTES else details.note or text
        elif number == _STARTED:
            details.started = seconds(_first_number(record, begin, end))
