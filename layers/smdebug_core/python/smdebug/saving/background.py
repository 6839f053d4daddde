"""Writing behind the training: steps wait in a bounded queue, and nothing that goes wrong comes back.

    recording = StepRecording(step=5, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=5)
    recording.write_tensor("loss", loss)
    writer.submit(recording.job(writer.storage))

Event files are written side by side, as many as the storage is worth; index files one by one in the order
of submission, each after its event file. A step that cannot be written is left out, and the next is tried.
When nothing has succeeded for `patience` seconds the writer has failed: it says so once, loudly, still
tries what it holds, and takes nothing more. It never raises, and never holds the training up for longer
than that.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.dtypes import dtype_number
from smdebug.files.events import as_saved_array
from smdebug.files.framing import Checksum
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.step_writer import MetaExtras, StepWriter
from smdebug.storage.base import Buffer, Sink, Storage

MAX_BYTES = 256 << 20
MAX_JOBS = 256
PATIENCE = 30.0

_IDLE_FOR = 10.0  # seconds after which a thread without work ends; the next step starts another
_LOOK_AGAIN = 0.5  # seconds between looks at whether a thread has died
_STALLS_ALLOWED = 2
_NAMED = 10  # lost steps in a message


class StepJob(NamedTuple):
    """A step that is ready to be written, in the two halves that have different orders."""

    step: int
    size: int
    """How many bytes it keeps in memory until it is written."""
    write: Callable[[], object]
    """Write the event file. Steps do this side by side."""
    commit: Callable[[], object]
    """Write the index file. Steps do this in order."""
    abort: Callable[[], object]
    """Leave no trace; called after either half failed."""


class Outcome(NamedTuple):
    """What became of the steps that were submitted."""

    written: int
    lost: tuple[int, ...]
    """Steps that were taken, and could not be written."""
    refused: int
    """How many were not even taken, because writing had failed already."""
    reason: str | None
    """Why, if anything was lost or refused: what the first failure said."""


class BackgroundWriter:
    """Runs step jobs on threads of its own, started with the first of them.

    `submit` waits while the queue is full and the storage makes progress; when there has been none for
    `patience` seconds it returns False, and from then on at once. Jobs should use `self.storage`, which
    is the given one, and notices progress inside a job. In a forked child the writer is silent: it takes
    nothing, and leaves to the parent what the parent queued.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        max_bytes: int = MAX_BYTES,
        max_jobs: int = MAX_JOBS,
        patience: float = PATIENCE,
        on_failure: Callable[[Outcome], object] | None = None,
    ):
        self.storage = cast(Storage, _Watched(storage, self._note_movement))
        self._place = storage.location
        self._threads_wanted = max(1, storage.concurrency)
        self._max_bytes = max_bytes
        self._max_jobs = max_jobs
        self._patience = patience
        self._on_failure = on_failure
        self._process = os.getpid()

        self._changed = threading.Condition()
        self._order: deque[_Entry] = deque()  # all that are not settled, in the order of submission
        self._waiting: deque[_Entry] = deque()  # those of them whose event file nobody has begun
        self._bytes = 0
        self._hands: dict[threading.Thread, _Entry | None] = {}  # what each thread is at
        self._moved_at = 0.0
        self._failing_since: float | None = None
        self._stalls = 0
        self._closed = False
        self._failed = False
        self._said_error = False
        self._reason: str | None = None
        self._written = 0
        self._lost: list[int] = []
        self._refused = 0
        self._last_committed: int | None = None
        self._to_say: deque[Callable[[], object]] = deque()

    @property
    def failed(self) -> bool:
        """Has it gone quiet?"""
        return self._failed

    @property
    def last_committed(self) -> int | None:
        """The last step whose index file was written."""
        return self._last_committed

    @property
    def outcome(self) -> Outcome:
        """What has become of the steps so far."""
        if self._is_child():
            return Outcome(0, (), 0, None)
        with self._changed:
            return self._outcome()

    def submit(self, job: StepJob) -> bool:
        """Take a step to be written. False if it is not: writing has failed, or was closed."""
        if self._is_child():
            return False
        with self._changed:
            while (taken := self._take_in(job)) is None:
                self._changed.wait(self._until_next_look(None))
        self._speak()
        return taken

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all that was submitted is written or lost. False if `timeout` seconds were too few."""
        if self._is_child():
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._order and not _is_past(deadline):
                self._wait_for_threads(deadline)
            done = not self._order
        self._speak()
        return done

    def close(self, timeout: float | None = None) -> Outcome:
        """Write what can still be written, and stop. Returns what became of everything.

        It waits for as long as there is progress, and at most `timeout` seconds if that is given; what
        is not written by then is lost, and said to be. Closing twice changes nothing.
        """
        if self._is_child():
            return self.outcome
        drained = self.drain(timeout)
        with self._changed:
            if not drained:
                self._lose_all(f"closing was given {timeout} s, and they were not enough")
            self._closed = True
            self._changed.notify_all()
            idle = [thread for thread, entry in self._hands.items() if entry is None]
            outcome = self._outcome()
            if outcome.lost or outcome.refused:
                self._say_what_was_lost(outcome)
        for thread in idle:
            thread.join(_LOOK_AGAIN)
        self._speak()
        return outcome

    # Taking in, with the lock held

    def _take_in(self, job: StepJob) -> bool | None:
        """Was the job taken? None if there is no room yet."""
        self._look_after_threads()
        if self._failed or self._closed:
            self._refused += not self._closed
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
        self._look_after_threads()
        if self._hands or not self._work_here():
            self._changed.wait(self._until_next_look(deadline))

    def _work_here(self) -> bool:
        """The interpreter is ending and starts no threads any more: the caller is the thread."""
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

    def _look_after_threads(self) -> None:
        """Notice threads that were killed, and that nothing moves any more."""
        for thread, entry in [*self._hands.items()]:
            if (
                not thread.is_alive()
                and self._hands.pop(thread, None) is not None
                and entry is not None
            ):
                self._settle(entry, RuntimeError("the thread that wrote it was killed"))
        if self._order and time.monotonic() - self._moved_at >= self._patience:
            self._stalls += 1
            reason = f"nothing has moved for {self._patience:g} s"
            self._fail(reason)
            if self._stalls >= _STALLS_ALLOWED:
                self._lose_all(reason)
            # Those threads may never come back. What they hold is given up; others try the rest.
            for entry in [*filter(None, self._hands.values())]:
                self._lose(entry, reason)
            self._hands = {thread: None for thread, held in self._hands.items() if held is None}
            self._note_movement()
            self._changed.notify_all()
        self._start_thread()

    def _until_next_look(self, deadline: float | None) -> float:
        now = time.monotonic()
        until = min(_LOOK_AGAIN, self._moved_at + self._patience - now)
        if deadline is not None:
            until = min(until, deadline - now)
        return max(until, 0.001)

    # Threads

    def _start_thread(self) -> None:
        idle = sum(entry is None for entry in self._hands.values())
        to_do = len(self._waiting) + bool(self._order and self._order[0].ready)
        if len(self._hands) >= self._threads_wanted or idle >= to_do:
            return
        thread = threading.Thread(target=self._run, name="smdebug-writer", daemon=True)
        self._hands[thread] = None
        try:
            thread.start()
        except (
            RuntimeError,
            MemoryError,
        ):  # at the end of the interpreter, or at a limit of the system
            del self._hands[thread]

    def _run(self) -> None:
        try:
            while self._do_next():
                self._speak()
        except BaseException as error:  # noqa: BLE001 - somebody kills this thread; another one goes on
            get_logger().debug("a writer thread ends: %r", error)

    def _do_next(self) -> bool:
        me = threading.current_thread()
        with self._changed:
            idle_since = time.monotonic()
            while True:
                if me not in self._hands:
                    return False  # given up on
                entry, half = self._next()
                if entry is not None:
                    break
                if self._closed or time.monotonic() - idle_since > _IDLE_FOR:
                    del self._hands[me]
                    return False
                self._changed.wait(_IDLE_FOR)
            self._hands[me] = entry
        failure = _attempt(half)
        with self._changed:
            if me in self._hands:
                self._hands[me] = None
            self._settle(entry, failure)
        if failure is not None or entry.given_up:
            _attempt(entry.job.abort)
        return True

    def _next(self) -> tuple[_Entry | None, Callable[[], object]]:
        """What to do now: commit the first step if its event file is there, else begin another one."""
        if self._order and self._order[0].ready:
            entry = self._order[0]
            entry.ready = False
            entry.committing = True
            return entry, entry.job.commit
        if self._waiting:
            entry = self._waiting.popleft()
            return entry, entry.job.write
        return None, _nothing

    # What became of it, with the lock held

    def _settle(self, entry: _Entry, failure: BaseException | None) -> None:
        self._note_movement()
        if failure is not None:
            self._lose(entry, _said_by(failure))
        elif not entry.committing:
            entry.ready = True
        else:
            self._written += 1
            self._last_committed = entry.job.step
            if entry.given_up:  # it came back after all
                self._lost.remove(entry.job.step)
            self._forget(entry)
        if failure is None:
            self._failing_since = None
        self._changed.notify_all()

    def _lose(self, entry: _Entry, reason: str) -> None:
        if entry.given_up:
            return
        entry.given_up = True
        self._forget(entry)
        if self._reason is None:
            self._reason = reason
            self._say(
                "warning",
                "smdebug could not write step %s to %s: %s. It goes on with the next.",
                *(entry.job.step, self._place, reason),
            )
        self._lost.append(entry.job.step)
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= self._patience:
            self._fail(reason)

    def _lose_all(self, reason: str) -> None:
        for entry in [*self._order]:
            self._lose(entry, reason)

    def _forget(self, entry: _Entry) -> None:
        if entry in self._order:
            self._order.remove(entry)
            self._bytes -= entry.job.size
        if entry in self._waiting:
            self._waiting.remove(entry)

    def _fail(self, reason: str) -> None:
        if self._failed:
            return
        self._failed = True
        self._said_error = True
        self._reason = self._reason or reason
        outcome = self._outcome()
        self._say(
            "error",
            "smdebug stops saving to %s: %s. Written so far: %d steps; lost: %s. The training goes on; "
            "the %d steps that wait are still tried, and nothing after them is saved.",
            *(self._place, reason, outcome.written, _listed(outcome.lost), len(self._order)),
        )
        if (tell := self._on_failure) is not None:
            self._to_say.append(lambda: tell(outcome))

    def _say_what_was_lost(self, outcome: Outcome) -> None:
        self._say(
            "warning" if self._said_error else "error",
            "smdebug wrote %d steps to %s. Lost: %s; not even tried: %d. The reason was: %s",
            *(outcome.written, self._place, _listed(outcome.lost), outcome.refused, outcome.reason),
        )
        self._said_error = True

    def _outcome(self) -> Outcome:
        return Outcome(self._written, tuple(self._lost), self._refused, self._reason)

    def _note_movement(self) -> None:
        self._moved_at = time.monotonic()

    def _is_child(self) -> bool:
        # The lock may have been held by a thread that is not in the child: it is not touched there.
        return os.getpid() != self._process

    # Logging and callbacks happen without the lock: they may take long, or ask us something.

    def _say(self, level: str, message: str, *details: object) -> None:
        self._to_say.append(lambda: getattr(get_logger(), level)(message, *details))

    def _speak(self) -> None:
        while self._to_say:
            try:
                say = self._to_say.popleft()
            except IndexError:
                return  # another thread was faster
            _attempt(say)


class StepRecording:
    """The tensors of one step, copied, until they are written behind the training.

    Offers what `StepWriter` offers; `job` turns it into what `BackgroundWriter.submit` takes.
    """

    def __init__(
        self,
        *,
        step: int,
        worker: str,
        mode: ModeKeys,
        mode_step: int,
        checksum: Checksum = "constant",
        meta_extras: MetaExtras | None = None,
    ):
        self._step = step
        self._worker = worker
        self._mode = mode
        self._mode_step = mode_step
        self._checksum: Checksum = checksum
        self._meta_extras = meta_extras
        self._calls: deque[Callable[[StepWriter], object]] = deque()
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes it holds."""
        return self._size

    def write_tensor(
        self,
        name: str,
        array: Any,
        wall_time: float | None = None,
        mode: ModeKeys | None = None,
        mode_step: int | None = None,
        *,
        owned: bool = False,
    ) -> None:
        """Record a value. It is copied, unless `owned` promises that nobody will change it."""
        saved = as_saved_array(array)
        dtype_number(
            saved.dtype
        )  # what cannot be saved is refused here, where the caller can see it
        if not owned and saved is array:
            saved = np.array(saved)
        moment = time.time() if wall_time is None else wall_time
        self._size += saved.nbytes + len(name)
        self._calls.append(lambda writer: writer.write_tensor(name, saved, moment, mode, mode_step))

    def write_shape(
        self, name: str, shape: Sequence[int], original_name: str | None = None
    ) -> None:
        """Record a shape without a value."""
        shape = tuple(shape)
        self._size += len(name)
        self._calls.append(lambda writer: writer.write_shape(name, shape, original_name))

    def job(self, storage: Storage) -> StepJob:
        """What is to be done to write it to `storage`. It can be done once."""
        writer = StepWriter(
            storage,
            step=self._step,
            worker=self._worker,
            mode=self._mode,
            mode_step=self._mode_step,
            checksum=self._checksum,
            meta_extras=self._meta_extras,
        )

        def write() -> None:
            while self._calls:  # each copy is let go as soon as it is written
                try:
                    self._calls.popleft()(writer)
                except (SMDebugTypeError, SMDebugValueError) as error:
                    get_logger().warning("A tensor of step %d is left out: %s", self._step, error)
            writer.commit_events()

        return StepJob(self._step, self._size, write, writer.commit_index, writer.abort)


