"""The bytes of event files, asked for as seldom as possible, and only so many of them kept.

A small file comes whole at the first touch: the tensors of one step are mostly read together. Of a
larger one the first touch brings the record alone, and only a second touch that follows while the
file would still have been kept brings the rest. So reading all of a step costs one or two requests,
and reading one tensor over a long run never drags whole files along.

What memory has no room for comes to the disk, as far as that has room. It takes one touch more for every
512 MB, since some tensors of a step of ten gigabytes are sooner read one by one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from smdebug.storage import Buffer, ByteSpan, Storage

KEPT: Final = 64 << 20
SPOOLED: Final = 16 << 30
"""At most, and never more than half of what the disk has left."""
SMALL_FILE: Final = 1 << 20
ONE_MORE_TOUCH: Final = 512 << 20
# From here on a value is not copied out of the record but is a view of it, so it needs bytes of its own.
LARGE_RECORD: Final = 32 << 10


class EventFiles:
    """What was read from the event files of one run; safe to share by threads.

    It keeps up to `budget` bytes in memory, and of larger files up to `spool_budget` bytes on the disk.
    """

    def __init__(self, storage: Storage, budget: int = KEPT, spool_budget: int | None = None):
        self._storage = storage
        self._budget = budget
        self._spool_budget = spool_budget
        self._requests_are_dear = storage.concurrency > 1
        self._lock = threading.Lock()
        self._in_memory = _Shelf()
        self._on_disk = _Shelf()
        self._kept = self._in_memory.files  # where nearly every look ends
        self._dropped: set[str] = set()
        self._arriving: dict[str, threading.Event] = {}

    def record(self, key: str, start: int, length: int, end: int) -> Buffer:
        """One record of the file, whose last record ends at `end`; fewer bytes where the file is shorter.

        A large record is the caller's own, to keep and to change; a small one may be shared.
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

    def forget(self) -> None:
        """Drop all bytes."""
        with self._lock:
            self._in_memory.clear()
            self._on_disk.clear()

    def _own(self, key: str, whole: memoryview, start: int, length: int) -> Buffer:
        if self._requests_are_dear:
            return memoryview(bytearray(whole[start : start + length]))
        return self._storage.view(key, ByteSpan(start, start + length))

    def _arrived(self, key: str, length: int, end: int) -> memoryview | None:
        """The whole file, if it is there, on its way, or now worth fetching."""
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
            with self._lock:  # before, for the disk must not overflow meanwhile
                home.make_room(end, self._spool_room())
            whole = self._storage.view(key, ByteSpan(0, end))
        with self._lock:
            home.put(key, whole)
            if home is self._in_memory:
                self._dropped.update(home.make_room(0, self._budget))
        return whole

    def _home(self, key: str, length: int, end: int) -> _Shelf | None:
        """Where the whole file is to be kept; None if the record alone is fetched for now."""
        if end <= SMALL_FILE and key not in self._dropped:
            wanted = self._requests_are_dear or length < LARGE_RECORD
            return self._in_memory if wanted else None
        if not self._requests_are_dear:
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
    """Whole files, those used last at the end; and the files of which single records were asked for."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, memoryview] = OrderedDict()
        self.bytes = 0
        # As if they were kept: those that fall out would have been dropped by now.
        self._touched: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._touched_bytes = 0

    def use(self, key: str) -> memoryview | None:
        """The file, which is then the last to go."""
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
        """Drop what was used longest ago, until there is room for `size` bytes; what was dropped.

        The last one stays where nothing else wants its place: what is too large for the shelf is used
        while it is there.
        """
        dropped = []
        while self.bytes + size > budget and len(self.files) > (0 if size else 1):
            key, whole = self.files.popitem(last=False)
            self.bytes -= whole.nbytes
            dropped.append(key)
        return dropped

    def touch(self, key: str, end: int, budget: int) -> int:
        """Note that a record of the file is asked for; how often that was so before."""
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
