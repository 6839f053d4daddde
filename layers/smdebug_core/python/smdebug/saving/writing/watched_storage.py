"""A storage that reports progress, and refuses work that was given up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from smdebug.storage.base import Buffer, Sink, Storage


class WatchedStorage:
    """A storage that calls `note` whenever something was written to it, and counts the bytes.

    `check` is called before each call that changes something, and raises if nothing may change any more.
    """

    def __init__(self, storage: Storage, note: Callable[[], None], check: Callable[[], None] = lambda: None):
        self.bytes_written = 0
        self._storage = storage
        self._note = note
        self._check = check
        self._counting = threading.Lock()

        # From Python 3.12 on `isinstance(…, Storage)` ignores `__getattr__`, so these are named.
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
        self._check()
        self._storage.write(key, data)
        self._count(memoryview(data).nbytes)

    def create(self, key: str) -> Sink:
        self._check()
        sink = self._storage.create(key)
        self._note()
        return WatchedSink(sink, self._note, self._count, self._check)

    def _count(self, size: int) -> None:
        with self._counting:
            self.bytes_written += size
        self._note()


class WatchedSink:
    """A sink that calls `note` whenever something was written to it."""

    def __init__(
        self,
        sink: Sink,
        note: Callable[[], None],
        count: Callable[[int], None],
        check: Callable[[], None],
    ):
        self._sink = sink
        self._note = note
        self._count = count
        self._check = check
        self.abort = sink.abort

    def write(self, pieces: Sequence[Buffer]) -> None:
        self._check()
        self._sink.write(pieces)
        self._count(sum(memoryview(piece).nbytes for piece in pieces))

    def commit(self) -> None:
        self._check()
        self._sink.commit()
        self._note()
