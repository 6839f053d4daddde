"""How long a trial waits for what is missing, and the clock that it waits with."""

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
    """The time and how to sleep. Tests of waiting pass one that takes no time."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def pauses(self) -> Iterator[None]:
        """Sleep before each item, longer each time: the wait may take a moment or an hour."""
        pause = _FIRST_PAUSE
        while True:
            self.sleep(pause)
            yield
            pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True)
class WaitLimits:
    """How long to wait for what is missing."""

    #: Seconds for the collections files of a run.
    run_seconds: float = TRIAL_WAIT_SECONDS_DEFAULT
    #: How many steps may be incomplete before the older ones count as lost.
    incomplete_steps: int = INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT
    #: Seconds between the end marker and the last refresh.
    end_seconds: float = TRAINING_END_DELAY_REFRESH_DEFAULT
    #: How many times to try an event file that an index file names.
    event_file_attempts: int = MISSING_EVENT_FILE_RETRY_LIMIT
    #: How many index files one refresh reads at most: the trial of a long run begins with its first steps.
    index_files: int | None = None

    @classmethod
    def from_environment(cls) -> WaitLimits:
        """Return the limits that the environment variables set."""
        return cls(
            run_seconds=number_in(TRIAL_WAIT_SECONDS_KEY, TRIAL_WAIT_SECONDS_DEFAULT),
            incomplete_steps=int(
                number_in(INCOMPLETE_STEP_WAIT_WINDOW_KEY, INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT)
            ),
            end_seconds=number_in(TRAINING_END_DELAY_REFRESH_KEY, TRAINING_END_DELAY_REFRESH_DEFAULT),
            event_file_attempts=int(
                number_in(MISSING_EVENT_FILE_RETRY_LIMIT_KEY, MISSING_EVENT_FILE_RETRY_LIMIT)
            ),
        )
