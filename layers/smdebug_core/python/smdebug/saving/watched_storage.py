"""A storage that reports progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smdebug.storage.base import Buffer, Sink, Storage


class WatchedStorage:
    """A storage that calls `note` whenever something was written to it."""

    def __init__(self, storage: Storage, note: Callable[[], None]):
        self._storage = storage
        self._note = note

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
        self._storage.write(key, data)
        self._note()

    def create(self, key: str) -> Sink:
        sink = self._storage.create(key)
        self._note()
        return WatchedSink(sink, self._note)


class WatchedSink:
    """A sink that calls `note` whenever something was written to it."""

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
