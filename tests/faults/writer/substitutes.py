"""What stands in for `threading`, `time` and the like in the modules that save, while a world runs."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from smdebug.logger import DuplicateLogFilter, get_logger
from smdebug.saving.ending import closing, other_workers
from smdebug.saving.place import claim, deadline, origin_writing, write_access, written_soon
from smdebug.saving.recording import late_tensors, open_step
from smdebug.saving.requests import control_file
from smdebug.saving.writing import background, step_recording, step_writer, watched_storage
from smdebug.storage import s3_upload
from tests.faults.writer.world import VirtualThread, here, world


class Lock:
    """A lock, which the thread that holds it may take again."""

    def __init__(self) -> None:
        self._owner: VirtualThread | None = None
        self._depth = 0

    def acquire(self) -> bool:
        me = here()
        if self._owner is not me:
            world().give_way()
            if self._owner is not None:
                world().block(lambda: self._owner is None, None)
            self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition(Lock):
    """A lock with news."""

    def __init__(self) -> None:
        super().__init__()
        self._news = 0

    def wait(self, timeout: float | None = None) -> bool:
        known, depth, me = self._news, self._depth, self._owner
        self._owner, self._depth = None, 0
        has_news = world().block(lambda: self._news != known, timeout)
        if self._owner is not None:
            world().block(lambda: self._owner is None, None)
        self._owner, self._depth = me, depth
        return has_news

    def notify_all(self) -> None:
        self._news += 1


class Event:
    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return world().block(lambda: self._is_set, timeout)


class Semaphore:
    def __init__(self, value: int = 1):
        self._value = value

    def acquire(self) -> bool:
        world().block(lambda: self._value > 0, None)
        self._value -= 1
        return True

    def release(self) -> None:
        self._value += 1


class SimpleQueue:
    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self) -> Any:
        world().block(lambda: bool(self._items), None)
        return self._items.popleft()


THREADING = SimpleNamespace(
    Thread=VirtualThread,
    Lock=Lock,
    RLock=Lock,
    Condition=Condition,
    Event=Event,
    Semaphore=Semaphore,
    current_thread=here,
)
TIME = SimpleNamespace(
    time=lambda: world().clock,
    monotonic=lambda: world().clock,
    perf_counter=lambda: world().clock,
    sleep=lambda seconds: world().sleep(seconds),
)
ATEXIT = SimpleNamespace(
    register=lambda end: here().process.at_exit.append(end),
    unregister=lambda end: end in here().process.at_exit and here().process.at_exit.remove(end),
)


class _Savers:
    """The hooks that save, of the process that asks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(here().process.savers, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(here().process.savers)

    def __setitem__(self, key: Any, value: Any) -> None:
        here().process.savers[key] = value

    def __delitem__(self, key: Any) -> None:
        del here().process.savers[key]


class _ProcessEnd:
    """A process that ends well."""

    def is_good(self) -> bool:
        return True

    def leave(self) -> None:
        pass


class _ProcessNumbers:
    """`os` for the claim: numbers of simulated processes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def getpid(self) -> int:
        return here().process.pid

    def kill(self, pid: int, _signal: int) -> None:
        if not any(process.pid == pid and not process.is_gone for process in world().processes):
            raise ProcessLookupError


class _Log(logging.Handler):
    """Gives each message to the process that logs it."""

    def emit(self, record: logging.LogRecord) -> None:
        process = here().process
        if not process.is_gone:
            process.log.append((world().clock, record.levelno, record.getMessage()))
            if record.levelno > logging.INFO:
                process.world.note(process, "log:", record.getMessage())


_THREADED = (background, deadline, written_soon, control_file, watched_storage, s3_upload)
_TIMED = (
    background,
    claim,
    other_workers,
    control_file,
    late_tensors,
    open_step,
    step_recording,
    step_writer,
)


@contextmanager
def substituted() -> Iterator[None]:
    """Put the substitutes in place."""
    patches: list[Any] = [mock.patch.object(module, "threading", THREADING) for module in _THREADED]
    patches += [mock.patch.object(module, "time", TIME) for module in _TIMED]
    patches += [
        mock.patch.object(s3_upload, "queue", SimpleNamespace(SimpleQueue=SimpleQueue)),
        mock.patch.object(closing, "atexit", ATEXIT),
        mock.patch.object(closing, "ProcessEnd", _ProcessEnd),
        mock.patch.object(write_access, "_savers", _Savers()),
        mock.patch.object(claim, "os", _ProcessNumbers()),
        mock.patch.object(claim, "_birth_of", lambda pid: f"born as {pid}"),
        mock.patch.object(origin_writing, "git_state", return_value=origin_writing.GitState()),
    ]
    with _logging_to_processes():
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in reversed(patches):
                patch.stop()


@contextmanager
def _logging_to_processes() -> Iterator[None]:
    logger, log = get_logger(), _Log()
    before = logger.handlers, logger.filters, logger.propagate, logger.level
    logger.handlers, logger.propagate = [log], False
    logger.setLevel(logging.INFO)
    logger.filters = [each for each in logger.filters if not isinstance(each, DuplicateLogFilter)]
    try:
        yield
    finally:
        logger.handlers, logger.filters, logger.propagate = before[:3]
        logger.setLevel(before[3])
