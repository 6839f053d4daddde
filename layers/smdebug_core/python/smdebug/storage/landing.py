"""Room for a downloaded object: memory, or from 64 MB on an unnamed file, which is mapped.

Only the parts of a mapped file that are in use occupy memory; the file exists for as long as it is
referenced. A machine without room for temporary files keeps everything in memory.
"""

from __future__ import annotations

import mmap
import os
from types import TracebackType

SPOOLED_FROM = 64 << 20


class Landing:
    """`with Landing(size) as landing:` fill `landing.room`, and take `landing.whole()`."""

    def __init__(self, size: int):
        self._file = _temporary_file(size) if size >= SPOOLED_FROM else None
        self.room = memoryview(bytearray(size) if self._file is None else _mapped(self._file, size))

    def __enter__(self) -> Landing:
        return self

    def whole(self) -> memoryview:
        """The downloaded object: writable, and private to the caller."""
        if self._file is None:
            return self.room
        # Mapped again: a process that is forked later must not see what this one writes into it.
        return memoryview(_mapped(self._file, len(self.room), mmap.ACCESS_COPY))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)  # the mapping keeps what is in it


def _mapped(file: int, size: int, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
    return mmap.mmap(file, size, access=access)


def _temporary_file(size: int) -> int | None:
    """Return an unnamed file of that size, its disk space reserved; None if that fails."""
    if not hasattr(os, "posix_fallocate"):
        return None  # a mapped file without disk space would end the process
    import tempfile

    try:
        with tempfile.TemporaryFile(prefix="smdebug-", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return os.dup(file.fileno())
    except OSError:
        return None
