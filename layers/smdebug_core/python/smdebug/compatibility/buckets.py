"""Objects of a bucket: listed, read and deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from smdebug.compatibility.old_file import place_of
from smdebug.exceptions import ObjectMissing, SMDebugTypeError, SMDebugValueError
from smdebug.storage import ByteSpan, Storage
from smdebug.storage.base import S3_SCHEME
from smdebug.storage.s3 import S3Storage


class ListRequest:
    """A request for the keys of a bucket."""

    def __init__(self, Bucket: str, Prefix: str = "", Delimiter: str = "", StartAfter: str = ""):
        self.bucket = Bucket
        self.prefix = Prefix
        self.delimiter = Delimiter
        self.start_after = StartAfter


class ReadObjectRequest:
    """A request for an object or a local file, or a part of it."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None):
        self.is_s3 = path.startswith(S3_SCHEME)
        bucket, _, key = path.removeprefix(S3_SCHEME).partition("/")
        self.bucket = bucket if self.is_s3 else None
        self.key = key if self.is_s3 else path
        self.start = start or 0
        self.length = length
        self.download_entire_file = start is None


class DeleteRequest:
    """A request to delete all keys of a bucket that begin with a prefix."""

    def __init__(self, Bucket: str, Prefix: str = ""):
        self.bucket = Bucket
        self.prefix = Prefix


class S3Handler:
    """Lists, reads and deletes objects, for one request or a list of requests."""

    @staticmethod
    def list_prefix(lr: ListRequest) -> list[str]:
        """Return the keys in order; with a delimiter, each is cut behind its first occurrence."""
        keys = _bucket(lr.bucket).list(lr.prefix, lr.start_after or None)
        return list(dict.fromkeys(_cut(keys, len(lr.prefix), lr.delimiter)))

    @staticmethod
    def list_prefixes(list_requests: Sequence[ListRequest]) -> list[list[str]]:
        """Return the keys of each request."""
        return [S3Handler.list_prefix(request) for request in _checked(list_requests, ListRequest)]

    @staticmethod
    def get_object(object_request: ReadObjectRequest) -> bytes | None:
        """Return the bytes, or None if there is no such object."""
        storage, key = _place(object_request)
        start, length = object_request.start, object_request.length
        if length is not None:
            span = ByteSpan(start, start + length)
        elif start:
            span = ByteSpan(start, max(start, storage.size(key)))
        else:
            span = None
        try:
            return storage.read(key, span)
        except ObjectMissing:
            return None

    @staticmethod
    def get_objects(
        object_requests: Sequence[ReadObjectRequest],
        use_multiprocessing: bool = True,
        n_process: int | None = None,
    ) -> list[bytes | None]:
        """Return the bytes of each request, fetched in parallel."""
        from concurrent.futures import ThreadPoolExecutor

        requests = _checked(object_requests, ReadObjectRequest)
        with ThreadPoolExecutor(n_process or 16) as threads:
            return list(threads.map(S3Handler.get_object, requests))

    @staticmethod
    def delete_prefix(path: str | None = None, delete_request: DeleteRequest | None = None) -> None:
        """Delete all objects below the path `s3://bucket/prefix`, or with the request's prefix."""
        if (path is None) == (delete_request is None):
            raise SMDebugValueError("Give either a path or a delete_request")
        if path is not None:
            if not path.startswith(S3_SCHEME):
                raise SMDebugValueError(f"{path!r} does not begin with {S3_SCHEME}")
            bucket, _, prefix = path.removeprefix(S3_SCHEME).partition("/")
            delete_request = DeleteRequest(bucket, prefix)
        S3Handler.delete_prefixes([delete_request])  # type: ignore[list-item]

    @staticmethod
    def delete_prefixes(delete_requests: Sequence[DeleteRequest]) -> None:
        """Delete all objects with the prefix of each request."""
        for request in _checked(delete_requests, DeleteRequest):
            storage = _bucket(request.bucket)
            for key in [*storage.list(request.prefix)]:
                storage.delete(key)


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """Return the keys that begin with `prefix` and sort after `start_after_key`, and the last key."""
    keys = S3Handler.list_prefix(ListRequest(bucket, prefix, delimiter, start_after_key or prefix))
    return keys, keys[-1] if keys else None


def delete_s3_prefixes(bucket: str, keys: list[str]) -> None:
    """Delete every object of the bucket whose key begins with one of `keys`."""
    S3Handler.delete_prefixes([DeleteRequest(bucket, key) for key in keys])


def _checked(requests: Any, kind: type) -> Any:
    if not isinstance(requests, list) or not all(isinstance(request, kind) for request in requests):
        raise SMDebugTypeError(f"Expected a list of {kind.__name__} objects, not {requests!r}")
    return requests


def _cut(keys: Iterator[str], beginning: int, delimiter: str) -> Iterator[str]:
    for key in keys:
        at = key.find(delimiter, beginning) if delimiter else -1
        yield key if at < 0 else key[: at + len(delimiter)]


def _place(request: ReadObjectRequest) -> tuple[Storage, str]:
    if request.bucket is not None:
        return _bucket(request.bucket), request.key
    return place_of(request.key)


@lru_cache(maxsize=16)
def _bucket(name: str) -> S3Storage:
    return S3Storage(name)
