"""Where a run comes from, read from its `origin.json`, with what people have written about it."""

from __future__ import annotations

from smdebug.exceptions import DamagedFile
from smdebug.files.names import ANNOTATIONS, ORIGIN
from smdebug.files.notes.annotations import MAX_BYTES as MOST_WRITTEN
from smdebug.files.notes.annotations import Annotations
from smdebug.files.notes.origin import MAX_BYTES, Origin
from smdebug.storage.base import Storage
from smdebug.trials.note_content import note_content, place_of_note


def read_origin(storage: Storage) -> Origin | None:
    """Return the origin of the run, with the tags and the note that people have given it since.

    None if it has neither, as runs of the old library. What people have written is left out if it is damaged.
    Raise `DamagedFile` if the file cannot be read as one.
    """
    origin = read_origin_alone(storage)
    try:
        written = read_annotations(storage)
    except DamagedFile:  # `smdebug verify` reports it
        written = None
    return origin if written is None else written.over(origin)


def read_origin_alone(storage: Storage) -> Origin | None:
    """Return the origin as the training wrote it; None if it has none, `DamagedFile` if it cannot be read."""
    data = note_content(storage, ORIGIN, MAX_BYTES)
    if data is None:
        return None
    place = place_of_note(storage, ORIGIN)
    if not data:
        raise DamagedFile(place, "it is empty")
    return Origin.parse(data, place)


def read_annotations(storage: Storage) -> Annotations | None:
    """Return what people have written about the run; None if nothing, `DamagedFile` if it cannot be read."""
    data = note_content(storage, ANNOTATIONS, MOST_WRITTEN)
    return None if data is None else Annotations.parse(data, place_of_note(storage, ANNOTATIONS))
