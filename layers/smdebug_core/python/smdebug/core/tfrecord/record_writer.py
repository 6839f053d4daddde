"""For code written against smdebug that writes files of records itself."""

from __future__ import annotations

import os

from smdebug.core.tfrecord._crc32c import crc32c
from smdebug.core.tfrecord._place import place_of
from smdebug.files.checksum import CHECKSUM_MAGIC_BYTES, Buffer, masked
from smdebug.files.framing import Checksum, frame

__all__ = ["CHECKSUM_MAGIC_BYTES", "RecordWriter", "crc32c", "masked_crc32c", "u32"]


def u32(x: int) -> int:
    """Return the lower 32 bits of `x`."""
    return x & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Return the checksum of `data` as files of records store it."""
    return masked(crc32c(data))


class RecordWriter:
    """Writes records to one file or object, which appears on `close`."""

    def __init__(self, path: str | os.PathLike[str], write_checksum: bool = False):
        self.write_checksum = write_checksum
        self._checksum: Checksum = "tfrecord" if write_checksum else "constant"
        storage, key = place_of(path)
        self._sink = storage.create(key)
        self._position = 0
        self._closed = False

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write_record(self, event_str: bytes) -> list[int]:
        """Append a record of those bytes and return its place: [start, length]."""
        record = frame(event_str, self._checksum)
        self._sink.write(record.pieces)
        start, self._position = self._position, self._position + record.length
        return [start, record.length]

    def flush(self) -> None:
        """Do nothing: readers see the whole file after `close`."""

    def close(self) -> None:
        """Make the file visible under its name."""
        if not self._closed:
            self._closed = True
            self._sink.commit()
