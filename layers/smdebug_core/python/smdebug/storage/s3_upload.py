"""Uploads to S3: one PUT up to 64 MB, a multipart upload above."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError, StorageError
from smdebug.storage.base import Buffer
from smdebug.storage.s3_errors import translated

ONE_PUT_UP_TO = 64 << 20
PART = 32 << 20
PARTS_AT_A_TIME = 3


class S3Sink:
    """Collects an object. From 64 MB on, parts are sent while the rest is still being written.

    `client` returns the client of the current process.
    """

    def __init__(self, client: Callable[[], Any], request: dict[str, Any], place: str):
        self._client = client
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
        """Send `data` without a copy. It must not change before `commit` returns."""
        self._size = data.nbytes
        self._blocks = [data[at : at + PART] for at in range(0, data.nbytes, PART)]

    def commit(self) -> None:
        self._check_open()
        self._open = False
        try:
            if self._upload is None and self._size <= ONE_PUT_UP_TO:
                with translated(self._place, "write"):
                    self._client().put_object(**self._request, Body=_Body(self._blocks))
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
            raise SMDebugRuntimeError(f"{self._place} was already committed or aborted; create a new object")

    def _send_full_parts(self) -> None:
        if self._size < ONE_PUT_UP_TO:
            return
        upload = self._begun()
        for block in self._blocks:
            upload.send(block)
        self._blocks = []

    def _begun(self) -> _Multipart:
        if self._upload is None:
            self._upload = _Multipart(self._client(), self._request, self._place)
        return self._upload

    def _give_up(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()


class _Multipart:
    """A multipart upload, a few parts at a time, on threads that end with it."""

    def __init__(self, client: Any, request: dict[str, Any], place: str):
        self._client = client
        self._place = place
        with translated(place, "write"):
            begun = client.create_multipart_upload(**request)
        self._request = {**request, "UploadId": begun["UploadId"]}
        self._parts: dict[int, dict[str, Any]] = {}
        self._sent = 0
        self._failure: BaseException | None = None
        self._waiting: queue.SimpleQueue[tuple[int, Buffer] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(PARTS_AT_A_TIME)
        self._threads: list[threading.Thread] = []

    def send(self, block: Buffer) -> None:
        self._sent += 1
        part = (self._sent, block)
        if len(self._threads) < PARTS_AT_A_TIME and not self._start_thread():
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
        with translated(self._place, "write"):
            self._client.complete_multipart_upload(**self._request, MultipartUpload={"Parts": parts})

    def abort(self) -> None:
        self._failure = self._failure or SMDebugRuntimeError(f"{self._place} was aborted")
        self._wait()
        try:
            with translated(self._place, "write"):
                self._client.abort_multipart_upload(**self._request)
        except StorageError:
            pass  # the bucket's lifecycle rule for unfinished uploads removes the parts

    def _start_thread(self) -> bool:
        thread = threading.Thread(target=self._run, name="smdebug-upload", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return bool(self._threads)  # the interpreter is shutting down: use this thread
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
        with translated(self._place, "write"):
            response = self._client.upload_part(**self._request, PartNumber=number, Body=_Body([block]))
        # S3 compares these with what it received: a part that was damaged in transit fails the upload.
        checksums = {name: text for name, text in response.items() if name.startswith("Checksum")}
        checksums.pop("ChecksumType", None)
        self._parts[number] = {"PartNumber": number, "ETag": response["ETag"], **checksums}

    def _wait(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []


class _Body(io.RawIOBase):
    """Pieces of memory as one file, which botocore sends without joining them."""

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
