"""What to do about a place that holds a finished run: a script that is run twice just works."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from smdebug.exceptions import RunEnded, SMDebugValueError
from smdebug.files.names import (
    ANNOTATIONS,
    CHECKPOINTS,
    CLAIM,
    COLLECTIONS_FOLDER,
    END_MARKER,
    EVENTS_FOLDER,
    FIRST_FORMAT_MARKER,
    INDEX_FOLDER,
    LOGGED_FOLDER,
    ORIGIN,
    SENT_ALERTS,
    STALLS_FOLDER,
)
from smdebug.logger import get_logger
from smdebug.saving.place.places import TENSORBOARD_FOLDER, Place, place_for_a_run, unused
from smdebug.service.rules_file import RULES_FILE
from smdebug.storage import Storage, open_storage

NEXT, REFUSE, RESUME, OVERWRITE = CHOICES = ("next", "refuse", "resume", "overwrite")
_FOLDERS = (
    COLLECTIONS_FOLDER,
    EVENTS_FOLDER,
    INDEX_FOLDER,
    LOGGED_FOLDER,
    STALLS_FOLDER,
    "control/",
    f"{TENSORBOARD_FOLDER}/",
)
_FILES = (ORIGIN, CHECKPOINTS, ANNOTATIONS, SENT_ALERTS, RULES_FILE, CLAIM, FIRST_FORMAT_MARKER, END_MARKER)


def place_for_another_run(out_dir: Place, if_finished: str = NEXT) -> str:
    """Return the place to save to: `out_dir`, unless it holds a finished run.

    Then it is the next free name (`runs/a-2`), or the same place, whose run is continued ("resume") or
    removed ("overwrite"). "refuse" raises RunEnded.
    """
    if if_finished not in CHOICES:
        raise SMDebugValueError(f"if_finished is one of {', '.join(CHOICES)}, not {if_finished!r}")
    try:
        return place_for_a_run(out_dir).location
    except RunEnded:
        if if_finished == REFUSE:
            raise
    storage = open_storage(out_dir)
    if if_finished == NEXT:
        place = _next_place(storage.location)
        get_logger().info("%s holds a finished run: this one is saved to %s", storage.location, place)
        return place
    if _has_others():
        raise SMDebugValueError(
            f"{storage.location} holds a finished run, and several processes are about to save there: "
            "remove it before they start, or give another place"
        )
    if if_finished == OVERWRITE:
        remove_run(storage)
        get_logger().info("The finished run in %s was removed: this one replaces it", storage.location)
    else:
        storage.delete(END_MARKER)
        get_logger().info("The finished run in %s is continued", storage.location)
    return storage.location


def place_for_later_training(first: str, number: int, if_finished: str) -> str:
    """Return the place of a process's training `number`, whose first one is saved to `first`: `runs/a-2` …

    What a later training finds there may be another's: it removes and continues no finished run.
    """
    return place_for_another_run(f"{first}-{number}", REFUSE if if_finished == REFUSE else NEXT)


def _next_place(location: str) -> str:
    """Return the first of `location-2`, `location-3` … that is free.

    Of several processes a later one finds what the first one has begun, which has not ended.
    """
    if "://" not in location and not _has_others():
        return str(unused(Path(location)))
    for number in count(2):
        place = f"{location.rstrip('/')}-{number}"
        storage = open_storage(place)
        is_taken = (
            storage.exists(END_MARKER) if _has_others() else next(iter(storage.list("")), None) is not None
        )
        if not is_taken:
            return place
    raise AssertionError  # there is always another number


def _has_others() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def remove_run(storage: Storage) -> None:
    """Remove the files of the run, and nothing else; the end marker last."""
    for folder in _FOLDERS:
        for key in list(storage.list(folder)):
            storage.delete(key)
    for file in _FILES:
        if storage.exists(file):
            storage.delete(file)
