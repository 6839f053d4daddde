"""Finding a run: its collections files show that it has begun, and how many workers it has.

A run may be opened before it starts: missing files are waited for, with log messages and a time limit.
A place that can never become a run raises an error at once.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import (
    MissingCollectionFiles,
    ObjectMissing,
    SMDebugError,
    SMDebugRuntimeError,
)
from smdebug.files.collections_file import parse_collections
from smdebug.files.names import (
    COLLECTIONS_FOLDER,
    END_MARKER,
    FIRST_FORMAT_MARKER,
    collections_worker,
)
from smdebug.files.replicas import Replicas
from smdebug.storage import Storage
from smdebug.trials.closing_reading import read_worked
from smdebug.trials.live.waiting import TRIAL_WAIT_SECONDS_KEY, Clock
from smdebug.trials.stored.missing_steps import Worked

_WARN_AFTER = (2.0, 60.0, 600.0)


class Opened(NamedTuple):
    """A run that has begun."""

    collections: CollectionManager
    workers: tuple[str, ...]

    @property
    def num_workers(self) -> int:
        return max(1, self.collections.get_num_workers())

    @property
    def chief(self) -> str | None:
        """The worker that saves everything, where the others save digests alone."""
        replicas = Replicas.of_run(self.collections.meta)
        return None if replicas is None else replicas.chief


def read_collections(storage: Storage) -> Opened | None:
    """Return the run's collections and the workers with a collections file; None if there is none."""
    keys = [key for key in storage.list(COLLECTIONS_FOLDER) if collections_worker(key)]
    workers = tuple(worker for key in keys if (worker := collections_worker(key)))
    first_error: SMDebugError | None = None
    for key in keys:  # all are equal, so the first readable file is enough
        try:
            content = parse_collections(storage.read(key), file=key)
            return Opened(CollectionManager.from_dict(content), workers)
        except ObjectMissing:
            continue
        except SMDebugError as error:
            first_error = first_error or error
    if first_error:
        raise first_error
    return None


def read_workers(storage: Storage) -> dict[str, Worked]:
    """Return the attempt and the closing note of each worker whose collections file can be read."""
    keys = storage.list(COLLECTIONS_FOLDER)
    return read_worked(storage, {key: worker for key in keys if (worker := collections_worker(key))})


def wait_for_run(storage: Storage, seconds: float, clock: Clock, logger: logging.Logger) -> Opened:
    """Return the run once all its workers have written their collections file.

    Raise `MissingCollectionFiles` if the run ended without them, or `seconds` have passed.
    """
    begun = clock.now()
    announcements = list(_WARN_AFTER)
    pauses = clock.pauses()
    run = _complete(read_collections(storage))
    if run is None and storage.exists(FIRST_FORMAT_MARKER):
        raise SMDebugRuntimeError(_FIRST_FORMAT.format(place=storage.location))
    while run is None:
        if storage.exists(END_MARKER):
            # The run may have ended between the two reads, but no file comes after its end.
            run = _complete(read_collections(storage))
            if run is None:
                raise MissingCollectionFiles(_ended_early(storage))
            break
        waited = clock.now() - begun
        if waited >= seconds:
            raise MissingCollectionFiles(_gave_up(storage, waited))
        if announcements and waited >= announcements[0]:
            announcements.pop(0)
            logger.warning(_still_waiting(storage, waited, seconds))
        next(pauses)
        run = _complete(read_collections(storage))
    return run


def _complete(run: Opened | None) -> Opened | None:
    if run is None or len(run.workers) < run.num_workers:
        return None
    return run if run.chief is None or run.chief in run.workers else None


_FIRST_FORMAT = (
    f"{{place}} holds a run in the first format ({FIRST_FORMAT_MARKER} at its root), from before there were "
    f"index files, and that is not read. Save the run again: a current one has {COLLECTIONS_FOLDER}."
)


def _ended_early(storage: Storage) -> str:
    return (
        f"The run at {storage.location} has ended ({END_MARKER} is there), and {_what_is_missing(storage)}. "
        "Was a tensor saved at all, and were all files copied? Check how the hook was configured."
    )


def _gave_up(storage: Storage, waited: float) -> str:
    return (
        f"No run began at {storage.location} within {waited:.0f} s: {_what_is_missing(storage)}. "
        f"{_what_is_there(storage)} Check the path; if the training needs longer to save its first step, "
        f"set {TRIAL_WAIT_SECONDS_KEY} to more seconds."
    )


def _still_waiting(storage: Storage, waited: float, seconds: float) -> str:
    return (
        f"Waiting for a run at {storage.location}, {waited:.0f} s of at most {seconds:.0f} s so far: "
        f"{_what_is_missing(storage)}. {_what_is_there(storage)}"
    )


def _what_is_missing(storage: Storage) -> str:
    run = read_collections(storage)
    if run is None:
        return f"there is no {COLLECTIONS_FOLDER}<worker>_collections.json"
    return (
        f"there are collections files of {len(run.workers)} of {run.num_workers} workers "
        f"({', '.join(run.workers[:8])})"
    )


def _what_is_there(storage: Storage) -> str:
    first = next(iter(storage.list("")), None)
    return f"The place holds {first}, for example." if first else "The place is empty or does not exist."
