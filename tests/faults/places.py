"""The place of a run, with faults at chosen calls: of a folder on a disk, queries included."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from smdebug.exceptions import StorageUnavailable
from smdebug.storage.base import Buffer, ByteSpan, Sink
from smdebug.storage.folder import FolderStorage

Trouble = Callable[["TroubledFolder"], object]
"""Comes before a call; what it does not raise, goes on to the folder."""

LET_GO_AFTER = 30.0  # a test that hangs is a test that fails


class Torn(Exception):
    """Raised by a fault: write half of the data, fail, and leave the half in place."""


def fails(place: TroubledFolder) -> None:
    raise StorageUnavailable(place.location, "it fails")


def is_full(place: TroubledFolder) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def tears(place: TroubledFolder) -> None:
    raise Torn


def disappears(place: TroubledFolder) -> None:
    disappears_unnoticed(place)
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", place.location)


def disappears_unnoticed(place: TroubledFolder) -> None:
    place.was_removed = True
    shutil.rmtree(place.location, ignore_errors=True)


def dies(place: TroubledFolder) -> None:
    """End the calling thread: `SystemExit` does not propagate beyond it."""
    raise SystemExit


def is_slow(place: TroubledFolder) -> None:
    time.sleep(0.01)


def blocks(place: TroubledFolder) -> None:
    place.blocked += 1
    place.let_go.wait(LET_GO_AFTER)
    raise StorageUnavailable(place.location, "it was let go when nobody waited any more")


class TroubledFolder:
    """A folder, with a fault before the calls that `is_troubled` chooses by their number."""

    def __init__(
        self,
        folder: Path,
        trouble: Trouble = is_slow,
        is_troubled: Callable[[int], bool] = lambda number: False,
    ):
        self.folder = FolderStorage(folder)
        self.trouble = trouble
        self.is_troubled = is_troubled
        self.calls: list[str] = []
        self.blocked = 0
        self.was_removed = False
        self.let_go = threading.Event()
        self._lock = threading.Lock()

    @property
    def location(self) -> str:
        return self.folder.location

    @property
    def concurrency(self) -> int:
        return self.folder.concurrency

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        self.called(f"read {key}")
        return self.folder.read(key, span)

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        self.called(f"view {key}")
        return self.folder.view(key, span)

    def size(self, key: str) -> int:
        self.called(f"size {key}")
        return self.folder.size(key)

    def exists(self, key: str) -> bool:
        self.called(f"exists {key}")
        return self.folder.exists(key)

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        self.called(f"list {prefix}")
        return self.folder.list(prefix, start_after)

    def write(self, key: str, data: Buffer) -> None:
        try:
            self.called(f"write {key}")
        except Torn:
            self.folder.create(key).write([memoryview(data)[: len(data) // 2]])
            raise StorageUnavailable(self.location, "half of it was written") from None
        self.folder.write(key, data)

    def create(self, key: str) -> Sink:
        self.called(f"create {key}")
        return _TroubledSink(self, self.folder.create(key), key)

    def claim(self, key: str) -> bool:
        self.called(f"claim {key}")
        return self.folder.claim(key)

    def delete(self, key: str) -> None:
        self.called(f"delete {key}")
        self.folder.delete(key)

    def called(self, call: str) -> None:
        with self._lock:
            number = len(self.calls)
            self.calls.append(call)
        if not self.is_troubled(number):
            return
        try:
            self.trouble(self)
        except Torn:
            if call.split()[0] in ("write", "sink.write"):
                raise
            raise StorageUnavailable(self.location, "there is nothing to tear") from None


class _TroubledSink:
    def __init__(self, place: TroubledFolder, sink: Sink, key: str):
        self._place = place
        self._sink = sink
        self._key = key
        self._is_torn = False

    def write(self, pieces: Sequence[Buffer]) -> None:
        try:
            self._place.called(f"sink.write {self._key}")
        except Torn:
            whole = b"".join(pieces)
            self._sink.write([whole[: len(whole) // 2]])
            self._is_torn = True
            raise StorageUnavailable(self._place.location, "half of it was written") from None
        self._sink.write(pieces)

    def commit(self) -> None:
        self._place.called(f"sink.commit {self._key}")
        self._sink.commit()

    def abort(self) -> None:
        self._place.called(f"sink.abort {self._key}")
        if not self._is_torn:
            self._sink.abort()
