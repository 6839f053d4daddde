"""A run in a bucket: what S3 is asked, and what its answers mean.

Reading an object is one GET, writing it one PUT up to 64 MB and a multipart upload above; nothing is
looked up first and no bucket is ever made. The rights needed are `s3:GetObject`, `s3:PutObject` and
`s3:ListBucket`, `s3:DeleteObject` to remove things, `s3:AbortMultipartUpload` to leave no parts behind.
"""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    AccessDenied,
    ObjectMissing,
    SMDebugCustomerError,
    SMDebugRuntimeError,
    SMDebugValueError,
    StorageError,
    StorageUnavailable,
)
from smdebug.storage.base import Buffer, ByteSpan, Sink
from smdebug.storage.keys import checked_key, checked_prefix, checked_span, checked_start, is_key
from smdebug.storage.landing import Landing

if TYPE_CHECKING:
    from botocore.client import BaseClient

SCHEME = "s3://"
ONE_PUT_UP_TO = 64 << 20
PART = 32 << 20
PIECE = 4 << 20
PARTS_ON_THEIR_WAY = 3
REQUESTS_AT_A_TIME = 32

_RIGHT_TO = {
    "read": "s3:GetObject on the object (without s3:ListBucket, S3 says so of a missing one too)",
    "list": "s3:ListBucket on the bucket",
    "write": "s3:PutObject on the object (and kms:GenerateDataKey if the bucket encrypts with KMS)",
    "delete": "s3:DeleteObject on the object",
}
_MISSING = frozenset(("NoSuchKey", "404", "NotFound"))
_DENIED = frozenset(("AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem"))
_BAD_CREDENTIALS = frozenset(
    (
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    )
)
_ELSEWHERE = frozenset(
    (
        "301",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
    )
)
_LATER = frozenset(
    (
        "500",
        "502",
        "503",
        "504",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
    )
)


