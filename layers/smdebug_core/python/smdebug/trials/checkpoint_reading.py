"""Where a training has saved its weights, read from its `checkpoints.json`."""

from __future__ import annotations

from smdebug.files.names import CHECKPOINTS
from smdebug.files.notes.checkpoints import MAX_BYTES, Checkpoint, parse_checkpoints
from smdebug.storage.base import Storage
from smdebug.trials.note_content import note_content, place_of_note


def read_checkpoints(storage: Storage) -> list[Checkpoint]:
    """Return the checkpoints that were marked; `DamagedFile` if the file cannot be read."""
    data = note_content(storage, CHECKPOINTS, MAX_BYTES)
    return [] if data is None else parse_checkpoints(data, place_of_note(storage, CHECKPOINTS))
