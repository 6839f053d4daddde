"""Where a training has saved its weights, read from its `checkpoints.json`."""

from __future__ import annotations

from smdebug.exceptions import DamagedFile, ObjectMissing, UnfitFile
from smdebug.files.names import CHECKPOINTS
from smdebug.files.notes.checkpoints import MAX_BYTES, Checkpoint, parse_checkpoints
from smdebug.storage.base import ByteSpan, Storage


def read_checkpoints(storage: Storage) -> list[Checkpoint]:
    """Return the checkpoints that were marked; `DamagedFile` if the file cannot be read."""
    place = f"{storage.location.rstrip('/')}/{CHECKPOINTS}"
    try:
        data = bytes(storage.view(CHECKPOINTS, ByteSpan(0, MAX_BYTES + 1)))
    except ObjectMissing:
        return []
    except UnfitFile as error:
        raise DamagedFile(place, error.problem) from error
    return parse_checkpoints(data, place)
