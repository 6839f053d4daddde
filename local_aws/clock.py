"""The time of the local stack: the machine's clock plus an offset."""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path

_SIZE = 8
_real = time.time


class MovableClock:
    """A clock that can be moved forward; its offset is in a file, so every process sees the same time."""

    def __init__(self, file: Path):
        self.file = file
        if not file.exists():
            file.write_bytes(struct.pack("d", 0.0))
        with file.open("r+b") as opened:
            self._offset = mmap.mmap(opened.fileno(), _SIZE)

    def now(self) -> float:
        return _real() + self.offset

    @property
    def offset(self) -> float:
        return float(struct.unpack_from("d", self._offset)[0])

    def forward(self, seconds: float) -> None:
        """Move the clock forward."""
        struct.pack_into("d", self._offset, 0, self.offset + seconds)
