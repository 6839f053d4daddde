"""How long a trial waits, and for what: read once from the environment, then handed on as a value."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from smdebug.config.constants import (
    INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT,
    INCOMPLETE_STEP_WAIT_WINDOW_KEY,
    MISSING_EVENT_FILE_RETRY_LIMIT,
    MISSING_EVENT_FILE_RETRY_LIMIT_KEY,
    TRAINING_END_DELAY_REFRESH_DEFAULT,
    TRAINING_END_DELAY_REFRESH_KEY,
)
from smdebug.config.environment import number_in

TRIAL_WAIT_SECONDS_KEY = "SMDEBUG_TRIAL_WAIT_SECONDS"
TRIAL_WAIT_SECONDS_DEFAULT = 1800
EVENT_FILE_PAUSE = 2.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True)
class Clock:
    """The time, and letting it pass; another one makes a test of waiting take none."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def pauses(self) -> Iterator[None]:
        """Sleep between looks at something that may come any moment, or in an hour."""
        pause = _FIRST_PAUSE
        while True:
            self.sleep(pause)
            yield
            pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True)
class Patience:
    """How long to wait for what is not there yet."""

    #: Seconds for a run to show its collections files.
    for_the_run: float = TRIAL_WAIT_SECONDS_DEFAULT
    #: How many incomplete steps may pile up before the older ones count as lost.
    incomplete_steps: int = INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT
    #: Seconds between the end marker and the last look.
    at_the_end: float = TRAINING_END_DELAY_REFRESH_DEFAULT
    #: How often to look for an event file that an index file names.
    event_file_looks: int = MISSING_EVENT_FILE_RETRY_LIMIT

    @classmethod
    def from_environment(cls) -> Patience:
        return cls(
            for_the_run=number_in(TRIAL_WAIT_SECONDS_KEY, TRIAL_WAIT_SECONDS_DEFAULT),
            incomplete_steps=int(
                number_in(INCOMPLETE_STEP_WAIT_WINDOW_KEY, INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT)
            ),
            at_the_end=number_in(
                TRAINING_END_DELAY_REFRESH_KEY, TRAINING_END_DELAY_REFRESH_DEFAULT
            ),
            event_file_looks=int(
                number_in(MISSING_EVENT_FILE_RETRY_LIMIT_KEY, MISSING_EVENT_FILE_RETRY_LIMIT)
            ),
        )
