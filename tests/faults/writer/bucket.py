"""A bucket with faults: the client that S3's storage calls, with the errors of botocore."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from smdebug.storage import s3_upload
from smdebug.storage.s3 import S3Storage
from tests.faults.writer.calls import Calls
from tests.faults.writer.world import Process, world

_URL = "https://runs.s3.amazonaws.com/"
_SECONDS = 0.03
_RETRIES = 12.0
"""Seconds that botocore tries again for before it gives up."""
_REFUSED = {
    "throttled": ("SlowDown", "Please reduce your request rate.", 503),
    "internal": ("InternalError", "We encountered an internal error. Please try again.", 500),
    "expired": ("ExpiredToken", "The provided token has expired.", 403),
    "denied": ("AccessDenied", "Access Denied", 403),
}
# Small enough that the larger tensors of a schedule are uploaded in parts.
ONE_PUT_UP_TO = 16 << 10
PART = 6 << 10


class FaultyBucket:
    """The objects of a bucket, and unfinished uploads."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count()
        self._calls: Calls | None = None

    def storage(self, process: Process | None = None) -> S3Storage:
        """Return the run's storage, with the faults of the process if there is one."""
        calls = self._calls if process is not None else None
        return S3Storage("runs", "a", client=_Client(self, calls))  # type: ignore[arg-type]

    @contextmanager
    def at_work(self, calls: Calls) -> Iterator[None]:
        self._calls = calls
        with (
            mock.patch.object(s3_upload, "ONE_PUT_UP_TO", ONE_PUT_UP_TO),
            mock.patch.object(s3_upload, "PART", PART),
        ):
            yield
        self._calls = None

    def left_over(self) -> list[str]:
        return []


class _Body(io.BytesIO):
    """What a GET returns."""


class _Client:
    """The part of boto3's client that the storage uses."""

    def __init__(self, bucket: FaultyBucket, calls: Calls | None):
        self._bucket = bucket
        self._calls = calls

    def get_object(self, **request: Any) -> dict[str, Any]:
        def get() -> bytes:
            data = self._object(request["Key"])
            if "Range" not in request:
                return data
            start, stop = map(int, request["Range"].removeprefix("bytes=").split("-"))
            if start >= len(data):
                raise _error("InvalidRange", "The requested range is not satisfiable", 416)
            return data[start : stop + 1]

        data = self._request("get", request["Key"], get)
        return {"Body": _Body(data), "ContentLength": len(data)}

    def head_object(self, **request: Any) -> dict[str, Any]:
        return {
            "ContentLength": self._request("head", request["Key"], lambda: len(self._object(request["Key"])))
        }

    def put_object(self, **request: Any) -> dict[str, Any]:
        data = request["Body"].read()

        def put() -> None:
            self._bucket.objects[request["Key"]] = data

        self._request("put", request["Key"], put)
        return {}

    def delete_object(self, **request: Any) -> dict[str, Any]:
        self._request("delete", request["Key"], lambda: self._bucket.objects.pop(request["Key"], None))
        return {}

    def create_multipart_upload(self, **request: Any) -> dict[str, Any]:
        name = f"upload {next(self._bucket.numbers)}"
        self._request("begin upload", request["Key"], lambda: self._bucket.uploads.update({name: {}}))
        return {"UploadId": name}

    def upload_part(self, **request: Any) -> dict[str, Any]:
        data = request["Body"].read()
        parts = self._bucket.uploads[request["UploadId"]]
        self._request("part", request["Key"], lambda: parts.update({request["PartNumber"]: data}))
        return {"ETag": hashlib.sha256(data).hexdigest()}

    def complete_multipart_upload(self, **request: Any) -> dict[str, Any]:
        parts = self._bucket.uploads[request["UploadId"]]
        named = request["MultipartUpload"]["Parts"]

        def complete() -> None:
            tags = [hashlib.sha256(parts[part["PartNumber"]]).hexdigest() for part in named]
            if tags != [part["ETag"] for part in named]:
                raise _error("InvalidPart", "One or more of the specified parts could not be found.", 400)
            whole = b"".join(parts[part["PartNumber"]] for part in named)
            self._bucket.objects[request["Key"]] = whole

        self._request("complete upload", request["Key"], complete)
        return {}

    def abort_multipart_upload(self, **request: Any) -> dict[str, Any]:
        self._request(
            "abort upload", request["Key"], lambda: self._bucket.uploads.pop(request["UploadId"], None)
        )
        return {}

    def get_paginator(self, _operation: str) -> _Client:
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        prefix, after = request["Prefix"], request.get("StartAfter", "")

        def found() -> list[dict[str, str]]:
            keys = sorted(self._bucket.objects)
            return [{"Key": key} for key in keys if key.startswith(prefix) and key > after]

        yield {"Contents": self._request("list", prefix, found)}

    def _object(self, key: str) -> bytes:
        if key not in self._bucket.objects:
            raise _error("NoSuchKey", "The specified key does not exist.", 404)
        return self._bucket.objects[key]

    def _request(self, what: str, key: str, effect: Callable[[], Any]) -> Any:
        """Carry a request out, unless its fault prevents that."""
        calls = self._calls
        if calls is None:
            return effect()
        fault = calls.begin(what, key.removeprefix("a/"), _SECONDS)
        if fault in _REFUSED:
            if fault in ("throttled", "internal"):
                world().sleep(_RETRIES)
            raise _error(*_REFUSED[fault])
        if fault == "unreachable":
            world().sleep(HANG)
            raise EndpointConnectionError(endpoint_url=_URL)
        if fault == "hang":
            before, raises = calls.chance.random() < 0.5, calls.chance.random() < 0.7
            if before:
                effect()
            calls.hang()
            if raises:
                raise ReadTimeoutError(endpoint_url=_URL)
            if before:
                return effect()
        result = effect()
        calls.done(what, key.removeprefix("a/"))
        if fault == "unanswered":
            raise ConnectionClosedError(endpoint_url=_URL)
        return result


HANG = 60.0


def _error(code: str, message: str, status: int) -> ClientError:
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Request")  # type: ignore[arg-type]
