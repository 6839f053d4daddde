"""Gives up an evaluation that hangs once the training has ended: nobody would end its process otherwise."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from smdebug.companion.pipe import TrainingPipe
from smdebug.runs.evaluation.code_places import place_in
from smdebug.runs.evaluation.rule_process import busy_place, is_starting

PATIENCE = 600.0
"""Seconds after the end of a training in which nothing was evaluated."""
_LOOK_EVERY = 1.0


class HangWatch:
    """Calls `give_up` with the place in the code, on a thread of its own, if there is no more progress."""

    def __init__(self, pipe: TrainingPipe, give_up: Callable[[str], object], patience: float = PATIENCE):
        self._pipe = pipe
        self._give_up = give_up
        self._patience = patience
        self._watched = threading.get_ident()
        self._progressed_at = 0.0
        threading.Thread(target=self._watch, name="smdebug-hang-watch", daemon=True).start()

    def note_progress(self) -> None:
        """Note that something was evaluated."""
        self._progressed_at = time.monotonic()

    def _watch(self) -> None:
        while self._pipe.is_open_after(_LOOK_EVERY):
            pass  # a training in progress may take its time
        self.note_progress()
        while (left := self._progressed_at + self._patience - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_EVERY))
            if is_starting():
                self.note_progress()
        self._give_up(busy_place() or place_in(sys._current_frames().get(self._watched)))
