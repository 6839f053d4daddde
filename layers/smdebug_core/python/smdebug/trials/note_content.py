"""The content of a file in which a run says something of itself (`files.notes`)."""

from __future__ import annotations

from smdebug.exceptions import DamagedFile, ObjectMissing, UnfitFile
from smdebug.storage.base import ByteSpan, Storage


def place_of_note(storage: Storage, key: str) -> str:
    """Return the file's place, for messages."""
    return f"{storage.location.rstrip('/')}/{key}"


def note_content(storage: Storage, key: str, most: int) -> bytes | None:
    """Return at most one byte more than `most`; None if there is no file, `DamagedFile` if it is no file."""
    try:
        return bytes(storage.view(key, ByteSpan(0, most + 1)))
    except ObjectMissing:
        return None
    except UnfitFile as error:
        raise DamagedFile(place_of_note(storage, key), error.problem) from error
