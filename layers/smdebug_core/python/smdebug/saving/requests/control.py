"""Stop requests: one object beside the run, which the hook checks for at save steps.

    <run>/control/stop    {"reason": "…", "finding_id": "…", "stop_at_step": 500}

A rule's action writes it, or a person with write permission there; content that is not JSON is the
reason. Checking for it costs a read at intervals, and never more than a fraction of a second of the
training's time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from smdebug.files.names import STOP_KEY
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.requests.control_file import (
    LOOK_EVERY,
    PATIENCE,
    ControlFile,
    object_in,
    whole_number_in,
)
from smdebug.storage.base import Storage

NO_REASON = "no reason was given"
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
        """Read a request from the object. It may have been written by hand, so any content is a request."""
        content = object_in(data)
        return cls(
            reason=_sentence(content.get("reason")) or NO_REASON,
            finding_id=_sentence(content.get("finding_id")) or None,
            stop_at_step=whole_number_in(content.get("stop_at_step")),
            run_id=_sentence(content.get("run_id")) or None,
            training_run=whole_number_in(content.get("training_run")),
        )


class ControlObject:
    """The object beside the run, read at most every `look_every` seconds."""

    def __init__(
        self,
        storage: Storage,
        attempt: StartedAttempt,
        *,
        look_every: float = LOOK_EVERY,
        patience: float = PATIENCE,
    ):
        self.request: StopRequest | None = None
        self._file = ControlFile(
            storage,
            STOP_KEY,
            attempt,
            what="Stop requests",
            ignored="To stop this one, write it again with another text.",
            look_every=look_every,
            patience=patience,
        )

    def look(self) -> StopRequest | None:
        """Return the request, if there is one. Failures are not raised."""
        if self.request is None:
            content = self._file.look()
            if content is not None:
                self.request = StopRequest.read(content)
        return self.request


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
        """The request, known to the rank that reads it and, once agreed on, to all ranks."""
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
