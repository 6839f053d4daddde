"""For code written against smdebug: the common base of `TSAccessFile` and `TSAccessS3`."""

from __future__ import annotations

from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError

__all__ = ["TSAccessBase"]


class TSAccessBase:
    """A file that is written or read from front to back; `ingest_all` loads it for reading."""

    _data: bytes | str = b""
    _position = 0

    def open(self, *arguments: str) -> None:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3: the base class cannot open files"
        )

    def write(self, _data: bytes | str) -> list[int]:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3: the base class cannot write"
        )

    def flush(self) -> None:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3: the base class cannot flush"
        )

    def close(self) -> None:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3: the base class cannot close"
        )

    def ingest_all(self) -> None:
        raise SMDebugNotImplementedError(
            "Use TSAccessFile or TSAccessS3: the base class cannot read"
        )

    def read(self, n: int) -> bytes | str:
        """Return the next `n` bytes of what `ingest_all` loaded."""
        start, stop = self._position, self._position + n
        if stop > len(self._data):
            raise SMDebugError(f"File position out of bounds: {stop} of {len(self._data)}")
        self._position = stop
        return self._data[start:stop]

    def has_data(self) -> bool:
        """Return whether there is more to read."""
        return self._position < len(self._data)
