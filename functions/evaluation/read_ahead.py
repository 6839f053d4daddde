"""Reading the next steps of a backlog, and writing the last ones, while the rules evaluate a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from functions.evaluation.leased_group import LeasedGroup
from smdebug.service.records import StepRecord

FEWEST_STEPS = 2  # one is read while the rules read the values of the other
MOST_STEPS = 32
MOST_FILES = 64  # of each kind
MOST_BYTES = 16 << 20


class ReadAhead:
    """Requests of a backlog that are made beside the evaluation, by threads.

    Nothing is done beside the first step of an evaluation: often it is the only one, and what the rules
    read of it shows what they will read of the next ones. At the end, all has been done.
    """

    def __init__(self, leased: LeasedGroup, *, goes_on: bool):
        self._leased = leased
        self._goes_on = goes_on and not leased.deaths  # after a crash as little as possible is held
        self._threads: ThreadPoolExecutor | None = None
        self._coming: deque[tuple[int, Future[None]]] = deque()
        self._written: deque[Future[None]] = deque()
        self._steps = 0
        self._last = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, problem: object, trace: object) -> None:
        """Wait until nothing runs any more, and raise what a write has raised."""
        if self._threads is not None:
            for _, reading in self._coming:
                reading.cancel()
            self._threads.shutdown()
        while self._written and failed is None:
            self._written.popleft().result()

    def reach(self, steps: Sequence[StepRecord]) -> bool:
        """Read the index files of the next complete step, and on behind it; return whether there is one."""
        leased = self._leased
        due = [step for step in steps if step.step > leased.group.cursor and leased.record.is_whole(step)]
        if not due:
            return False
        while self._coming and self._coming[0][0] <= due[0].step:
            self._coming.popleft()[1].result()
        self._steps += 1
        if self._goes_on and self._steps > 1:
            self._read_on(due[1:])
        leased.bench.read_index_files(due[0])
        return True

    def write(self, write: Callable[[], None]) -> None:
        """Write something by the end of the walk."""
        if self._goes_on and self._steps > 1:
            self._written.append(self._begun(write))
        else:
            write()
        while len(self._written) > MOST_FILES:
            self._written.popleft().result()

    def _read_on(self, steps: Sequence[StepRecord]) -> None:
        for step in steps:
            if step.step <= self._last:
                continue
            window = max(FEWEST_STEPS, min(MOST_STEPS, MOST_FILES // len(step.complete_workers)))
            if len(self._coming) >= window:
                break
            read = self._leased.bench.reading_ahead(step, MOST_BYTES // window)
            self._coming.append((step.step, self._begun(read)))
            self._last = step.step

    def _begun(self, call: Callable[[], None]) -> Future[None]:
        if self._leased.bench.storage.concurrency <= 1:
            done: Future[None] = Future()
            call()
            done.set_result(None)
            return done
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_STEPS, "smdebug-ahead")
        return self._threads.submit(call)
