"""For code written against smdebug: what `TSAccessFile` and `TSAccessS3` have in common."""

from __future__ import annotations

from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError

__all__ = ["TSAccessBase"]


class TSAccessBase:
    """A file that is written, or taken in and then read, from front to back."""

    _data: bytes | str = b""
    _position = 0

    def open(self, *arguments: str) -> None:
        raise SMDebugNotImplementedError("Use TSAccessFile or TSAccessS3, which know what to open")

    def write(self, _data: bytes | str) -> list[int]:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3, which know where to write"
        )

    def flush(self) -> None:
        raise SMDebugNotImplementedError("Use TSAccessFile or TSAccessS3, which know what to flush")

    def close(self) -> None:
        raise SMDebugNotImplementedError("Use TSAccessFile or TSAccessS3, which know what to close")

    def ingest_all(self) -> None:
        raise SMDebugNotImplementedError("Use TSAccessFile or TSAccessS3, which know what to read")

    def read(self, n: int) -> bytes | str:
        """The next `n` bytes of what `ingest_all` took in."""
        start, stop = self._position, self._position + n
        if stop > len(self._data):
            raise SMDebugError(f"File position out of bounds: {stop} of {len(self._data)}")
        self._position = stop
        return self._data[start:stop]

    def has_data(self) -> bool:
        """Is there more to read?"""
        return self._position < len(self._data)
