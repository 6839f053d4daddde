"""Files and objects that are written or read from front to back, and appear whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from smdebug.compatibility.old_file import OldFile
from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError
from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.storage.s3 import S3Storage

SMDEBUG_TEMP_PATH_SUFFIX = TEMPORARY_SUFFIX
WRITE_MODES = ["w", "w+", "wb", "wb+", "a", "a+", "ab", "ab+"]


def get_temp_path(file_path: str) -> str:
    """Return the path of a file while it is being written."""
    return file_path + SMDEBUG_TEMP_PATH_SUFFIX


class TSAccessBase(OldFile):
    """A file that is written or read from front to back; `ingest_all` loads it for reading."""

    _data: bytes | str = b""
    _position = 0

    def _refuse(self, *arguments: Any) -> Any:
        raise SMDebugNotImplementedError("Use TSAccessFile or TSAccessS3: this class has no file")

    open = write = flush = close = ingest_all = _refuse

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


class TSAccessFile(TSAccessBase):
    """A local file, written under a temporary name and renamed on `close`."""

    def __init__(self, path: str, mode: str):
        self.path = path
        self.mode = mode
        self.temp_path = get_temp_path(path)
        self._accessor: IO[Any]
        self.open(path, mode)

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


class TSAccessS3(TSAccessBase):
    """An object on S3, held in memory and uploaded on `close`. No bucket is created."""

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        binary: bool = True,
    ):
        self.bucket_name = bucket_name
        self.key_name = key_name
        self.binary = binary
        self.flushed = False
        self.current_len = 0
        self._gathered: list[bytes] = []
        client = _client(aws_access_key_id, aws_secret_access_key) if aws_access_key_id else None
        self._storage = S3Storage(bucket_name, client=client)

    def write(self, _data: bytes | str) -> list[int]:
        """Append the data and return its place: [start, length]."""
        start = self.current_len
        self._gathered.append(_data.encode() if isinstance(_data, str) else bytes(_data))
        self.current_len += len(_data)
        return [start, len(_data)]

    def flush(self) -> None:
        """Do nothing: the whole object is uploaded on `close`."""

    def close(self) -> None:
        """Upload what was written. A second call does nothing."""
        if not self.flushed and self._gathered:
            self._storage.write(self.key_name, b"".join(self._gathered))
            self.flushed = True

    def ingest_all(self) -> None:
        """Load the whole object, for `read`."""
        data = self._storage.read(self.key_name)
        self._data = data if self.binary else data.decode()
        self._position = 0


def _client(key: str, secret: str | None) -> Any:
    from boto3.session import Session

    return Session(aws_access_key_id=key, aws_secret_access_key=secret).client("s3")
