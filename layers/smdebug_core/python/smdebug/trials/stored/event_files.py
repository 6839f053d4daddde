"""The bytes of event files, read with few requests and cached up to a budget.

A small file is read whole on first access, since the tensors of one step are mostly read together. For
a larger file the first access reads only the record; a second access reads the whole file, if it comes
while the file would still be cached. So reading all of a step takes one or two requests, and reading one
tensor over a long run never reads whole files.

Files that are too large for the memory cache are cached on disk, if there is room. That takes one more
access for every 512 MB, since a few tensors of a step of ten gigabytes are read faster one by one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from smdebug.exceptions import DamagedFile
from smdebug.storage import Buffer, ByteSpan, Storage

KEPT: Final = 64 << 20
SPOOLED: Final = 16 << 30
"""The limit of the disk cache, which is also limited to half of the free space."""
SMALL_FILE: Final = 1 << 20
ONE_MORE_TOUCH: Final = 512 << 20
# A value of at least this size is a view of its record instead of a copy, so it needs bytes of its own.
LARGE_RECORD: Final = 32 << 10


class EventFiles:
    """A cache of the event files of one run, safe to share between threads.

    It keeps up to `budget` bytes in memory, and up to `spool_budget` bytes of larger files on disk.
    """

    def __init__(self, storage: Storage, budget: int = KEPT, spool_budget: int | None = None):
        self._storage = storage
        self._budget = budget
        self._spool_budget = spool_budget
        self._requests_are_slow = storage.concurrency > 1
        self._lock = threading.Lock()
        self._in_memory = _Shelf()
        self._on_disk = _Shelf()
        self._kept = self._in_memory.files  # the fast path
        self._dropped: set[str] = set()
        self._arriving: dict[str, threading.Event] = {}

    def record(self, key: str, start: int, length: int, end: int) -> Buffer:
        """Return one record of the file, whose last record ends at `end`; fewer bytes if the file is shorter.

        The caller may modify a large record; a small one may be shared.
        """
        whole = self._kept.get(key)
        if whole is None:
            whole = self._arrived(key, length, end)
            if whole is None:
                return self._storage.view(key, ByteSpan(start, start + length))
        elif 2 * self._in_memory.bytes > self._budget:
            with self._lock:
                self._in_memory.use(key)
        if length >= LARGE_RECORD:
            return self._own(key, whole, start, length)
        return whole[start : start + length]

    def has(self, key: str) -> bool:
        """Whether the whole file is in memory."""
        return key in self._kept

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Keep whole files that were read elsewhere, as far as there is room."""
        with self._lock:
            for key, content in files.items():
                if key not in self._kept:
                    self._in_memory.put(key, memoryview(content))
            self._dropped.update(self._in_memory.make_room(0, self._budget))

    def check_length(self, key: str | None, end: int) -> None:
        """Raise `DamagedFile` if the file is shorter than the end of its last record."""
        size = 0 if key is None else self._storage.size(key)
        if size < end:
            raise DamagedFile(key or "", f"its index file names a record that ends at byte {end}, of {size}")

    def limit(self, budget: int) -> None:
        """Keep at most so many bytes in memory."""
        self._budget = min(self._budget, budget)

    def forget(self) -> None:
        """Drop all bytes."""
        with self._lock:
            self._in_memory.clear()
            self._on_disk.clear()

    def _own(self, key: str, whole: memoryview, start: int, length: int) -> Buffer:
        if self._requests_are_slow:
            return memoryview(bytearray(whole[start : start + length]))
        return self._storage.view(key, ByteSpan(start, start + length))

    def _arrived(self, key: str, length: int, end: int) -> memoryview | None:
        """Return the whole file if it is cached, being fetched, or now worth fetching."""
        while True:
            with self._lock:
                for shelf in (self._in_memory, self._on_disk):
                    if (whole := shelf.use(key)) is not None:
                        return whole
                arriving = self._arriving.get(key)
                if arriving is None:
                    home = self._home(key, length, end)
                    if home is None:
                        return None
                    self._arriving[key] = threading.Event()
                    break
            arriving.wait()  # another thread fetches it
        try:
            return self._fetch(key, end, home)
        finally:
            with self._lock:
                self._arriving.pop(key).set()

    def _fetch(self, key: str, end: int, home: _Shelf) -> memoryview:
        if home is self._in_memory:
            whole = memoryview(self._storage.read(key, ByteSpan(0, end)))
        else:
            with self._lock:  # before the read, so that the disk does not overflow during it
                home.make_room(end, self._spool_room())
            whole = self._storage.view(key, ByteSpan(0, end))
        with self._lock:
            home.put(key, whole)
            if home is self._in_memory:
                self._dropped.update(home.make_room(0, self._budget))
        return whole

    def _home(self, key: str, length: int, end: int) -> _Shelf | None:
        """Return the shelf for the whole file; None to read only the record."""
        if end <= SMALL_FILE and key not in self._dropped:
            wanted = self._requests_are_slow or length < LARGE_RECORD
            return self._in_memory if wanted else None
        if not self._requests_are_slow:
            return None
        if end <= self._budget:
            touched = self._in_memory.touch(key, end, self._budget)
            return self._in_memory if touched else None
        room = self._spool_room()
        if end <= room and self._on_disk.touch(key, end, room) > end // ONE_MORE_TOUCH:
            return self._on_disk
        return None

    def _spool_room(self) -> int:
        if self._spool_budget is not None:
            return self._spool_budget
        import shutil
        import tempfile

        try:
            free = shutil.disk_usage(tempfile.gettempdir()).free
        except OSError:  # nowhere to write
            return 0
        return min(SPOOLED, (free + self._on_disk.bytes) // 2)


class _Shelf:
    """Whole files, in the order of their last use, and the files of which single records were read."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, memoryview] = OrderedDict()
        self.bytes = 0
        # Limited like the cache: a file that is not here would have been dropped by now.
        self._touched: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._touched_bytes = 0

    def use(self, key: str) -> memoryview | None:
        """Return the file and mark it as used last."""
        whole = self.files.get(key)
        if whole is not None:
            self.files.move_to_end(key)
        return whole

    def put(self, key: str, whole: memoryview) -> None:
        """Keep a file."""
        self.files[key] = whole
        self.bytes += whole.nbytes
        _, end = self._touched.pop(key, (0, 0))
        self._touched_bytes -= end

    def make_room(self, size: int, budget: int) -> list[str]:
        """Drop the least recently used files until there is room for `size` bytes; return their keys.

        With `size` 0 the last file stays, even if it is larger than the budget.
        """
        dropped = []
        while self.bytes + size > budget and len(self.files) > (0 if size else 1):
            key, whole = self.files.popitem(last=False)
            self.bytes -= whole.nbytes
            dropped.append(key)
        return dropped

    def touch(self, key: str, end: int, budget: int) -> int:
        """Count an access to a record of the file; return the number of earlier ones."""
        times, _ = self._touched.pop(key, (0, 0))
        if not times:
            self._touched_bytes += end
        self._touched[key] = (times + 1, end)
        while self._touched_bytes > budget:
            self._touched_bytes -= self._touched.popitem(last=False)[1][1]
        return times

    def clear(self) -> None:
        """Drop all files."""
        self.files.clear()
        self._touched.clear()
        self.bytes = self._touched_bytes = 0
