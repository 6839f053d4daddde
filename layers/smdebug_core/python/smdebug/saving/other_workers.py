"""Waiting, at the end, for the workers that still save: the end marker is to be the last file of a run.

Each worker's collections file says at its end that it has closed. How long the chief waits is bounded: a
worker that was killed closes nothing.
"""

from __future__ import annotations

import json
import time

from smdebug.exceptions import StorageError
from smdebug.files.names import COLLECTIONS_FOLDER, collections_worker
from smdebug.logger import get_logger
from smdebug.saving.attempt import Attempt
from smdebug.saving.deadline import within
from smdebug.storage.base import Storage

CLOSED = "closed"
WAITS_FOR = 10.0
_LOOKS_EVERY = 0.2


def wait_for_workers(storage: Storage, attempt: Attempt, how_many: int) -> bool:
    """Wait until that many workers have closed. False if that takes too long, or cannot be known."""
    try:
        return within(lambda: _wait(storage, attempt, how_many), storage.location, 2 * WAITS_FOR)
    except StorageError as error:
        get_logger().warning("Whether other workers still save is not known: %s", error)
        return False


def _wait(storage: Storage, attempt: Attempt, how_many: int) -> bool:
    deadline = time.monotonic() + WAITS_FOR
    closed: set[str] = set()
    while True:
        for key in storage.list(COLLECTIONS_FOLDER):
            is_one = key not in closed and collections_worker(key) is not None
            if is_one and _has_closed(storage.read(key), attempt):
                closed.add(key)
        if len(closed) >= how_many:
            return True
        if time.monotonic() >= deadline:
            get_logger().warning(
                "The run ends with %d of %d workers closed: the others had %g s to finish",
                *(len(closed), how_many, WAITS_FOR),
            )
            return False
        time.sleep(_LOOKS_EVERY)


def _has_closed(collections_file: bytes, attempt: Attempt) -> bool:
    try:
        meta = json.loads(collections_file)["_meta"]
        return bool(meta[CLOSED]) and meta["training_run"] == attempt.training_run
    except (ValueError, KeyError, TypeError):
        return False
