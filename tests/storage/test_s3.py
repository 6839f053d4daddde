from __future__ import annotations

import io
import os
import pickle
import threading
from unittest.mock import patch

import boto3
import numpy as np
import pytest
from botocore import exceptions as aws
from botocore.config import Config
from botocore.stub import Stubber

from smdebug.exceptions import (
    AccessDenied,
    ObjectMissing,
    SMDebugCustomerError,
    SMDebugValueError,
    StorageError,
    StorageUnavailable,
)
from smdebug.mode_keys import ModeKeys
from smdebug.saving.step_writer import StepWriter
from smdebug.storage import ByteSpan, landing, open_storage
from smdebug.storage import s3 as s3_module
from smdebug.storage.s3 import S3Storage
from smdebug.storage.s3_upload import ONE_PUT_UP_TO, PART, _Body

KEY = "events/000000000000/000000000000_worker_0.tfevents"
MB = 1 << 20


@pytest.fixture
def run(s3, bucket) -> S3Storage:
    return S3Storage(bucket, "run", s3)


@pytest.fixture
def requests(s3):
    """The names of the operations that were asked of S3, in order."""
    seen: list[str] = []

    def note(model, **_more):
        seen.append(model.name)

    s3.meta.events.register("before-call.s3", note)
    yield seen
    s3.meta.events.unregister("before-call.s3", note)


# What it costs


def test_each_thing_is_one_request(run, requests):
    for act, names in [
        (lambda: run.write(KEY, b"x" * MB), ["PutObject"]),
        (lambda: run.read(KEY), ["GetObject"]),
        (lambda: run.view(KEY), ["GetObject"]),
        (lambda: run.read(KEY, ByteSpan(0, 10)), ["GetObject"]),
        (lambda: run.view(KEY, ByteSpan(5, 5)), ["GetObject"]),
        (lambda: run.size(KEY), ["HeadObject"]),
        (lambda: run.exists(KEY), ["HeadObject"]),
        (lambda: list(run.list("events/")), ["ListObjectsV2"]),
        (lambda: run.claim("claim.smd"), []),
        (lambda: run.delete(KEY), ["DeleteObject"]),
    ]:
        act()
        assert requests == names
        requests.clear()


def test_a_step_of_a_worker_is_two_puts_and_nothing_else(run, requests):
    with StepWriter(run, step=7, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=7) as writer:
        for number in range(50):
            writer.write_tensor(f"x{number}", np.zeros(100_000))
    assert requests == ["PutObject", "PutObject"]
    assert [key.split("/")[0] for key in run.list("")] == ["events", "index"]


def test_up_to_64_mb_leave_in_one_put(run, requests):
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


def test_more_than_64_mb_leave_in_parts_while_it_is_written(run, requests):
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


def test_one_large_write_leaves_in_parts_without_a_copy(run, requests):
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


@pytest.mark.parametrize(
    "operation", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"]
)
def test_an_upload_that_fails_is_typed_and_leaves_no_parts(run, s3, bucket, operation):
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


def test_an_abort_that_fails_is_left_to_the_lifecycle_of_the_bucket(run, s3):
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


def test_what_is_sent_carries_a_checksum(run, s3):
    sent = []

    def note(request, **_more):
        sent.append(str(request.headers).lower())

    s3.meta.events.register_first("before-send.s3.PutObject", note)
    try:
        run.write(KEY, b"abc")
    finally:
        s3.meta.events.unregister("before-send.s3.PutObject", note)
    assert "x-amz-checksum-crc32" in sent[0]


# Where things are


def test_keys_are_below_the_prefix(run, s3, bucket):
    run.write("events/x", b"1")
    assert s3.get_object(Bucket=bucket, Key="run/events/x")["Body"].read() == b"1"


def test_a_run_may_be_at_the_root_of_the_bucket(s3, bucket):
    run = S3Storage(bucket, client=s3)
    run.write("events/x", b"1")
    assert s3.get_object(Bucket=bucket, Key="events/x")["Body"].read() == b"1"
    assert list(run.list("")) == ["events/x"]
    assert run.location == f"s3://{bucket}"


def test_a_prefix_with_a_like_name_is_another_run(run, s3, bucket):
    S3Storage(bucket, "run2", s3).write("index/a.json", b"")
    s3.put_object(Bucket=bucket, Key="run", Body=b"")
    assert list(run.list("")) == []


