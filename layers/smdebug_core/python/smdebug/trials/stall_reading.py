"""Where ranks are that make no progress, read from the files of `stalls/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from smdebug.exceptions import SMDebugError
from smdebug.files.names import STALL_SUFFIX, STALLS_FOLDER
from smdebug.files.notes.stalls import MAX_BYTES, Stall
from smdebug.storage.base import Storage
from smdebug.trials.note_content import note_content, place_of_note

MOST_FILES = 8192
_WORTH_THREADS = 4


def read_stalls(storage: Storage) -> dict[str, Stall]:
    """Return what each worker has written, by worker; files that cannot be read are left out."""
    keys = [key for key in islice(storage.list(STALLS_FOLDER), MOST_FILES) if key.endswith(STALL_SUFFIX)]

    def read(key: str) -> Stall | None:
        try:
            data = note_content(storage, key, MAX_BYTES)
            return None if data is None else Stall.parse(data, place_of_note(storage, key))
        except SMDebugError:  # the others say more than none
            return None

    return {stall.worker: stall for stall in _each(storage, keys, read) if stall is not None}


def _each(storage: Storage, keys: list[str], read: Callable[[str], Stall | None]) -> Iterator[Stall | None]:
    """Read the files, several at a time where the storage is worth that."""
    if storage.concurrency == 1 or len(keys) < _WORTH_THREADS:
        yield from map(read, keys)
        return
    with ThreadPoolExecutor(storage.concurrency, "smdebug-stalls") as pool:
        yield from pool.map(read, keys)
