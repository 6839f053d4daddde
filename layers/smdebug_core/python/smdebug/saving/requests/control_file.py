"""An object beside the run that others write and the hook reads, without delaying the training."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from smdebug.exceptions import ObjectMissing
from smdebug.logger import get_logger
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.trouble import warn_of_storage
from smdebug.storage.base import Storage

LOOK_EVERY = 10.0
# Seconds that the training waits for an answer; a later one counts at the next check.
PATIENCE = 0.5
_LONGEST = 64 << 10


class ControlFile:
    """Reads one object at most every `look_every` seconds, in a thread of its own."""

    def __init__(
        self,
        storage: Storage,
        key: str,
        attempt: StartedAttempt,
        *,
        what: str,
        ignored: str,
        look_every: float = LOOK_EVERY,
        patience: float = PATIENCE,
    ):
        self.content: bytes | None = None
        """What the object holds, if it is meant for this attempt of the run."""
        self._storage = storage
        self._key = key
        self._attempt = attempt
        self._what = what
        self._ignored = ignored
        self._every = look_every
        self._patience = patience
        self._next_look = 0.0
        self._asking: threading.Thread | None = None
        self._looked = False
        self._stale: bytes | None = None  # what was there before this training
        self._complained = False

    def look(self) -> bytes | None:
        """Return the content, if it is known and meant for this training. Failures are not raised."""
        now = time.monotonic()
        if now >= self._next_look and not (self._asking is not None and self._asking.is_alive()):
            self._next_look = now + self._every
            thread = threading.Thread(target=self._ask, name="smdebug-control", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                return None
            self._asking = thread
            thread.join(self._patience)
        return self.content

    def _ask(self) -> None:
        try:
            self._accept(self._storage.read(self._key))
        except ObjectMissing:
            self._looked = True
            self._stale = None
        except BaseException as error:  # noqa: BLE001 - without an answer the training continues
            if not self._complained:
                self._complained = True
                where = self._storage.location
                problem = error if isinstance(error, Exception) else RuntimeError(repr(error))
                warn_of_storage(self._storage, problem, "%s cannot be read from %s: %s", self._what, where)

    def _accept(self, data: bytes) -> None:
        first, self._looked = not self._looked, True
        is_meant = is_for(self._attempt, data)
        if is_meant is None:
            # It names no training: if it existed before this one, it was for an earlier one.
            if first:
                self._stale = data
                get_logger().warning(
                    "%s/%s existed before this training and is ignored. %s",
                    self._storage.location,
                    self._key,
                    self._ignored,
                )
            is_meant = data != self._stale
        if is_meant:
            self.content = data


def is_for(attempt: StartedAttempt, data: bytes) -> bool | None:
    """Return whether a control object is for this attempt of the run; None if it names no attempt."""
    content = object_in(data)
    run_id = content.get("run_id")
    if isinstance(run_id, str) and run_id.strip() and run_id.strip() != attempt.run_id:
        return False
    training_run = whole_number_in(content.get("training_run"))
    return None if training_run is None else training_run >= attempt.training_run


def object_in(data: bytes) -> dict[str, Any]:
    """Return the JSON object in the data; other content is the reason for what is requested."""
    text = data[:_LONGEST].decode(errors="replace")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = text
    return content if isinstance(content, dict) else {"reason": content}


def whole_number_in(number: Any) -> int | None:
    """Return a number of JSON that is 0 or more, also if it is written as text."""
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:18])
    return number if type(number) is int and number >= 0 else None