def test_folder_markers_and_what_could_not_be_read_are_not_listed(run, s3, bucket):
    for key in ("run/", "run/index/", "run//x", "run/../y", "run/a/./b", "run/index/a.json"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    assert list(run.list("")) == ["index/a.json"]


def test_the_path_is_parsed_once_and_slashes_at_the_end_do_not_matter(s3, bucket):
    S3Storage(bucket, "my runs/größe", s3).write("x", b"1")
    assert S3Storage.at(f"s3://{bucket}/my runs/größe//", s3).read("x") == b"1"


def test_a_bucket_is_never_made(s3, requests):
    with pytest.raises(StorageError, match="bucket does not exist") as raised:
        S3Storage("not-there", "run", s3).write("x", b"")
    assert raised.value.place == "s3://not-there/run/x"
    assert not isinstance(raised.value, ObjectMissing)
    assert requests == ["PutObject"]


@pytest.mark.parametrize("ask", ["read", "view", "create", "list"])
def test_a_bucket_that_is_not_there_is_said_so(s3, ask):
    run = S3Storage("not-there", "run", s3)
    with pytest.raises(StorageError, match="bucket does not exist"):
        if ask == "create":
            run.create("x").commit()
        elif ask == "list":
            list(run.list("x"))
        else:
            getattr(run, ask)("x")


# What S3 says


@pytest.mark.parametrize(
    ("code", "status", "kind", "advice"),
    [
        ("NoSuchKey", 404, ObjectMissing, "no such"),
        ("404", 404, ObjectMissing, "no such"),
        ("NoSuchBucket", 404, StorageError, "bucket does not exist"),
        ("AccessDenied", 403, AccessDenied, "s3:GetObject"),
        ("403", 403, AccessDenied, "s3:GetObject"),
        ("ExpiredToken", 400, AccessDenied, "renew"),
        ("InvalidAccessKeyId", 403, AccessDenied, "not accepted"),
        ("SignatureDoesNotMatch", 403, AccessDenied, "not accepted"),
        ("PermanentRedirect", 301, StorageError, "another region; set AWS_REGION"),
        ("AuthorizationHeaderMalformed", 400, StorageError, "another region; set AWS_REGION"),
        ("SlowDown", 503, StorageUnavailable, "later"),
        ("503", 503, StorageUnavailable, "later"),
        ("InternalError", 500, StorageUnavailable, "later"),
        ("SomethingNew", 400, StorageError, "SomethingNew: because"),
        ("SomethingNew", 502, StorageUnavailable, "later"),
    ],
)
def test_each_refusal_has_its_type_and_its_advice(code, status, kind, advice):
    client = boto3.client(
        "s3",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )
    run = S3Storage("bucket", "run", client)
    with Stubber(client) as stubber:
        stubber.add_client_error("get_object", code, "because", status)
        with pytest.raises(StorageError, match=advice) as raised:
            run.read("x")
    assert type(raised.value) is kind
    assert raised.value.place == "s3://bucket/run/x"
    assert pickle.loads(pickle.dumps(raised.value)).place == raised.value.place


@pytest.mark.parametrize(
    ("ask", "operation", "right"),
    [
        (lambda run: run.write("x", b""), "put_object", "s3:PutObject"),
        (lambda run: list(run.list("x")), "list_objects_v2", "s3:ListBucket"),
        (lambda run: run.delete("x"), "delete_object", "s3:DeleteObject"),
        (lambda run: run.size("x"), "head_object", "s3:GetObject"),
    ],
)
def test_a_denial_names_the_right_that_is_missing(ask, operation, right):
    client = boto3.client(
        "s3",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    with Stubber(client) as stubber:
        stubber.add_client_error(operation, "AccessDenied", "because", 403)
        with pytest.raises(AccessDenied, match=right):
            ask(S3Storage("bucket", "run", client))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aws.NoCredentialsError(), AccessDenied),
        (aws.PartialCredentialsError(provider="env", cred_var="x"), AccessDenied),
        (aws.EndpointConnectionError(endpoint_url="https://s3"), StorageUnavailable),
        (aws.ConnectTimeoutError(endpoint_url="https://s3"), StorageUnavailable),
        (aws.ReadTimeoutError(endpoint_url="https://s3"), StorageUnavailable),
        (aws.ResponseStreamingError(error="cut"), StorageUnavailable),
        (aws.IncompleteReadError(actual_bytes=1, expected_bytes=2), StorageUnavailable),
        (aws.FlexibleChecksumError(error_msg="other"), StorageUnavailable),
        (aws.SSLError(endpoint_url="https://s3", error="bad"), StorageUnavailable),
        (ConnectionResetError("reset"), StorageUnavailable),
        (aws.ProfileNotFound(profile="x"), StorageError),
    ],
)
def test_what_goes_wrong_on_the_way_is_typed(run, s3, error, kind):
    def fail(**_request):
        raise error

    s3.meta.events.register("before-call.s3", fail)
    try:
        for ask in (run.read, run.view, run.size, run.delete, lambda key: list(run.list(key))):
            with pytest.raises(StorageError) as raised:
                ask("x")
            assert type(raised.value) is kind
    finally:
        s3.meta.events.unregister("before-call.s3", fail)


