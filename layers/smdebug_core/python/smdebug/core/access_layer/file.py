"""For code written against smdebug that writes local files, which appear whole or not at all."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import IO, Any

from smdebug.core.access_layer.base import TSAccessBase
from smdebug.files.names import TEMPORARY_SUFFIX

__all__ = ["SMDEBUG_TEMP_PATH_SUFFIX", "WRITE_MODES", "TSAccessFile", "get_temp_path"]

SMDEBUG_TEMP_PATH_SUFFIX = TEMPORARY_SUFFIX
WRITE_MODES = ["w", "w+", "wb", "wb+", "a", "a+", "ab", "ab+"]


def get_temp_path(file_path: str) -> str:
    """Return the path of a file while it is being written."""
    return file_path + SMDEBUG_TEMP_PATH_SUFFIX


class TSAccessFile(TSAccessBase):
    """A local file, written under a temporary name and renamed on `close`."""

    def __init__(self, path: str, mode: str):
        self.path = path
        self.mode = mode
        self.temp_path = get_temp_path(path)
        self._accessor: IO[Any]
        self.open(path, mode)

    def __enter__(self) -> TSAccessFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, *arguments: str) -> None:
        path, mode = arguments
        if mode in WRITE_MODES:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # Always from the beginning: the rest of a killed writer is not part of the file.
            mode = mode.replace("a", "w")
            path = self.temp_path
        self._accessor = Path(path).open(mode)  # noqa: SIM115 - `close` closes it

    def write(self, _data: bytes | str) -> list[int]:
        """Append the data and return its place: [start, length]."""
        start = self._accessor.tell()
        self._accessor.write(_data)
        return [start, len(_data)]

    def flush(self) -> None:
        self._accessor.flush()

    def close(self) -> None:
        """Make a written file visible under its name."""
        if self._accessor.closed:
            return
        self._accessor.close()
        if self.mode in WRITE_MODES:
            Path(self.temp_path).rename(self.path)

    def ingest_all(self) -> None:
        """Load the whole file, for `read`."""
        self._data = self._accessor.read()
        self._position = 0