class S3Storage:
    """Objects under one `s3://bucket/prefix/`, keys relative to that prefix.

    The client is made on first use, and again in a forked or spawned process: connections are not shared
    between processes. A client that was passed in is then replaced by one for the same endpoint and region.
    """

    def __init__(self, bucket: str, prefix: str = "", client: BaseClient | None = None):
        if not bucket:
            raise SMDebugValueError("An S3 path names a bucket: s3://bucket/prefix")
        prefix = prefix.rstrip("/")
        if problem := _problem_of_prefix(prefix):
            raise SMDebugValueError(f"{prefix!r} cannot be the prefix of a run on S3: {problem}")
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._given = client
        self._owner = os.getpid()
        self._clients: dict[int, Any] = {self._owner: client} if client else {}

    @classmethod
    def at(cls, path: str, client: BaseClient | None = None) -> S3Storage:
        """The storage at `s3://bucket/prefix`; slashes at the end do not matter."""
        bucket, _, prefix = path.removeprefix(SCHEME).partition("/")
        return cls(bucket, prefix, client)

    def __repr__(self) -> str:
        return f"S3Storage({self._bucket!r}, {self._prefix!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_bucket": self._bucket,
            "_prefix": self._prefix,
            "_given": None,
            "_clients": {},
            "_owner": 0,
        }

    @property
    def location(self) -> str:
        return f"{SCHEME}{self._bucket}/{self._prefix}".rstrip("/")

    @property
    def concurrency(self) -> int:
        return REQUESTS_AT_A_TIME

    # Reading

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        answer = self._get(key, span)
        if answer is None:
            return b""
        with _speaking_of(self._place(key), "read"), answer["Body"] as body:
            data: bytes = body.read()
        return data

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        answer = self._get(key, span)
        if answer is None:
            return memoryview(bytearray())
        with Landing(answer["ContentLength"]) as landing:
            free = landing.room
            with _speaking_of(self._place(key), "read"), answer["Body"] as body:
                # In pieces: urllib3 takes as much into memory as it is given room for.
                while free and (count := body.readinto(free[:PIECE])):
                    free = free[count:]
                if not free:
                    body.read()  # the end, where the checksum and the length are verified
            if free:
                raise StorageUnavailable(
                    self._place(key), "the connection ended before the object did; try again"
                )
            return landing.whole()

    def size(self, key: str) -> int:
        request = self._request(key)
        with _speaking_of(self._place(key), "read"):
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
        return self._listed(request, prefix)

    def _listed(self, request: dict[str, str], prefix: str) -> Iterator[str]:
        ours = len(self._prefix)
        with _speaking_of(self._place(prefix), "list"):
            for page in self._client.get_paginator("list_objects_v2").paginate(**request):
                for found in page.get("Contents", ()):
                    key = found["Key"][ours:]
                    if is_key(key):
                        yield key

    # Writing

    def write(self, key: str, data: Buffer) -> None:
        sink = _S3Sink(self, self._request(key), self._place(key))
        try:
            sink.take_over(memoryview(data).cast("B"))
            sink.commit()
        except BaseException:
            sink.abort()
            raise

    def create(self, key: str) -> Sink:
        return _S3Sink(self, self._request(key), self._place(key))

    def claim(self, key: str) -> bool:
        checked_key(key)
        return True

    def delete(self, key: str) -> None:
        request = self._request(key)
        with _speaking_of(self._place(key), "delete"):
            self._client.delete_object(**request)

    # Asking

    @property
    def _client(self) -> Any:
        client = self._clients.get(os.getpid())
        return client if client is not None else self._new_client()

    def _new_client(self) -> Any:
        with _making_clients:
            process = os.getpid()
            if process not in self._clients:
                alike = self._given.meta if self._given is not None else None
                self._clients = {process: _client_like(alike)}
            return self._clients[process]

    def _request(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": self._prefix + checked_key(key)}

    def _place(self, key: str) -> str:
        return f"{SCHEME}{self._bucket}/{self._prefix}{key}"

    def _get(self, key: str, span: ByteSpan | None) -> dict[str, Any] | None:
        """What S3 answers; None if the object is there and the span holds nothing of it."""
        request = self._request(key)
        if checked_span(span) is not None and span is not None:
            # HTTP knows no empty range: one byte is asked for, so that a missing object is still noticed.
            request["Range"] = f"bytes={span.start}-{max(span.stop - 1, span.start)}"
        try:
            with _speaking_of(self._place(key), "read"):
                answer: dict[str, Any] = self._client.get_object(**request)
        except _NothingThere:
            return None
        if span is not None and not span.length:
            answer["Body"].close()
            return None
        return answer


class _NothingThere(StorageError):
    """The object ends before the range that was asked for."""


class _S3Sink:
    """Gathers an object; from 64 MB on, its parts leave while the rest is still being written."""

    def __init__(self, storage: S3Storage, request: dict[str, Any], place: str):
        self._storage = storage
        self._request = request
        self._place = place
        self._blocks: list[Buffer] = []
        self._size = 0
        self._upload: _Multipart | None = None
        self._open = True

    def write(self, pieces: Sequence[Buffer]) -> None:
        self._check_open()
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            while rest:
                if not self._blocks or len(self._blocks[-1]) == PART:
                    self._send_full_parts()
                    self._blocks.append(bytearray())
                block = self._blocks[-1]
                assert isinstance(block, bytearray)
                taken = rest[: PART - len(block)]
                block += taken
                self._size += len(taken)
                rest = rest[len(taken) :]

    def take_over(self, data: memoryview) -> None:
        """Send this as it is, without a copy: it does not change before `commit` returns."""
        self._size = data.nbytes
        self._blocks = [data[at : at + PART] for at in range(0, data.nbytes, PART)]

    def commit(self) -> None:
        self._check_open()
        self._open = False
        try:
            if self._upload is None and self._size <= ONE_PUT_UP_TO:
                with _speaking_of(self._place, "write"):
                    self._storage._client.put_object(**self._request, Body=_Body(self._blocks))
            else:
                upload = self._begun()
                for block in self._blocks:
                    upload.send(block)
                upload.complete()
        except BaseException:
            self._give_up()
            raise
        finally:
            self._blocks = []

    def abort(self) -> None:
        if self._open:
            self._open = False
            self._blocks = []
            self._give_up()

    def _check_open(self) -> None:
        if not self._open:
            raise SMDebugRuntimeError(f"{self._place} was committed or aborted: begin a new object")

    def _send_full_parts(self) -> None:
        if self._size < ONE_PUT_UP_TO:
            return
        upload = self._begun()
        for block in self._blocks:
            upload.send(block)
        self._blocks = []

    def _begun(self) -> _Multipart:
        if self._upload is None:
            self._upload = _Multipart(self._storage._client, self._request, self._place)
        return self._upload

    def _give_up(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()


class _Multipart:
    """An object on its way in parts, a few at a time, on threads that end with it."""

    def __init__(self, client: Any, request: dict[str, Any], place: str):
        self._client = client
        self._place = place
        with _speaking_of(place, "write"):
            begun = client.create_multipart_upload(**request)
        self._request = {**request, "UploadId": begun["UploadId"]}
        self._parts: dict[int, dict[str, Any]] = {}
        self._sent = 0
        self._failure: BaseException | None = None
        self._waiting: queue.SimpleQueue[tuple[int, Buffer] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(PARTS_ON_THEIR_WAY)
        self._threads: list[threading.Thread] = []

    def send(self, block: Buffer) -> None:
        self._sent += 1
        part = (self._sent, block)
        if len(self._threads) < PARTS_ON_THEIR_WAY and not self._start_thread():
            return self._send_now(*part)
        self._room.acquire()
        if self._failure is not None:
            raise self._failure
        self._waiting.put(part)
        return None

    def complete(self) -> None:
        self._wait()
        if self._failure is not None:
            raise self._failure
        parts = [self._parts[number] for number in sorted(self._parts)]
        with _speaking_of(self._place, "write"):
            self._client.complete_multipart_upload(
                **self._request, MultipartUpload={"Parts": parts}
            )

    def abort(self) -> None:
        self._failure = self._failure or SMDebugRuntimeError(f"{self._place} was aborted")
        self._wait()
        try:
            with _speaking_of(self._place, "write"):
                self._client.abort_multipart_upload(**self._request)
        except StorageError:
            pass  # the bucket's lifecycle rule for unfinished uploads removes what is left

    def _start_thread(self) -> bool:
        thread = threading.Thread(target=self._run, name="smdebug-upload", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return bool(self._threads)  # the interpreter is ending: this thread has to do
        self._threads.append(thread)
        return True

    def _run(self) -> None:
        while (part := self._waiting.get()) is not None:
            try:
                if self._failure is None:
                    self._send_now(*part)
            except BaseException as error:  # noqa: BLE001 - raised again by `send` or `complete`
                self._failure = error
            finally:
                self._room.release()

    def _send_now(self, number: int, block: Buffer) -> None:
        with _speaking_of(self._place, "write"):
            answer = self._client.upload_part(
                **self._request, PartNumber=number, Body=_Body([block])
            )
        # S3 compares these with what it has: a part that was damaged on its way fails the upload.
        checksums = {name: text for name, text in answer.items() if name.startswith("Checksum")}
        checksums.pop("ChecksumType", None)
        self._parts[number] = {"PartNumber": number, "ETag": answer["ETag"], **checksums}

    def _wait(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []


class _Body(io.RawIOBase):
    """Pieces of memory as one file, so that botocore can send them without joining them."""

    def __init__(self, pieces: Sequence[Buffer]):
        super().__init__()
        self._pieces = [memoryview(piece).cast("B") for piece in pieces]
        self._size = sum(piece.nbytes for piece in self._pieces)
        self._at = 0

    def __len__(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else size
        taken: list[memoryview] = []
        at = self._at
        for piece in self._pieces:
            if at < piece.nbytes and wanted > 0:
                taken.append(piece[at : at + wanted])
                wanted -= taken[-1].nbytes
                at = 0
            else:
                at -= min(at, piece.nbytes)
        data = taken[0].tobytes() if len(taken) == 1 else b"".join(taken)
        self._at += len(data)
        return data


class _speaking_of:  # noqa: N801 - reads as a sentence: with _speaking_of(place, "read"): ...
    """Turns what botocore raises into our words about `place`."""

    def __init__(self, place: str, doing: str):
        self._place = place
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and (typed := _typed(error, self._place, self._doing)) is not None:
            raise typed from error


def _typed(error: BaseException, place: str, doing: str) -> StorageError | None:
    from botocore import exceptions as aws

    if isinstance(error, aws.ClientError):
        return _answer(error.response, place, doing)
    if isinstance(
        error, aws.NoCredentialsError | aws.PartialCredentialsError | aws.CredentialRetrievalError
    ):
        return AccessDenied(
            place, f"no AWS credentials were found ({error}); run `aws configure` or set a role"
        )
    if isinstance(
        error,
        aws.HTTPClientError
        | aws.ConnectionError
        | aws.IncompleteReadError
        | aws.FlexibleChecksumError,
    ):
        return StorageUnavailable(place, f"S3 cannot be reached, or the connection broke: {error}")
    if isinstance(error, aws.BotoCoreError):
        return StorageError(place, f"this cannot be asked of S3: {error}")
    if isinstance(error, OSError):
        return StorageUnavailable(place, f"the connection to S3 broke: {error}")
    return None


def _answer(response: Any, place: str, doing: str) -> StorageError:
    said = response.get("Error", {})
    code = str(said.get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{code}: {said.get('Message', '')}".rstrip(": ")
    if code in _MISSING:
        return ObjectMissing(place)
    if code in ("InvalidRange", "416"):
        return _NothingThere(place, "the object ends before this range")
    if code == "NoSuchBucket":
        return StorageError(
            place, "there is no such bucket (it is never created); check its name and region"
        )
    if code in _DENIED:
        return AccessDenied(place, f"the credentials lack {_RIGHT_TO[doing]}. S3 says {text}")
    if code in _BAD_CREDENTIALS:
        return AccessDenied(place, f"the credentials are not accepted; renew them. S3 says {text}")
    if code in _ELSEWHERE or status == 301:
        region = (
            response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region")
        )
        where = f"in {region}" if region else "in another region"
        return StorageError(place, f"the bucket is {where}; set AWS_REGION to it. S3 says {text}")
    if code in _LATER or status >= 500 or status == 429:
        return StorageUnavailable(place, f"S3 asks to try again later: {text}")
    return StorageError(place, f"S3 refuses: {text}")


def _client_like(given: Any) -> Any:
    try:
        from boto3.session import Session
        from botocore.config import Config
    except ImportError as error:
        raise SMDebugCustomerError(
            "Runs on S3 need boto3: pip install 'smdebug-serverless[aws]'"
        ) from error
    patient = Config(
        retries={"mode": "standard", "max_attempts": 6},
        max_pool_connections=2 * REQUESTS_AT_A_TIME,
        connect_timeout=10,
        read_timeout=60,
        tcp_keepalive=True,
    )
    with _speaking_of("s3", "read"):
        # A session of its own: the default one may not be used by two threads at once.
        if given is None:
            return Session().client("s3", config=patient)
        return Session().client(
            "s3",
            endpoint_url=given.endpoint_url,
            region_name=given.region_name,
            config=given.config,
        )


def _problem_of_prefix(prefix: str) -> str:
    if "\0" in prefix:
        return "it holds a NUL"
    if not {".", ".."}.isdisjoint(prefix.split("/")):
        return "it is not a plain path (no . or ..)"
    try:
        prefix.encode()
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    return ""


def _renew_lock() -> None:
    global _making_clients
    _making_clients = threading.Lock()


_making_clients = threading.Lock()
os.register_at_fork(after_in_child=_renew_lock)  # the thread that held it is not in the child
