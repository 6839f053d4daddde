"""What an earlier attempt that was killed has left unfinished."""

from __future__ import annotations

from smdebug.amounts import counted
from smdebug.exceptions import StorageError
from smdebug.files.names import file_name_of
from smdebug.logger import get_logger
from smdebug.saving.place.deadline import within
from smdebug.storage.base import Storage
from smdebug.storage.unfinished import KeepsUnfinished


def remove_leftovers(storage: Storage, worker: str) -> None:
    """Remove the worker's unfinished files. They do no harm, so this may fail."""
    if not isinstance(storage, KeepsUnfinished):
        return
    remove = storage.remove_unfinished
    try:
        count = within(lambda: remove(file_name_of(worker)), storage.location)
    except StorageError as error:
        get_logger().debug("Unfinished files of %s were not removed: %s", storage.location, error)
        return
    if count:
        get_logger().info("Removed %s from %s", counted(count, "unfinished file"), storage.location)
