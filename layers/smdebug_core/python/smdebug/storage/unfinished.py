"""Unfinished files of writers that were killed."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol, runtime_checkable

from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.storage.file_writing import CREATE

_MOST_SECONDS = 5.0


@runtime_checkable
class KeepsUnfinished(Protocol):
    """A storage in which a writer that was killed leaves unfinished objects."""

    def remove_unfinished(self, worker: str) -> int:
        """Remove those of a worker, given as in file names, that nobody writes; return how many."""


def remove_unfinished(folder: str, worker: str) -> int:
    """Remove the unfinished files of that worker below a folder, for some seconds; return how many.

    A file that is still being written is locked, and stays.
    """
    until = time.monotonic() + _MOST_SECONDS
    is_of_worker = re.compile(rf"(^|_){re.escape(worker)}[._].*{re.escape(TEMPORARY_SUFFIX)}$")
    count = 0
    for path in _files_below(folder):
        if is_of_worker.search(os.path.basename(path)):  # noqa: PTH119 - as elsewhere in this room
            with suppress(OSError):
                count += _remove_unless_locked(path)
        if time.monotonic() > until:
            break
    return count


def _files_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (f"{place}/{name}" for name in names)


def _remove_unless_locked(path: str) -> bool:
    descriptor = os.open(path, CREATE & ~os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)  # noqa: PTH108
        return True
    finally:
        os.close(descriptor)
