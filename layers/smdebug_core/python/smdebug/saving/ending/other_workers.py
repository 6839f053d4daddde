"""Waiting for workers that still save, because the end marker has to be the last file of a run.

A worker that closes marks its collections file. The chief waits for a limited time: a killed worker never
closes.
"""

from __future__ import annotations

import json
import time

from smdebug.exceptions import StorageError, StorageUnavailable
from smdebug.files.collections_file import CLOSED
from smdebug.files.names import COLLECTIONS_FOLDER, collections_worker
from smdebug.logger import get_logger
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.deadline import within
from smdebug.storage.base import Storage

WAITS_FOR = 10.0
_CHECK_EVERY = 0.2


def wait_for_workers(
    storage: Storage, attempt: StartedAttempt, how_many: int | None, *, except_for: int = 0
) -> bool:
    """Wait until that many workers have closed; return False if it takes too long or is unknown.

    None means those that have saved something, `except_for` some of them: a script may make its hook in one
    process alone.
    """
    try:
        return within(lambda: _wait(storage, attempt, how_many, except_for), storage.location, 2 * WAITS_FOR)
    except StorageError as error:
        get_logger().warning("Other workers may still be saving: %s", error)
        return False


def _wait(storage: Storage, attempt: StartedAttempt, how_many: int | None, except_for: int) -> bool:
    deadline = time.monotonic() + WAITS_FOR
    closed: set[str] = set()
    begun: set[str] = set()
    while True:
        try:
            for key in storage.list(COLLECTIONS_FOLDER):
                if key in closed or collections_worker(key) is None:
                    continue
                has_closed = _has_closed(storage.read(key), attempt)
                if has_closed is not None:
                    begun.add(key)
                if has_closed:
                    closed.add(key)
        except StorageUnavailable:  # for a moment, perhaps
            if time.monotonic() >= deadline:
                raise
            time.sleep(_CHECK_EVERY)
            continue
        expected = len(begun) - except_for if how_many is None else how_many
        if len(closed) >= expected:
            return True
        if time.monotonic() >= deadline:
            get_logger().warning(
                "The run ends with %d of %d workers closed: the others had %g s to finish",
                len(closed),
                expected,
                WAITS_FOR,
            )
            return False
        time.sleep(_CHECK_EVERY)


def _has_closed(collections_file: bytes, attempt: StartedAttempt) -> bool | None:
    """Return whether the file's worker has closed; None if the file is not of this attempt."""
    try:
        meta = json.loads(collections_file)["_meta"]
        if meta["training_run"] != attempt.training_run:
            return None
        return bool(meta.get(CLOSED))
    except (ValueError, KeyError, TypeError):
        return None
