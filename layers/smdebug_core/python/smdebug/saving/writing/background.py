"""Writing in the background: steps wait in a bounded queue, and no failure reaches the training.

    recording = StepRecording(step=5, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=5)
    recording.write_tensor("loss", loss)
    writer.submit(recording.job(writer.storage))

Event files are written concurrently, as many as the storage allows; index files one by one
in the order of submission, each after its event file. A step that cannot be written is left out, and the next
is tried. When nothing has succeeded for `patience` seconds the writer has failed: it logs one error, still
tries the steps in its queue, and accepts no more. It never raises, and never delays the training for longer
than that and half a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import cast
from weakref import WeakSet

from smdebug.exceptions import StorageUnavailable
from smdebug.files.collections_file import LostSteps
from smdebug.logger import get_logger
from smdebug.saving.writing.step_recording import StepJob
from smdebug.saving.writing.watched_storage import WatchedStorage
from smdebug.saving.writing.write_outcome import WriteLog, WriteOutcome, reason_of
from smdebug.storage.base import Storage

MAX_BYTES = 256 << 20
MAX_JOBS = 256
PATIENCE = 30.0

_PAUSE = 0.05  # seconds that a thread waits at most for `resume`
_IDLE_FOR = 10.0  # seconds after which a thread without work ends; the next step starts another
_CHECK_EVERY = 0.5  # seconds between checks for threads that died or hang
_STALLS_ALLOWED = 2


class BackgroundWriter:
    """Runs step jobs on threads of its own, started with the first of them.

    `submit` waits while the queue is full and the storage makes progress; when there has been none for
    `patience` seconds it returns False, and from then on at once. Jobs should use `self.storage`, which
    is the given one, notices progress inside a job, and refuses a job that was given up. In a forked child
    the writer does nothing: it accepts no steps, and leaves the queued ones to the parent. The class is long
    because one lock guards all that it knows.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        max_bytes: int = MAX_BYTES,
        max_jobs: int = MAX_JOBS,
        patience: float = PATIENCE,
        on_failure: Callable[[WriteOutcome], object] | None = None,
    ):
        self._watched = WatchedStorage(storage, self._note_movement, self.refuse_given_up)
        self.storage = cast(Storage, self._watched)
        self._log = WriteLog(storage.location, on_failure)
        self._max_threads = max(1, storage.concurrency)
        self._max_bytes = max_bytes
        self._max_jobs = max_jobs
        self._patience = patience
        self._process = os.getpid()

        self._may_begin = threading.Event()
        self._may_begin.set()
        self._changed = threading.Condition()
        self._order: deque[_Entry] = deque()  # all that are not settled, in the order of submission
        self._waiting: deque[_Entry] = deque()  # those of them that no thread has begun
        self._bytes = 0
        self._threads: dict[threading.Thread, _Entry | None] = {}  # with the work of each
        self._given_up: WeakSet[threading.Thread] = WeakSet()  # they hang, and may return at any time
        self._moved_at = 0.0
        self._suspected_at: float | None = None  # when it was noticed that nothing moves
        self._failing_since: float | None = None
        self._stalls = 0
        self._closed = False

    @property
    def failed(self) -> bool:
        """Whether writing was given up."""
        return self._log.failed

    @property
    def bytes_written(self) -> int:
        """The number of bytes written so far."""
        return self._watched.bytes_written

    @property
    def last_committed(self) -> int | None:
        """The last step whose index file was written."""
        return self._log.last_committed

    @property
    def outcome(self) -> WriteOutcome:
        """The fate of the steps so far."""
        if self._is_child():
            return WriteOutcome(0, (), 0, None)
        with self._changed:
            return self._log.outcome

    @property
    def lost_steps(self) -> LostSteps:
        """The steps that were not written so far, as the files of the run say it."""
        with self._changed:
            return self._log.lost_steps

    @property
    def is_given_up(self) -> bool:
        """Whether the work of the calling thread was given up, so that it must have no effect any more."""
        thread = threading.current_thread()
        entry = self._threads.get(thread)
        return thread in self._given_up or (entry is not None and entry.given_up)

    def refuse_given_up(self) -> None:
        """Raise an error if the work of the calling thread was given up."""
        if self.is_given_up:
            raise StorageUnavailable(self._watched.location, "this came too late: the step was given up")

    def submit(self, job: StepJob) -> bool:
        """Take a step to be written; return False if writing has failed or was closed."""
        if self._is_child():
            return False
        with self._changed:
            while (taken := self._take_in(job)) is None:
                self._changed.wait(self._until_next_check(None))
        self._log.speak()
        return taken

    def was_lost(self, step: int) -> bool:
        """Return whether the step could not be written."""
        with self._changed:
            return step in self._log.outcome.lost

    def pause(self) -> None:
        """Begin nothing until `resume`, though after 50 ms at most.

        A thread that writes a small step needs the interpreter for a millisecond. A training that measures
        a step would have to wait for it in between.
        """
        self._may_begin.clear()

    def resume(self) -> None:
        """Go on."""
        self._may_begin.set()

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted is written or lost; return whether `timeout` was enough."""
        if self._is_child():
            return True
        self.resume()
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._order and not _is_past(deadline):
                self._wait_for_threads(deadline)
            done = not self._order
        self._log.speak()
        return done

    def close(self, timeout: float | None = None) -> WriteOutcome:
        """Write what can still be written, stop, and return the fate of every step.

        This waits for as long as there is progress, and at most `timeout` seconds if that is given; what
        is not written by then is logged as lost. Closing twice changes nothing.
        """
        if self._is_child():
            return self.outcome
        drained = self.drain(timeout)
        with self._changed:
            if not drained:
                self._lose_all(f"closing took longer than the {timeout} s it was given")
            self._closed = True
            self._changed.notify_all()
            idle = [thread for thread, entry in self._threads.items() if entry is None]
            outcome = self._log.summarize()
        for thread in idle:
            thread.join(_CHECK_EVERY)
        self._log.speak()
        return outcome

    # Taking in, with the lock held

    def _take_in(self, job: StepJob) -> bool | None:
        """Return whether the job was taken; None if there is no room yet."""
        if self._order:  # else none is busy
            self._check_threads()
        if self._closed:
            return False
        if self.failed:
            self._log.refused(job.step)
            return False
        full = len(self._order) >= self._max_jobs or self._bytes + job.size > self._max_bytes
        if full and self._order:  # a step larger than the queue goes alone
            return None
        if not self._order:
            self._note_movement()
        entry = _Entry(job)
        self._order.append(entry)
        self._waiting.append(entry)
        self._bytes += job.size
        self._start_thread()
        self._changed.notify_all()
        return True

    def _wait_for_threads(self, deadline: float | None) -> None:
        self._check_threads()
        if self._threads or not self._work_here():
            self._changed.wait(self._until_next_check(deadline))

    def _work_here(self) -> bool:
        """Do a piece of work in this thread: the interpreter is shutting down and starts no more threads."""
        entry, half = self._next()
        if entry is None:
            return not self._order
        self._changed.release()
        try:
            failure = _attempt(half)
            if failure is not None:
                _attempt(entry.job.abort)
        finally:
            self._changed.acquire()
        self._settle(entry, failure)
        return True

    def _check_threads(self) -> None:
        """Detect threads that were killed, and writing that makes no progress."""
        for thread, entry in [*self._threads.items()]:
            if not thread.is_alive() and self._threads.pop(thread, None) is not None and entry is not None:
                self._settle(entry, RuntimeError("the thread that wrote it was killed"))
        if self._order and self._has_stalled():
            self._stalls += 1
            reason = f"no progress for {self._patience:g} s"
            self._log.fail(reason, len(self._order))
            if self._stalls >= _STALLS_ALLOWED:
                self._lose_all(reason)
            # Those threads may never come back. What they hold is given up; others try the rest.
            for thread, entry in [*self._threads.items()]:
                if entry is not None:
                    self._given_up.add(thread)
                    self._lose(entry, reason)
            self._threads = {thread: None for thread, held in self._threads.items() if held is None}
            self._note_movement()
            self._changed.notify_all()
        self._start_thread()

    def _has_stalled(self) -> bool:
        """Return whether nothing moves. If the process stood still, its threads get a moment to go on."""
        now = time.monotonic()
        if now - self._moved_at < self._patience:
            return False
        if self._suspected_at is None:
            self._suspected_at = now
        return now - self._suspected_at >= _CHECK_EVERY

    def _until_next_check(self, deadline: float | None) -> float:
        now = time.monotonic()
        until = _CHECK_EVERY
        if self._suspected_at is None:
            until = min(until, self._moved_at + self._patience - now)
        if deadline is not None:
            until = min(until, deadline - now)
        return max(until, 0.001)

    # Threads

    def _start_thread(self) -> None:
        idle = sum(entry is None for entry in self._threads.values())
        to_do = len(self._waiting) + bool(self._order and self._order[0].ready)
        if len(self._threads) >= self._max_threads or idle >= to_do:
            return
        thread = threading.Thread(target=self._run, name="smdebug-writer", daemon=True)
        self._threads[thread] = None
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # at interpreter shutdown, or at a limit of the system
            del self._threads[thread]

    def _run(self) -> None:
        try:
            while self._do_next():
                self._log.speak()
        except BaseException as error:  # noqa: BLE001 - this thread was killed; another goes on
            get_logger().debug("a writer thread ends: %r", error)

    def _do_next(self) -> bool:
        me = threading.current_thread()
        with self._changed:
            idle_since = time.monotonic()
            while True:
                if me not in self._threads:
                    return False  # given up on
                entry, half = self._next()
                if entry is not None:
                    break
                if self._closed or time.monotonic() - idle_since > _IDLE_FOR:
                    del self._threads[me]
                    return False
                self._changed.wait(_IDLE_FOR)
            self._threads[me] = entry
        self._may_begin.wait(_PAUSE)
        failure = _attempt(half)
        with self._changed:
            if me in self._threads:
                self._threads[me] = None
            self._settle(entry, failure)
        if entry.given_up:
            _attempt(entry.job.abort)
        return True

    def _next(self) -> tuple[_Entry | None, Callable[[], object]]:
        """Return what to do now: commit the first step if its event file is there, else begin another one."""
        if self._order and self._order[0].ready:
            entry = self._order[0]
            entry.ready = False
            entry.committing = True
            return entry, entry.job.commit
        if self._waiting:
            entry = self._waiting.popleft()
            return entry, entry.job.write
        return None, _nothing

    # The outcome of a job, with the lock held

    def _settle(self, entry: _Entry, failure: BaseException | None) -> None:
        self._note_movement()
        if failure is not None:
            self._lose(entry, reason_of(failure))
        elif not entry.committing:
            entry.ready = True
        else:
            self._log.committed(entry.job, was_lost=entry.given_up)
            self._forget(entry)
        if failure is None:
            self._failing_since = None
        self._changed.notify_all()

    def _lose(self, entry: _Entry, reason: str) -> None:
        if entry.given_up:
            return
        entry.given_up = True
        self._forget(entry)
        self._log.lost(entry.job.step, reason)
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= self._patience:
            self._log.fail(reason, len(self._order))

    def _lose_all(self, reason: str) -> None:
        for entry in [*self._order]:
            self._lose(entry, reason)

    def _forget(self, entry: _Entry) -> None:
        if entry in self._order:
            self._order.remove(entry)
            self._bytes -= entry.job.size
        if entry in self._waiting:
            self._waiting.remove(entry)

    def _note_movement(self) -> None:
        self._moved_at = time.monotonic()
        self._suspected_at = None

    def _is_child(self) -> bool:
        # The lock may have been held by a thread that is not in the child: it is not touched there.
        return os.getpid() != self._process


class _Entry:
    """A job in the queue."""

    __slots__ = ("committing", "given_up", "job", "ready")

    def __init__(self, job: StepJob):
        self.job = job
        self.ready = False  # its event file is there
        self.committing = False
        self.given_up = False


def _attempt(act: Callable[[], object]) -> BaseException | None:
    try:
        act()
    except BaseException as error:  # noqa: BLE001 - a debugger must not stop the training it watches
        return error
    return None


def _nothing() -> None:
    pass


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