class _Entry:
    """A job on its way."""

    __slots__ = ("committing", "given_up", "job", "ready")

    def __init__(self, job: StepJob):
        self.job = job
        self.ready = False  # its event file is there
        self.committing = False
        self.given_up = False


class _Watched:
    """A storage that tells when something was written to it."""

    def __init__(self, storage: Storage, note: Callable[[], None]):
        self._storage = storage
        self._note = note

        # From Python 3.12 on `isinstance(…, Storage)` looks past `__getattr__`: what passes through is named.
        self.read, self.view = storage.read, storage.view
        self.size, self.exists, self.list = storage.size, storage.exists, storage.list
        self.claim, self.delete = storage.claim, storage.delete

    def __repr__(self) -> str:
        return repr(self._storage)

    @property
    def location(self) -> str:
        return self._storage.location

    @property
    def concurrency(self) -> int:
        return self._storage.concurrency

    def write(self, key: str, data: Buffer) -> None:
        self._storage.write(key, data)
        self._note()

    def create(self, key: str) -> Sink:
        sink = self._storage.create(key)
        self._note()
        return _WatchedSink(sink, self._note)


class _WatchedSink:
    def __init__(self, sink: Sink, note: Callable[[], None]):
        self._sink = sink
        self._note = note
        self.abort = sink.abort

    def write(self, pieces: Sequence[Buffer]) -> None:
        self._sink.write(pieces)
        self._note()

    def commit(self) -> None:
        self._sink.commit()
        self._note()


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


def _said_by(failure: BaseException) -> str:
    return (
        str(failure)
        if isinstance(failure, RuntimeError)
        else f"{type(failure).__name__}: {failure}"
    )


def _listed(steps: Sequence[int]) -> str:
    if not steps:
        return "none"
    more = f" and {len(steps) - _NAMED} more" if len(steps) > _NAMED else ""
    return f"{len(steps)} ({', '.join(map(str, steps[:_NAMED]))}{more})"
