"""A storage that fails on demand, for tests of the code that uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from smdebug.exceptions import StorageUnavailable
from smdebug.storage.base import Buffer, ByteSpan, Sink, Storage
from smdebug.storage.memory import MemoryStorage

Fault = Callable[[], object]
"""Called instead of the storage; what it does not raise, goes on to the storage."""

FULL = StorageUnavailable("the faulty place", "the disk is full")


def failing(error: BaseException = FULL) -> Fault:
    """This call raises."""

    def fault() -> None:
        raise error

    return fault


class Blocking:
    """This call hangs until `release` is called."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._released = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self._released.wait()

    def release(self) -> None:
        self._released.set()


class Tear(Exception):
    """Raised by a fault: write half of it, and then fail."""


def tearing() -> None:
    """This write leaves half of its bytes behind, and raises."""
    raise Tear


class FaultyStorage:
    """A storage (in memory, unless another is given) with faults at chosen calls.

    `fault_at(number, call, key)` is asked before each call that changes something: `create`, `write`,
    `sink.write`, `sink.commit`, `sink.abort`, `claim`, `delete`; numbers count from 0. `calls` keeps them.
    """

    def __init__(
        self,
        fault_at: Callable[[int, str, str], Fault | None] = lambda number, call, key: None,
        storage: Storage | None = None,
        concurrency: int = 1,
    ):
        self.storage = MemoryStorage() if storage is None else storage
        self.fault_at = fault_at
        self.calls: list[tuple[str, str]] = []
        self._concurrency = concurrency
        self._lock = threading.Lock()

    @classmethod
    def at_call(cls, number: int, fault: Fault, **more: object) -> FaultyStorage:
        """One fault, at that call."""
        return cls(lambda at, call, key: fault if at == number else None, **more)

    @classmethod
    def from_call(cls, number: int, fault: Fault, **more: object) -> FaultyStorage:
        """The same fault at that call and all later ones."""
        return cls(lambda at, call, key: fault if at >= number else None, **more)

    @property
    def location(self) -> str:
        return self.storage.location

    @property
    def concurrency(self) -> int:
        return self._concurrency

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        return self.storage.read(key, span)

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        return self.storage.view(key, span)

    def size(self, key: str) -> int:
        return self.storage.size(key)

    def exists(self, key: str) -> bool:
        return self.storage.exists(key)

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        return self.storage.list(prefix, start_after)

    def write(self, key: str, data: Buffer) -> None:
        try:
            self.called("write", key)
        except Tear:
            raise FULL from None  # a torn write of a whole object is nothing at all
        self.storage.write(key, data)

    def create(self, key: str) -> Sink:
        self.called("create", key)
        return _FaultySink(self, self.storage.create(key), key)

    def claim(self, key: str) -> bool:
        self.called("claim", key)
        return self.storage.claim(key)

    def delete(self, key: str) -> None:
        self.called("delete", key)
        self.storage.delete(key)

    def called(self, call: str, key: str) -> None:
        with self._lock:
            number = len(self.calls)
            self.calls.append((call, key))
        fault = self.fault_at(number, call, key)
        if fault is not None:
            fault()


class _FaultySink:
    def __init__(self, faulty: FaultyStorage, sink: Sink, key: str):
        self._faulty = faulty
        self._sink = sink
        self._key = key

    def write(self, pieces: Sequence[Buffer]) -> None:
        try:
            self._faulty.called("sink.write", self._key)
        except Tear:
            self._sink.write(pieces[: len(pieces) // 2])
            raise FULL from None
        self._sink.write(pieces)

    def commit(self) -> None:
        self._faulty.called("sink.commit", self._key)
        self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()
        self._faulty.called("sink.abort", self._key)
