"""Event files of TensorBoard: which folders are runs, and the scalars in their records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from smdebug.files.checksum import extend
from smdebug.files.framing import FRAME_SIZE, HEADER_SIZE, check_footer, payload_end
from smdebug.files.wire import Malformed
from smdebug.importing.files_below import folders_below, name_below
from smdebug.importing.formats.tensorboard_events import points_of_event
from smdebug.importing.records import Details, Found, Point

_MARK = "tfevents"
_MODES = re.compile(r"train|training|val|valid|validation|eval|evaluation|test", re.IGNORECASE)
_HPARAMS = re.compile(r"\d{9,}(\.\d+)?")
_MAX_RECORD = 256 << 20


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the runs of a log folder.

    A folder with event files is a run. Its folders `train` and `validation`, as Keras writes them, and those
    of `add_scalars` and `add_hparams` are parts of it.
    """
    if path.is_file():
        if _MARK in path.name:
            yield Found("tensorboard", path, path.parent.resolve().name, partial(_read, [(path, "")]))
        return
    runs: dict[Path, list[tuple[Path, str]]] = {}
    for folder, files in folders_below(path):
        logs = [folder / name for name in files if _MARK in name and (folder / name).is_file()]
        if not logs:
            continue
        run, prefix = _run_of(folder, path, runs)
        runs.setdefault(run, []).extend((log, prefix) for log in logs)
    for run, parts in runs.items():
        yield Found("tensorboard", run, name_below(run, path), partial(_read, parts))


def _run_of(folder: Path, top: Path, runs: dict[Path, list[tuple[Path, str]]]) -> tuple[Path, str]:
    """Return the folder of the run that the event files of a folder belong to, and their prefix in it."""
    if folder == top:
        return folder, ""
    parent = folder.parent
    if _MODES.fullmatch(folder.name):
        return parent, folder.name
    if parent in runs and _HPARAMS.fullmatch(folder.name):
        return parent, ""
    if parent in runs and "_" in folder.name and any(not prefix for _, prefix in runs[parent]):
        return parent, folder.name.rpartition("_")[2]
    return folder, ""


def _read(parts: list[tuple[Path, str]], details: Details) -> Iterator[Point]:
    for path, prefix in parts:
        for record in _records_in(path, details):
            try:
                for point in points_of_event(record, details):
                    yield point._replace(series=f"{prefix}/{point.series}") if prefix else point
            except Malformed as error:
                details.leave_out(f"records that are not of TensorBoard ({error})")


def _records_in(path: Path, details: Details) -> Iterator[bytes]:
    """Yield the records of an event file up to its end, or to the first that is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while True:
            at = file.tell()
            head = file.read(HEADER_SIZE)
            if not head:
                return
            length = int.from_bytes(head[:8], "little")
            if len(head) < HEADER_SIZE or size - at - FRAME_SIZE < length:
                details.leave_out(f"the end of {path.name}, from byte {at}: it is cut off or damaged")
                return
            if length > _MAX_RECORD:
                details.leave_out(f"a record of {length >> 20} MB in {path.name}")
                file.seek(length + FRAME_SIZE - HEADER_SIZE, 1)
                continue
            record = head + file.read(length + FRAME_SIZE - HEADER_SIZE)
            try:
                stop = payload_end(record)
                content = record[HEADER_SIZE:stop]
                check_footer(record, stop, extend(content))
            except Malformed:
                details.leave_out(f"the rest of {path.name}, from byte {at}: a record's checksum is wrong")
                return
            yield content
