"""Where a run comes from, read from its `origin.json`."""

from __future__ import annotations

from smdebug.exceptions import DamagedFile, ObjectMissing, UnfitFile
from smdebug.files.names import ORIGIN
from smdebug.files.notes.origin import MAX_BYTES, Origin
from smdebug.storage.base import ByteSpan, Storage


def read_origin(storage: Storage) -> Origin | None:
    """Return the origin of the run; None if it has none, as runs of the old library.

    Raise `DamagedFile` if the file cannot be read as one.
    """
    place = f"{storage.location.rstrip('/')}/{ORIGIN}"
    try:
        data = bytes(storage.view(ORIGIN, ByteSpan(0, MAX_BYTES + 1)))
    except ObjectMissing:
        return None
    except UnfitFile as error:
        raise DamagedFile(place, error.problem) from error
    if not data:
        raise DamagedFile(place, "it is empty")
    return Origin.parse(data, place)
