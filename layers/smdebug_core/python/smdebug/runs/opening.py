"""Opening a run as it is now, without waiting for anything."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice

from smdebug.exceptions import MissingCollectionFiles
from smdebug.files.names import COLLECTIONS_FOLDER, EVENTS_FOLDER, INDEX_FOLDER
from smdebug.storage import Storage, open_storage
from smdebug.trials import Trial, create_trial
from smdebug.trials.live.finding_run import read_collections
from smdebug.trials.live.waiting import WaitLimits

IMPATIENT = WaitLimits(run_seconds=0, end_seconds=0, event_file_attempts=0)
_MOST_KEYS = 20_000
_EMPTY = "the place is empty or does not exist"


def open_run(
    path: str | os.PathLike[str] | Storage,
    *,
    range_steps: tuple[int | None, int | None] | None = None,
    attempt: int | None = None,
    index_files: int | None = None,
) -> Trial:
    """Return the run as far as it has progressed; raise `MissingCollectionFiles` if none exists.

    `attempt` is the number of an attempt of the training; the newest by default. With `index_files` the run
    is opened with its first steps, and each refresh reads so many index files more.
    """
    storage = open_storage(path)
    if isinstance(path, str | os.PathLike):
        refuse_a_file(path)
    limits = replace(IMPATIENT, index_files=index_files)
    try:
        return create_trial(storage, wait_limits=limits, range_steps=range_steps, attempt=attempt)
    except MissingCollectionFiles:
        if read_collections(storage) is not None:  # of some of the workers
            raise
        raise MissingCollectionFiles(_nothing_here(storage)) from None


def refuse_a_file(path: str | os.PathLike[str]) -> None:
    """Raise `MissingCollectionFiles` if the path is a file: a run is a folder."""
    if os.path.isfile(path):  # noqa: PTH113 - it may be s3://…
        raise MissingCollectionFiles(f"There is no run at {os.fspath(path)}: it is a file.")


def runs_below(storage: Storage, most: int = 20) -> list[str]:
    """Return the paths of runs below this place, relative to it."""
    found: dict[str, None] = {}
    for key in islice(storage.list(""), _MOST_KEYS):
        run, folder, _ = key.partition(f"/{COLLECTIONS_FOLDER}")
        if folder:
            found[run] = None
            if len(found) == most:
                break
    return list(found)


def no_run_below(storage: Storage) -> str:
    """Return the sentence for a place at and below which there is no run."""
    is_empty = next(iter(storage.list("")), None) is None
    return f"There is no run at or below {storage.location}{': ' + _EMPTY if is_empty else ''}."


def _nothing_here(storage: Storage) -> str:
    where = f"There is no run at {storage.location}"
    first = next(iter(storage.list("")), None)
    if first is None:
        return f"{where}: {_EMPTY}."
    below = runs_below(storage, 5)
    if below:
        return f"{where}, but there are runs below it: {', '.join(below)}. Name one of them."
    if first.startswith((INDEX_FOLDER, EVENTS_FOLDER)):
        return f"{where}: the folder {COLLECTIONS_FOLDER} is missing. Copy it, too."
    return f"{where}: it contains {first}, for example, but no {COLLECTIONS_FOLDER}."
