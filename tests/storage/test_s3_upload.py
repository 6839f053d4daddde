"""Writing to S3: one PUT or parts, each with a checksum, and no parts left behind."""

from __future__ import annotations

import io
import os
import threading

import pytest
from botocore import exceptions as aws

from smdebug.exceptions import StorageUnavailable
from smdebug.storage.s3 import S3Storage
from smdebug.storage.s3_upload import ONE_PUT_UP_TO, PART, _Body

KEY = "events/000000000000/000000000000_worker_0.tfevents"
MB = 1 << 20


def test_up_to_64_mb_are_uploaded_in_one_put(run, requests):
    sink = run.create(KEY)
    block = os.urandom(MB)
    for _ in range(ONE_PUT_UP_TO // MB):
        sink.write([block[:1000], block[1000:]])
    assert requests == []
    sink.commit()
    assert requests == ["PutObject"]
    assert run.read(KEY) == block * (ONE_PUT_UP_TO // MB)
    requests.clear()
    run.write(KEY, block * (ONE_PUT_UP_TO // MB))
    assert requests == ["PutObject"]


def test_more_than_64_mb_are_uploaded_in_parts_during_writing(run, requests):
    block = os.urandom(MB)
    sink = run.create(KEY)
    sink.write([block] * (2 * PART // MB))
    assert requests == []
    sink.write([b"one more"])
    assert requests[0] == "CreateMultipartUpload"
    assert not run.exists(KEY)
    sink.write([block] * (PART // MB))
    sink.commit()
    assert sorted(requests) == [
        "CompleteMultipartUpload",
        "CreateMultipartUpload",
        "HeadObject",  # this test's own
        *["UploadPart"] * 4,
    ]
    assert run.read(KEY) == block * (2 * PART // MB) + b"one more" + block * (PART // MB)


def test_a_large_write_is_uploaded_in_parts_without_a_copy(run, requests):
    data = bytearray(os.urandom(PART)) * 2 + b"end"
    run.write(KEY, memoryview(data))
    assert sorted(requests) == [
        "CompleteMultipartUpload",
        "CreateMultipartUpload",
        *["UploadPart"] * 3,
    ]
    assert run.view(KEY) == data


def test_an_aborted_upload_leaves_no_parts(run, requests, s3, bucket):
    sink = run.create(KEY)
    sink.write([bytes(ONE_PUT_UP_TO), b"more"])
    sink.abort()
    sink.abort()
    assert requests[-1] == "AbortMultipartUpload"
    assert not run.exists(KEY)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


@pytest.mark.parametrize("operation", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_a_failed_upload_raises_a_storage_error_and_leaves_no_parts(run, s3, bucket, operation):
    def fail(**_request):
        raise aws.EndpointConnectionError(endpoint_url="https://s3")

    s3.meta.events.register(f"before-call.s3.{operation}", fail)
    try:
        with pytest.raises(StorageUnavailable, match="cannot be reached"):
            run.write(KEY, bytes(ONE_PUT_UP_TO + 1))
        sink = run.create(KEY)
        with pytest.raises(StorageUnavailable, match="cannot be reached"):
            for _ in range(8):
                sink.write([bytes(PART)])
            sink.commit()
        sink.abort()
    finally:
        s3.meta.events.unregister(f"before-call.s3.{operation}", fail)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    assert not run.exists(KEY)


def test_a_failed_abort_is_left_to_the_lifecycle_of_the_bucket(run, s3):
    def fail(**_request):
        raise aws.EndpointConnectionError(endpoint_url="https://s3")

    sink = run.create(KEY)
    sink.write([bytes(ONE_PUT_UP_TO), b"more"])
    s3.meta.events.register("before-call.s3.AbortMultipartUpload", fail)
    try:
        sink.abort()
    finally:
        s3.meta.events.unregister("before-call.s3.AbortMultipartUpload", fail)


def test_parts_are_uploaded_by_the_writer_where_no_thread_can_start(run, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    run.write(KEY, b"x" * (ONE_PUT_UP_TO + 1))
    monkeypatch.undo()
    assert run.size(KEY) == ONE_PUT_UP_TO + 1


def test_uploads_carry_a_checksum(run, s3):
    sent = []

    def note(request, **_more):
        sent.append(str(request.headers).lower())

    s3.meta.events.register_first("before-send.s3.PutObject", note)
    try:
        run.write(KEY, b"abc")
    finally:
        s3.meta.events.unregister("before-send.s3.PutObject", note)
    assert "x-amz-checksum-crc32" in sent[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, -1, None])
def test_pieces_read_like_one_file(size):
    body = _Body([b"", b"abc", bytearray(b"d"), b"", memoryview(b"efghij")])
    assert len(body) == 10
    for _ in range(2):
        read = []
        while piece := body.read(size):
            read.append(piece)
        assert b"".join(read) == b"abcdefghij"
        assert body.tell() == 10
        assert body.seek(0) == 0
    assert body.seek(-2, os.SEEK_END) == 8
    assert body.read() == b"ij"
    assert body.read(3) == b""


def test_a_large_object_passes_through_memory_in_pieces(monkeypatch):
    from smdebug.storage.s3 import PIECE

    content, asked = bytes(range(256)) * (PIECE // 64), []

    class Body(io.BytesIO):
        """As urllib3's: it first reads as much into memory as it is given room for."""

        def readinto(self, room):
            asked.append(len(room))
            return super().readinto(room)

    storage = S3Storage("runs", "big")
    answer = {"ContentLength": len(content), "Body": Body(content)}
    monkeypatch.setattr(storage, "_get", lambda key, span: answer)
    assert bytes(storage.view("events/x")) == content
    assert max(asked) <= PIECE
