"""Where the time of each step goes on this rank: data, forward, backward, update.

Clocks are read where the hook is called anyway. Nothing waits for a device, so that on a GPU these are the
times of the process that gives it work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any
from weakref import ref

from smdebug.mode_keys import TRAINING
from smdebug.numbers.rank_times import WINDOW, window_row
from smdebug.pytorch.listening.process import PROCESS
from smdebug.pytorch.ranks import rank_and_size
from smdebug.saving.planning.default_plan import due_before
from smdebug.saving.planning.save_plan import NO_MEMBERS
from smdebug.saving.process.standstill import (
    PHASES,
    Progress,
    Standstill,
    StandstillThread,
    stall_seconds,
)
from smdebug.saving.recording.recorder import Recorder
from smdebug.saving.recording.recorder_states import State
from smdebug.saving.recording.stall_writing import end_earlier_stall, write_stall

DATA, FORWARD, BACKWARD, UPDATE = range(4)
FREQUENT_RANKS = 16
"""More ranks note their times only with their digests: each other note is two more files of a rank."""
MOST_KEPT = 20_000
"""Steps beyond this many since times were taken last are left out, the oldest first."""


class Phases:
    """Times of the steps of one rank, since they were taken last.

    The time between an update and the next forward is for data, and for whatever else the script does there.
    Steps at which this rank saves are left out: what it measures then takes time, too.
    """

    __slots__ = (
        "__weakref__",
        "_last",
        "_phase",
        "_ranks",
        "_rows",
        "_seconds",
        "clock",
        "fail",
        "recorder",
        "thread",
    )

    def __init__(
        self,
        recorder: Recorder,
        ranks: int,
        fail: Callable[[Exception], None],
        clock: Callable[[], float] = perf_counter,
    ):
        self.clock = clock
        self.fail = fail
        self.thread: StandstillThread | None = None
        """Says where this rank is when it makes no progress."""
        self._ranks = ranks
        self.recorder = recorder
        self._rows: list[tuple[int, int, list[float]]] = []
        self._seconds = [0.0] * 4
        self._phase = DATA
        self._last: float | None = None  # until the first update has ended

    def forward_begins(self) -> None:
        """The model is about to be called."""
        self._next(FORWARD, DATA if self._phase == UPDATE else self._phase)

    def backward_begins(self) -> None:
        """A backward pass is about to begin."""
        self._next(BACKWARD, self._phase)

    def after_backward(self) -> None:
        """It has ended, and with it the exchange of gradients that belongs to it."""
        self._next(UPDATE, BACKWARD)

    def _next(self, phase: int, ended: int) -> None:
        """Begin a phase; the time until now counts for the one that has ended."""
        if self._last is not None:
            now = self.clock()
            self._seconds[ended] += now - self._last
            self._last = now
        self._phase = phase

    def update_ends(self) -> None:
        """An optimizer has stepped: if a backward pass was before it, a step has ended."""
        if self._phase != UPDATE:  # another optimizer of the same step
            return
        now, last, seconds = self.clock(), self._last, self._seconds
        self._last, self._phase, self._seconds = now, DATA, [0.0] * 4
        recorder = self.recorder
        begun = recorder.last_begun
        if last is None or begun is None or begun.mode not in TRAINING or recorder.due != NO_MEMBERS:
            return
        seconds[UPDATE] += now - last
        if len(self._rows) >= MOST_KEPT:
            del self._rows[: MOST_KEPT // 2]
        self._rows.append((begun.mode_step + recorder.passed, recorder.step, seconds))

    def progress(self) -> Progress | None:
        """Return where the training thread is, None if the run is closed; called on another thread."""
        if self.recorder.state is State.CLOSED:
            return None
        step = self.recorder.step
        update = self._seconds if self._last is not None else step
        return Progress(step, PHASES[self._phase], self._last, update)

    def close(self) -> None:
        """Let nobody look any more where this rank stands."""
        if self.thread is not None:
            self.thread.stop()

    def taken(self, until: int) -> list[list[float]]:
        """Return the rows of whole windows before this step of the training; their times are forgotten.

        Of many ranks, these are kept until the next step at which all of them save digests.
        """
        if self._ranks > FREQUENT_RANKS and due_before(until - self.recorder.first_step) % 10:
            return []
        windows: dict[int, list[tuple[int, int, list[float]]]] = {}
        for row in self._rows:
            windows.setdefault(row[0] // WINDOW, []).append(row)
        kept = windows.pop(until // WINDOW, [])
        self._rows = kept
        return [
            window_row(WINDOW * number, rows[0][1] - rows[0][0], [seconds for _, _, seconds in rows])
            for number, rows in sorted(windows.items())
        ]


def phases_of(recorder: Recorder, fail: Callable[[Exception], None]) -> Phases | None:
    """Measure the steps of this rank from now on, for the recorder to note; None if it is the only one."""
    ranks = rank_and_size()[1]
    if ranks < 2:
        return None
    phases = Phases(recorder, ranks, fail)
    PROCESS.add(phases)
    recorder.times = phases.taken
    limit = stall_seconds()
    if limit:
        phases.thread = StandstillThread(_standstill_of(phases, limit), limit)
    return phases


def _standstill_of(phases: Phases, limit: float) -> Standstill:
    """Return what looks where this thread is. It keeps neither the phases nor their hook alive."""
    known = ref(phases)
    has_begun = False

    def progress() -> Progress | None:
        nonlocal has_begun
        kept = known()
        if kept is not None and not has_begun:
            has_begun = True
            end_earlier_stall(kept.recorder)
        return None if kept is None else kept.progress()

    def write(stall: Any) -> None:
        kept = known()
        if kept is not None:
            write_stall(kept.recorder, stall)

    return Standstill(progress, write, limit, thread=threading.get_ident(), clock=phases.clock)
