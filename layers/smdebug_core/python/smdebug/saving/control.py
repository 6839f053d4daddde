"""Stop requests: one object beside the run, which the hook looks for at save steps.

    <run>/control/stop    {"reason": "…", "finding_id": "…", "stop_at_step": 500}

A rule's action writes it, or anybody who may write there; content that is not JSON is the reason. Looking for
it costs a read at intervals, and never more than a fraction of a second of the training's time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from smdebug.exceptions import ObjectMissing
from smdebug.files.names import STOP_KEY
from smdebug.logger import get_logger
from smdebug.saving.attempt import Attempt
from smdebug.storage.base import Storage

LOOK_EVERY = 10.0
PATIENCE = (
    0.5  # seconds that the training waits for an answer; a later one counts at the next check
)
NO_REASON = "somebody asked for it"
_LONGEST = 64 << 10
_LONGEST_REASON = 500

Agree = Callable[[int | None], int | None]
"""Takes the last step that this rank knows of (or None) and returns the one that all ranks agree on."""


class StopRequest(NamedTuple):
    """A request to stop the training after `stop_at_step`, or as soon as possible."""

    reason: str = NO_REASON
    finding_id: str | None = None
    stop_at_step: int | None = None
    run_id: str | None = None  # the run it is for, if it names one
    training_run: int | None = None

    @classmethod
    def read(cls, data: bytes) -> StopRequest:
        """Read a request from the object. Anybody may have written it, so any content is a request."""
        text = data[:_LONGEST].decode(errors="replace")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = text
        if not isinstance(content, dict):
            content = {"reason": content}
        return cls(
            reason=_sentence(content.get("reason")) or NO_REASON,
            finding_id=_sentence(content.get("finding_id")) or None,
            stop_at_step=_number(content.get("stop_at_step")),
            run_id=_sentence(content.get("run_id")) or None,
            training_run=_number(content.get("training_run")),
        )

    def names(self, attempt: Attempt) -> bool | None:
        """Return whether it is for this attempt of the run; None if it names no attempt."""
        if self.run_id not in (None, attempt.run_id):
            return False
        if self.training_run is None:
            return None
        return self.training_run >= attempt.training_run


class ControlObject:
    """The object beside the run, read at most every `look_every` seconds."""

    def __init__(
        self,
        storage: Storage,
        attempt: Attempt,
        *,
        look_every: float = LOOK_EVERY,
        patience: float = PATIENCE,
    ):
        self.request: StopRequest | None = None
        self._storage = storage
        self._attempt = attempt
        self._every = look_every
        self._patience = patience
        self._next_look = 0.0
        self._asking: threading.Thread | None = None
        self._looked = False
        self._stale: bytes | None = None  # what was there before this training
        self._complained = False

    def look(self) -> StopRequest | None:
        """Return the request, if there is one. No failure is raised."""
        now = time.monotonic()
        still_asking = self._asking is not None and self._asking.is_alive()
        if self.request is None and not still_asking and now >= self._next_look:
            self._next_look = now + self._every
            thread = threading.Thread(target=self._ask, name="smdebug-control", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                return None
            self._asking = thread
            thread.join(self._patience)
        return self.request

    def _ask(self) -> None:
        try:
            self._accept(self._storage.read(STOP_KEY))
        except ObjectMissing:
            self._looked = True
            self._stale = None
        except BaseException as error:  # noqa: BLE001 - without an answer the training goes on
            if not self._complained:
                self._complained = True
                get_logger().warning(
                    "Stop requests cannot be read from %s: %s",
                    *(self._storage.location, error),
                )

    def _accept(self, data: bytes) -> None:
        first, self._looked = not self._looked, True
        request = StopRequest.read(data)
        is_meant = request.names(self._attempt)
        if is_meant is None:
            # It names no training: if it existed before this one, it was for an earlier one.
            if first:
                self._stale = data
                get_logger().warning(
                    "%s/%s existed before this training and is ignored. To stop this one, write it again "
                    "with another text.",
                    *(self._storage.location, STOP_KEY),
                )
            is_meant = data != self._stale
        if is_meant:
            self.request = request


class StopWatch:
    """Decides when to stop: this rank alone, or all ranks together where they can agree."""

    def __init__(self, control: ControlObject | None, agree: Agree | None = None):
        self._control = control
        self._agree = agree
        self._last_step: int | None = None  # agreed on
        # Whether to ask after each step, and not only after those that were saved: ranks that save nothing
        # have to agree too, and the last step may be any.
        self.every_step = agree is not None

    @property
    def request(self) -> StopRequest | None:
        """The request, known to the rank that reads it and, once agreed on, to all."""
        known = self._control.request if self._control is not None else None
        if known is None and self._last_step is not None:
            return StopRequest("stop requested on the first worker", stop_at_step=self._last_step)
        return known

    def is_time(self, step: int, *, is_save_step: bool) -> bool:
        """Return whether `step`, which has just ended, is the last; every rank asks at the same steps."""
        if self._last_step is None and is_save_step:
            known = self._control.look() if self._control is not None else None
            last = None if known is None else max(step, known.stop_at_step or 0)
            self._last_step = last if self._agree is None else self._agree(last)
            self.every_step |= self._last_step is not None
        return self._last_step is not None and step >= self._last_step


def _sentence(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[:_LONGEST_REASON])
    return plain.strip()


def _number(number: Any) -> int | None:
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:18])
    return number if type(number) is int and number >= 0 else None
