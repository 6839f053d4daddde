"""Where a run comes from, read from its `origin.json`."""

from __future__ import annotations

from smdebug.exceptions import DamagedFile
from smdebug.files.names import ORIGIN
from smdebug.files.notes.origin import MAX_BYTES, Origin
from smdebug.storage.base import Storage
from smdebug.trials.note_content import note_content, place_of_note


def read_origin(storage: Storage) -> Origin | None:
    """Return the origin of the run; None if it has none, as runs of the old library.

    Raise `DamagedFile` if the file cannot be read as one.
    """
    data = note_content(storage, ORIGIN, MAX_BYTES)
    if data is None:
        return None
    place = place_of_note(storage, ORIGIN)
    if not data:
        raise DamagedFile(place, "it is empty")
    return Origin.parse(data, place)
