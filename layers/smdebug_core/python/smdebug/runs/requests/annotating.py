"""Changing what people have written about a run: its `annotations.json`."""

from __future__ import annotations

import hashlib
import threading
from typing import Any, NamedTuple

from smdebug.exceptions import AccessDenied, DamagedFile, SMDebugRuntimeError
from smdebug.files.names import ANNOTATIONS
from smdebug.files.notes.annotations import GROUP, MAX_BYTES, Annotations
from smdebug.files.notes.origin import Origin
from smdebug.storage import Storage
from smdebug.trials.note_content import note_content, place_of_note
from smdebug.trials.origin_reading import read_origin_alone

_ONE_AT_A_TIME = threading.Lock()


class Annotated(NamedTuple):
    """The tags, the note, the pin and the group of a run, and the version that a change names."""

    tags: tuple[str, ...]
    note: str
    pinned: bool
    version: str
    group: str | None = None


def annotations_of(storage: Storage) -> Annotated:
    """Return what is written about the run; raise `DamagedFile` if that cannot be read."""
    return _read(storage)[1]


def annotate(storage: Storage, changes: dict[str, Any], version: str) -> Annotated:
    """Write the changes, unless somebody else was first: `version` is of what the person has seen.

    Raise `SMDebugRuntimeError` if it has changed since, or cannot be written.
    """
    with _ONE_AT_A_TIME:
        written, known = _read(storage)
        if version != known.version:
            raise SMDebugRuntimeError(
                "Tags and note were changed meanwhile, and yours were not saved: open them again"
            )
        new = written.with_changes(changes)
        try:
            storage.write(ANNOTATIONS, new.encode())
        except AccessDenied as error:
            raise SMDebugRuntimeError(
                f"The run is read-only here, so tags and note were not saved: {error}"
            ) from error
        return _read(storage)[1]


def _group_of(origin: Origin) -> str | None:
    group = origin.config.get(GROUP)
    return None if group is None else str(group)


def _read(storage: Storage) -> tuple[Annotations, Annotated]:
    data = note_content(storage, ANNOTATIONS, MAX_BYTES)
    written = Annotations()
    if data is not None:
        written = Annotations.parse(data, place_of_note(storage, ANNOTATIONS))
    try:
        origin = written.over(read_origin_alone(storage))
    except DamagedFile:  # what is written now can be read all the same
        origin = written.over(None)
    version = "" if data is None else hashlib.sha256(data).hexdigest()[:16]
    return written, Annotated(origin.tags, origin.note, origin.pinned, version, _group_of(origin))