def test_a_bug_of_ours_is_not_dressed_up(run, s3):
    def fail(**_request):
        raise ZeroDivisionError

    s3.meta.events.register("before-call.s3", fail)
    try:
        with pytest.raises(ZeroDivisionError):
            run.read("x")
    finally:
        s3.meta.events.unregister("before-call.s3", fail)


@pytest.mark.parametrize("bucket", ["has space", "UPPER!", "x"])
def test_a_name_that_no_bucket_has_is_said_so(s3, bucket):
    with pytest.raises(StorageError):
        S3Storage(bucket, "run", s3).read("x")


def test_a_large_view_is_one_request_and_in_a_file(run, requests, monkeypatch):
    monkeypatch.setattr(landing, "SPOOLED_FROM", MB)
    data = os.urandom(2 * MB)
    run.write(KEY, data)
    requests.clear()
    assert run.view(KEY) == data
    assert run.view(KEY, ByteSpan(5, MB + 10)) == data[5 : MB + 10]
    assert requests == ["GetObject"] * 2


def test_an_object_that_ends_early_is_not_taken_for_whole(run, s3):
    run.write(KEY, b"x" * 1000)

    def cut(parsed, **_more):
        parsed["ContentLength"] = 2000

    s3.meta.events.register("after-call.s3.GetObject", cut)
    try:
        with pytest.raises(StorageUnavailable, match=r"closed before|broke"):
            run.view(KEY)
    finally:
        s3.meta.events.unregister("after-call.s3.GetObject", cut)


def test_without_boto3_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with pytest.raises(SMDebugCustomerError, match=r"pip install .*\[aws\]"):
        S3Storage("bucket").read("x")


# The client


def test_the_client_is_made_on_first_use_once_for_all_threads(s3, bucket, monkeypatch):
    made = []
    make = s3_module._make_client
    monkeypatch.setattr(s3_module, "_make_client", lambda given: made.append(1) or make(given))
    run = open_storage(f"s3://{bucket}/run")
    assert not made
    threads = [threading.Thread(target=run.write, args=(f"x{number}", b"")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(list(run.list(""))) == 8
    config = run._client.meta.config
    assert config.max_pool_connections >= run.concurrency >= 32
    assert config.retries["mode"] == "standard"


def test_a_copy_for_another_process_has_a_client_of_its_own(run):
    run.write("x", b"1")
    copy = pickle.loads(pickle.dumps(run))
    assert copy.read("x") == b"1"
    assert copy._client is not run._client
    assert copy.location == run.location


def test_a_forked_process_does_not_use_its_parents_connections(s3, bucket):
    ours = boto3.client("s3", endpoint_url="http://localhost:1", region_name="eu-west-1")
    run = S3Storage(bucket, "run", ours)
    assert run._client is ours
    with patch("os.getpid", return_value=os.getpid() + 1):
        theirs = run._client
        assert theirs is not ours
        assert theirs is run._client
        assert theirs.meta.endpoint_url == "http://localhost:1"
        assert theirs.meta.region_name == "eu-west-1"


def test_the_endpoint_of_the_environment_is_honoured(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    assert open_storage("s3://bucket/run")._client.meta.endpoint_url == "http://localhost:1"


@pytest.mark.parametrize("prefix", ["../x", "a/./b", "\0", "\ud800"])
def test_a_prefix_that_is_no_plain_path_is_refused(prefix):
    with pytest.raises(SMDebugValueError, match="prefix of a run"):
        S3Storage("bucket", prefix)


# The body of a request


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
    from smdebug.storage.s3 import PIECE, S3Storage

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
