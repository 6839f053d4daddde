"""Which ranks have closed their run, and when those failed that did, read from their collections files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smdebug.exceptions import AccessDenied, SMDebugError, StorageUnavailable
from smdebug.files.collections_file import ClosingNote, parse_collections
from smdebug.files.names import collections_key
from smdebug.storage.base import Storage
from smdebug.trials.stored.attempts import AttemptId
from smdebug.trials.stored.missing_steps import Worked
from smdebug.trials.stored.values import MOST_READERS, in_parallel


def read_worked(storage: Storage, files: Mapping[str, str]) -> dict[str, Worked]:
    """Return, by worker, what the collections files that can be read say; `files` has the worker of each."""

    def read(key: str) -> Worked | None:
        try:
            meta = parse_collections(storage.read(key), file=key).get("_meta", {})
        except (AccessDenied, StorageUnavailable):
            raise
        except SMDebugError:
            return None
        return Worked(AttemptId.named_in(meta), ClosingNote.named_in(meta))

    found = in_parallel(read, list(files), min(storage.concurrency, MOST_READERS))
    return {worker: each for worker, each in zip(files.values(), found, strict=True) if each is not None}


def read_closing_notes(storage: Storage, workers: Iterable[str]) -> dict[str, ClosingNote]:
    """Return what those of the workers have said that have closed their newest attempt."""
    worked = read_worked(storage, {collections_key(worker): worker for worker in workers})
    newest = max((each.attempt.training_run for each in worked.values()), default=0)
    return {
        worker: each.note
        for worker, each in worked.items()
        if each.note is not None and each.attempt.training_run == newest
    }


def has_failed(storage: Storage, workers: int) -> bool:
    """Return whether the first or the last worker says that its training raised or was terminated."""
    try:
        notes = read_closing_notes(storage, {"worker_0", f"worker_{workers - 1}"})
    except SMDebugError:  # whoever reads more is told why
        return False
    return any(note.failed_at is not None for note in notes.values())
