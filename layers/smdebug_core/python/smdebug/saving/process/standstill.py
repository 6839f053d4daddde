"""Says where this rank is when its training makes no progress, from a thread that wakes rarely.

The training thread does nothing for it: the other thread reads what the times of phases already keep. A rank
that had no update for `limit` seconds, or 20 times the usual step, writes one small file beside the run
(`files.notes.stalls`): where it stands, and later that it went on. The first steps may compile, so that
they have ten times as long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

from smdebug.files.notes.stalls import (
    ENDED,
    MOST_FRAMES,
    MOVES,
    PHASES,
    STANDS,
    WENT_ON,
    Stall,
)
from smdebug.logger import get_logger

__all__ = ["PHASES", "Progress", "Standstill", "StandstillThread", "stall_seconds"]

SECONDS_ENV_VAR = "SMDEBUG_STALL_SECONDS"
"""After how many seconds without an update a rank says where it is; 0 for never."""
DEFAULT_SECONDS = 60.0
STEPS = 20.0
"""The same, as a multiple of the usual step."""
FIRST_STEPS = 10.0
"""How many times as long the first steps may take."""
WARM_AFTER = 2
"""How often updates have to be seen until then."""
WRITTEN_AT = (1, 2, 10, 100)
"""The multiples of the limit at which the file is written anew."""
MOST_PAUSE = 15.0
_CLOSING_SECONDS = 5.0


class Progress(NamedTuple):
    """Where the training thread is."""

    step: int
    phase: str
    """One of `PHASES` of `files.notes.stalls`."""
    moved_at: float | None
    """When it began this phase, by the clock of the phases; None if that is not known."""
    update: Any
    """A number, or an object, that is another after each update."""


def stall_seconds() -> float:
    """Return the limit that is set; the default if it is no number."""
    try:
        return max(0.0, float(os.environ.get(SECONDS_ENV_VAR, "") or DEFAULT_SECONDS))
    except ValueError:
        return DEFAULT_SECONDS


class Standstill:
    """Looks where one training thread is: `look` is called now and then, on another thread.

    `progress` returns None when nothing is to be watched any more. `write` stores a file, and raises if it
    could not.
    """

    def __init__(
        self,
        progress: Callable[[], Progress | None],
        write: Callable[[Stall], object],
        limit: float,
        *,
        thread: int,
        clock: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
    ):
        self._progress = progress
        self._write = write
        self._least = limit
        self._thread = thread
        self._clock = clock
        self._wall = wall
        self._known: Progress | None = None
        self._updated_at = self._moved_at = clock()
        self._seen = 0
        self._usual: deque[float] = deque(maxlen=5)
        self._processor: tuple[float, float] | None = None
        self._written: tuple[Stall, float, int] | None = None
        """What was written last of a stall that is not over, when, and how many multiples it had reached."""

    @property
    def limit(self) -> float:
        """After how many seconds without an update the rank says where it is."""
        limit = max(self._least, STEPS * median(self._usual) if self._usual else 0.0)
        return limit if self._seen > WARM_AFTER else FIRST_STEPS * limit

    def look(self) -> bool:
        """Look once; return whether to look again."""
        found, now = self._progress(), self._clock()
        if found is None:
            return False
        known, self._known = self._known, found
        if known is None or found[:3] != known[:3]:
            self._moved_at = now if found.moved_at is None else found.moved_at
            self._processor = processor_seconds(self._thread, now)
        if known is None or not _is_same(found.update, known.update):
            if known is not None:
                if self._written is not None:
                    self._settle(WENT_ON)
                elif self._seen:
                    self._usual.append((now - self._updated_at) / max(1, found.step - known.step))
            self._seen += 1
            self._updated_at = now
        elif now - self._updated_at >= self.limit:
            self._say(found, now)
        return True

    def end(self) -> None:
        """Note that the training has ended, if the last word was that it stands."""
        if self._written is not None:
            self._settle(ENDED)

    def _say(self, found: Progress, now: float) -> None:
        seconds, limit = now - self._updated_at, self.limit
        state = STANDS if now - self._moved_at >= limit else MOVES
        reached = sum(seconds >= multiple * limit for multiple in WRITTEN_AT)
        if self._written is not None:
            stall, at, before = self._written
            is_new = stall.state != state and (state == STANDS or now - at >= limit)
            if reached <= before and not is_new:
                return
        stall = Stall(
            "",
            state,
            found.step,
            found.phase,
            seconds,
            in_phase=max(0.0, now - self._moved_at),
            limit=limit,
            since=self._wall() - seconds,
            processor=self._share(now),
            stack=stack_of(sys._current_frames().get(self._thread)),
        )
        self._write(stall)
        self._written = stall, now, reached

    def _settle(self, state: str) -> None:
        assert self._written is not None
        stall, _, _ = self._written
        self._written = None
        taken = max(stall.seconds, self._wall() - stall.since)
        self._write(replace(stall, state=state, seconds=taken))

    def _share(self, now: float) -> float | None:
        """Return for which share of its phase the thread has used a processor."""
        used = processor_seconds(self._thread, now)
        if used is None or self._processor is None or now <= self._processor[1]:
            return None
        return max(0.0, used[0] - self._processor[0]) / (now - self._processor[1])


def _is_same(now: Any, before: Any) -> bool:
    return now is before or (type(now) is int and now == before)


def processor_seconds(thread: int, now: float) -> tuple[float, float] | None:
    """Return how long a thread has used a processor, with the time; None where that is not known."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None or thread not in sys._current_frames():
        return None
    try:
        return time.clock_gettime(clock_of(thread)), now
    except OSError:
        return None


def stack_of(frame: FrameType | None) -> tuple[str, ...]:
    """Return module, function and line of each call, the innermost first: no values, no paths."""
    found: list[str] = []
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code
        found.append(f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(found)


class StandstillThread:
    """The thread that looks: a daemon, which waits for nothing but time."""

    def __init__(self, standstill: Standstill, limit: float):
        self._standstill = standstill
        self._pause = min(MOST_PAUSE, limit / 4)
        self._process = os.getpid()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smdebug-standstill", daemon=True)
        try:
            self._thread.start()
        except (RuntimeError, MemoryError):  # at a limit of the system, or at shutdown
            self._over.set()

    def stop(self) -> None:
        """Look no more; wait a moment for a last word, if there is one to say."""
        if os.getpid() != self._process or self._over.is_set():
            return
        self._over.set()
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        has_failed = False
        try:
            while not self._over.wait(self._pause):
                try:
                    if not self._standstill.look():
                        break
                except Exception as error:  # noqa: BLE001 - the training continues, and so does looking
                    if not has_failed:
                        get_logger().debug("Where this rank stands is not written: %r", error)
                    has_failed = True
            self._standstill.end()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the training continues
            get_logger().debug("Nobody looks any more where this rank stands: %r", error)
