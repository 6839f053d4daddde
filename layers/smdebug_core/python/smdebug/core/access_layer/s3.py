"""For code written against smdebug that writes objects to S3."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from smdebug.core.access_layer.base import TSAccessBase
from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.storage.s3 import S3Storage

__all__ = ["TSAccessS3"]


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

    def __enter__(self) -> TSAccessS3:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, *arguments: str) -> None:
        raise SMDebugNotImplementedError("Create a TSAccessS3 to open an object on S3")

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
