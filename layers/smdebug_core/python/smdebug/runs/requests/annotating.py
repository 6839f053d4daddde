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
from smdebug.storage.base import ReplacingStorage
from smdebug.trials.note_content import note_content, place_of_note
from smdebug.trials.origin_reading import read_origin_alone

_ONE_AT_A_TIME = threading.Lock()
_CHANGED_MEANWHILE = "Tags and note were changed meanwhile, and yours were not saved: open them again"


class Annotated(NamedTuple):
    """The tags, the note, the pin and the group of a run, and the version that a change names."""

    tags: tuple[str, ...]
    note: str
    pinned: bool
    version: str
    group: str | None = None


def annotations_of(storage: Storage) -> Annotated:
    """Return what is written about the run; raise `DamagedFile` if that cannot be read."""
    return _parsed(storage, _content(storage))[1]


def annotate(storage: Storage, changes: dict[str, Any], version: str) -> Annotated:
    """Write the changes, unless somebody else was first: `version` is of what the person has seen.

    Raise `SMDebugRuntimeError` if it has changed since, or cannot be written.
    """
    with _ONE_AT_A_TIME:
        data = _content(storage)
        written, known = _parsed(storage, data)
        if version != known.version:
            raise SMDebugRuntimeError(_CHANGED_MEANWHILE)
        new = written.with_changes(changes).encode()
        try:
            if not isinstance(storage, ReplacingStorage):
                storage.write(ANNOTATIONS, new)
            elif not storage.replace(ANNOTATIONS, data, new):  # another process was first
                raise SMDebugRuntimeError(_CHANGED_MEANWHILE)
        except AccessDenied as error:
            raise SMDebugRuntimeError(
                f"The run is read-only here, so tags and note were not saved: {error}"
            ) from error
        return _parsed(storage, new)[1]


def _group_of(origin: Origin) -> str | None:
    group = origin.config.get(GROUP)
    return None if group is None else str(group)


def _content(storage: Storage) -> bytes | None:
    return note_content(storage, ANNOTATIONS, MAX_BYTES)


def _parsed(storage: Storage, data: bytes | None) -> tuple[Annotations, Annotated]:
    written = Annotations()
    if data is not None:
        written = Annotations.parse(data, place_of_note(storage, ANNOTATIONS))
    try:
        origin = written.over(read_origin_alone(storage))
    except DamagedFile:  # what is written now can be read all the same
        origin = written.over(None)
    version = "" if data is None else hashlib.sha256(data).hexdigest()[:16]
    return written, Annotated(origin.tags, origin.note, origin.pinned, version, _group_of(origin))
