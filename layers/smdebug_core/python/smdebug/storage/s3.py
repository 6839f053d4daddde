"""A run in a bucket.

Reading an object is one GET. Writing it is one PUT up to 64 MB, and a multipart upload above. Nothing is
looked up first, and no bucket is ever created. The permissions needed are `s3:GetObject`, `s3:PutObject`
and `s3:ListBucket`; `s3:DeleteObject` to remove objects; `s3:AbortMultipartUpload` to clean up after a
failed upload.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    ObjectMissing,
    SMDebugValueError,
    StorageUnavailable,
)
from smdebug.storage.base import S3_SCHEME, Buffer, ByteSpan, Sink
from smdebug.storage.keys import checked_key, checked_prefix, checked_span, checked_start, is_key
from smdebug.storage.landing import Landing
from smdebug.storage.s3_clients import REQUESTS_AT_A_TIME, Clients, shared_clients
from smdebug.storage.s3_errors import RangeEmpty, translated
from smdebug.storage.s3_upload import S3Sink
from smdebug.storage.versions import Version

if TYPE_CHECKING:
    from botocore.client import BaseClient

PIECE = 4 << 20
_ANOTHER_WAS_FIRST = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


class S3Storage:
    """Objects under one `s3://bucket/prefix/`, keys relative to that prefix.

    Without a client of its own it shares one with all places that are opened under the same settings of AWS.
    """

    def __init__(self, bucket: str, prefix: str = "", client: BaseClient | None = None):
        if not bucket:
            raise SMDebugValueError("An S3 path names a bucket: s3://bucket/prefix")
        prefix = prefix.rstrip("/")
        if problem := _problem_of_prefix(prefix):
            raise SMDebugValueError(f"{prefix!r} cannot be the prefix of a run on S3: {problem}")
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._clients = shared_clients() if client is None else Clients(client)

    @classmethod
    def at(cls, path: str, client: BaseClient | None = None) -> S3Storage:
        """Return the storage at `s3://bucket/prefix`; trailing slashes do not matter."""
        bucket, _, prefix = path.removeprefix(S3_SCHEME).partition("/")
        return cls(bucket, prefix, client)

    def __repr__(self) -> str:
        return f"S3Storage({self._bucket!r}, {self._prefix!r})"

    @property
    def location(self) -> str:
        return f"{S3_SCHEME}{self._bucket}/{self._prefix}".rstrip("/")

    @property
    def concurrency(self) -> int:
        return REQUESTS_AT_A_TIME

    # Reading

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        response = self._get(key, span)
        if response is None:
            return b""
        with translated(self._place(key), "read"), response["Body"] as body:
            data: bytes = body.read()
        return data

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        response = self._get(key, span)
        if response is None:
            return memoryview(bytearray())
        with Landing(response["ContentLength"]) as landing:
            free = landing.room
            with translated(self._place(key), "read"), response["Body"] as body:
                # In pieces: urllib3 fills all the memory that it is offered.
                while free and (count := body.readinto(free[:PIECE])):
                    free = free[count:]
                if not free:
                    body.read()  # at the end, checksum and length are verified
            if free:
                raise StorageUnavailable(
                    self._place(key),
                    "the connection closed before the object was complete; try again",
                )
            return landing.whole()

    def size(self, key: str) -> int:
        request = self._request(key)
        with translated(self._place(key), "read"):
            size: int = self._client.head_object(**request)["ContentLength"]
        return size

    def exists(self, key: str) -> bool:
        try:
            self.size(key)
        except ObjectMissing:
            return False
        return True

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        checked_start(start_after)
        request = {"Bucket": self._bucket, "Prefix": self._prefix + checked_prefix(prefix)}
        if start_after:
            request["StartAfter"] = self._prefix + start_after
        return (key for key, _ in self._listed(request, prefix))

    def versions(self, prefix: str) -> Iterator[Version]:
        """Keys with their sizes and ETags, for one request for each 1,000 of them."""
        request = {"Bucket": self._bucket, "Prefix": self._prefix + checked_prefix(prefix)}
        return (
            Version(key, found["Size"], found["ETag"].strip('"'))
            for key, found in self._listed(request, prefix)
        )

    def _listed(self, request: dict[str, str], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        ours = len(self._prefix)
        with translated(self._place(prefix), "list"):
            for page in self._client.get_paginator("list_objects_v2").paginate(**request):
                for found in page.get("Contents", ()):
                    key = found["Key"][ours:]
                    if is_key(key):
                        yield key, found

    def folders(self, prefix: str) -> Iterator[str]:
        """Names of the folders directly below `prefix`: one request for each 1,000 of them."""
        request = {
            "Bucket": self._bucket,
            "Prefix": self._prefix + checked_prefix(prefix),
            "Delimiter": "/",
        }
        start = len(request["Prefix"])
        with translated(self._place(prefix), "list"):
            for page in self._client.get_paginator("list_objects_v2").paginate(**request):
                for found in page.get("CommonPrefixes", ()):
                    name = found["Prefix"][start:-1]
                    if is_key(name):
                        yield name

    # Writing

    def write(self, key: str, data: Buffer) -> None:
        sink = S3Sink(lambda: self._client, self._request(key), self._place(key))
        try:
            sink.take_over(memoryview(data).cast("B"))
            sink.commit()
        except BaseException:
            sink.abort()
            raise

    def create(self, key: str) -> Sink:
        return S3Sink(lambda: self._client, self._request(key), self._place(key))

    def claim(self, key: str) -> bool:
        checked_key(key)
        return True

    def replace(self, key: str, known: bytes | None, data: Buffer) -> bool:
        """Write the object if it is still `known`, or still missing; return False if another was first."""
        condition = {"IfNoneMatch": "*"}
        if known is not None:
            try:
                found = self._get(key, None)
            except ObjectMissing:
                return False
            if found is None or found["Body"].read() != known:
                return False
            condition = {"IfMatch": found["ETag"]}
        with translated(self._place(key), "write"):
            try:
                self._client.put_object(**self._request(key), **condition, Body=bytes(data))
            except self._client.exceptions.ClientError as error:
                if error.response["Error"]["Code"] in _ANOTHER_WAS_FIRST:
                    return False
                raise
        return True

    def delete(self, key: str) -> None:
        request = self._request(key)
        with translated(self._place(key), "delete"):
            self._client.delete_object(**request)

    # Requests

    @property
    def _client(self) -> Any:
        return self._clients.of_this_process()

    def _request(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": self._prefix + checked_key(key)}

    def _place(self, key: str) -> str:
        return f"{S3_SCHEME}{self._bucket}/{self._prefix}{key}"

    def _get(self, key: str, span: ByteSpan | None) -> dict[str, Any] | None:
        """Return S3's response; None if the object exists but has no byte in the span."""
        request = self._request(key)
        if checked_span(span) is not None and span is not None:
            # HTTP has no empty range. Asking for one byte still notices a missing object.
            request["Range"] = f"bytes={span.start}-{max(span.stop - 1, span.start)}"
        try:
            with translated(self._place(key), "read"):
                response: dict[str, Any] = self._client.get_object(**request)
        except RangeEmpty:
            return None
        if span is not None and not span.length:
            response["Body"].close()
            return None
        return response


def _problem_of_prefix(prefix: str) -> str:
    if "\0" in prefix:
        return "it contains a NUL"
    if not {".", ".."}.isdisjoint(prefix.split("/")):
        return "it is not a plain path (no . or ..)"
    try:
        prefix.encode()
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    return ""
