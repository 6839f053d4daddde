"""The bytes of event files, asked for as seldom as possible, and only so many of them kept.

A small file comes whole at the first touch: the tensors of one step are mostly read together. Of a
larger one the first touch brings the record alone, and only a second touch that follows while the
file would still have been kept brings the rest. So reading all of a step costs one or two requests,
and reading one tensor over a long run never drags whole files along.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from smdebug.storage import Buffer, ByteSpan, Storage

KEPT = 64 << 20
SMALL_FILE = 1 << 20
# From here on a value is not copied out of the record but is a view of it, so it needs bytes of its own.
LARGE_RECORD = 32 << 10


class EventFiles:
    """What was read from the event files of one run, up to `budget` bytes; safe to share by threads."""

    def __init__(self, storage: Storage, budget: int = KEPT):
        self._storage = storage
        self._budget = budget
        self._requests_are_dear = storage.concurrency > 1
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, memoryview] = OrderedDict()
        self._kept_bytes = 0
        # Files touched once, as if they were kept: those that fall out would have been dropped by now.
        self._touched: OrderedDict[str, int] = OrderedDict()
        self._touched_bytes = 0
        self._dropped: set[str] = set()

    def record(self, key: str, start: int, length: int, end: int) -> Buffer:
        """One record of the file, whose last record ends at `end`; fewer bytes where the file is shorter.

        A large record is the caller's own, to keep and to change; a small one may be shared.
        """
        whole = self._kept.get(key)
        if whole is None:
            return self._fetch(key, start, length, end)
        if 2 * self._kept_bytes > self._budget:
            self._use_again(key)
        if length >= LARGE_RECORD:
            return self._own(key, whole, start, length)
        return whole[start : start + length]

    def forget(self) -> None:
        """Drop all bytes."""
        with self._lock:
            self._kept.clear()
            self._touched.clear()
            self._kept_bytes = self._touched_bytes = 0

    def _fetch(self, key: str, start: int, length: int, end: int) -> Buffer:
        if not self._is_worth_keeping(key, length, end):
            return self._storage.view(key, ByteSpan(start, start + length))
        whole = memoryview(self._storage.read(key, ByteSpan(0, end)))
        self._keep(key, whole)
        if length >= LARGE_RECORD:
            return self._own(key, whole, start, length)
        return whole[start : start + length]

    def _own(self, key: str, whole: memoryview, start: int, length: int) -> Buffer:
        if self._requests_are_dear:
            return memoryview(bytearray(whole[start : start + length]))
        return self._storage.view(key, ByteSpan(start, start + length))

    def _is_worth_keeping(self, key: str, length: int, end: int) -> bool:
        if end <= SMALL_FILE and key not in self._dropped:
            return self._requests_are_dear or length < LARGE_RECORD
        if not self._requests_are_dear or end > self._budget:
            return False
        with self._lock:
            if self._touched.pop(key, None) is not None:
                self._touched_bytes -= end
                return True
            self._touched[key] = end
            self._touched_bytes += end
            while self._touched_bytes > self._budget:
                self._touched_bytes -= self._touched.popitem(last=False)[1]
        return False

    def _keep(self, key: str, whole: memoryview) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = whole
            self._kept_bytes += whole.nbytes
            while self._kept_bytes > self._budget and len(self._kept) > 1:
                dropped, data = self._kept.popitem(last=False)
                self._kept_bytes -= data.nbytes
                self._dropped.add(dropped)

    def _use_again(self, key: str) -> None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
