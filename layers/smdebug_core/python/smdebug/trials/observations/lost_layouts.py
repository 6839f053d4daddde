"""A layout of statistics of which the index file is lost: its event file still holds it.

The layout is written once, at the first step that has statistics, and every later step needs it.
"""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import (
    DamagedFile,
    ObjectMissing,
    StepUnavailable,
    StorageError,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.event_reading import iterate_records
from smdebug.files.names import event_key
from smdebug.files.observations import LAYOUT

_UNAVAILABLE = (TensorUnavailable, TensorUnavailableForStep, StepUnavailable)


def layout_content(trial: Any, tensor: Any, at: int, worker: str | None) -> Any:
    """Return the layout saved at step `at`: what `tensor` reads, or else what the event file has."""
    try:
        return tensor(LAYOUT).value(at, worker=worker)
    except _UNAVAILABLE:
        content = _in_event_file(trial, at, worker)
        if content is None:
            raise
        return content


def _in_event_file(trial: Any, at: int, worker: str | None) -> Any:
    """Return the layout in the event file of that step; None if there is none, or it is damaged, too."""
    workers = [worker] if worker is not None else trial.workers()[:1]
    if not workers or at < 0:
        return None
    key = event_key(at, workers[0])
    try:
        events = iterate_records(trial.storage.read(key), file=key)
        return next((event.value for event in events if event.name == LAYOUT), None)
    except (DamagedFile, ObjectMissing, StorageError):
        return None
