"""Runs in a bucket: requests, keys and clients."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
from unittest.mock import patch

import boto3
import numpy as np
import pytest

from smdebug.exceptions import (
    ObjectMissing,
    SMDebugCustomerError,
    SMDebugValueError,
    StorageError,
    StorageUnavailable,
)
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import ByteSpan, landing, open_storage, s3_clients
from smdebug.storage.s3 import S3Storage
from tests.support.mocked_aws import new_clients_of_s3

KEY = "events/000000000000/000000000000_worker_0.tfevents"
MB = 1 << 20


def test_each_operation_is_one_request(run, requests):
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


def test_keys_are_below_the_prefix(run, s3, bucket):
    run.write("events/x", b"1")
    assert s3.get_object(Bucket=bucket, Key="run/events/x")["Body"].read() == b"1"


def test_a_run_may_be_at_the_root_of_the_bucket(s3, bucket):
    run = S3Storage(bucket, client=s3)
    run.write("events/x", b"1")
    assert s3.get_object(Bucket=bucket, Key="events/x")["Body"].read() == b"1"
    assert list(run.list("")) == ["events/x"]
    assert run.location == f"s3://{bucket}"


def test_a_prefix_that_begins_alike_is_another_run(run, s3, bucket):
    S3Storage(bucket, "run2", s3).write("index/a.json", b"")
    s3.put_object(Bucket=bucket, Key="run", Body=b"")
    assert list(run.list("")) == []


def test_folder_markers_and_unreadable_keys_are_not_listed(run, s3, bucket):
    for key in ("run/", "run/index/", "run//x", "run/../y", "run/a/./b", "run/index/a.json"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    assert list(run.list("")) == ["index/a.json"]


def test_the_path_is_parsed_once_and_slashes_at_the_end_do_not_matter(s3, bucket):
    S3Storage(bucket, "my runs/größe", s3).write("x", b"1")
    assert S3Storage.at(f"s3://{bucket}/my runs/größe//", s3).read("x") == b"1"


def test_a_bucket_is_never_created(s3, requests):
    with pytest.raises(StorageError, match="bucket does not exist") as raised:
        S3Storage("not-there", "run", s3).write("x", b"")
    assert raised.value.place == "s3://not-there/run/x"
    assert not isinstance(raised.value, ObjectMissing)
    assert requests == ["PutObject"]


def test_a_large_view_is_one_request_and_in_a_file(run, requests, monkeypatch):
    monkeypatch.setattr(landing, "SPOOLED_FROM", MB)
    data = os.urandom(2 * MB)
    run.write(KEY, data)
    requests.clear()
    assert run.view(KEY) == data
    assert run.view(KEY, ByteSpan(5, MB + 10)) == data[5 : MB + 10]
    assert requests == ["GetObject"] * 2


def test_a_truncated_object_is_detected(run, s3):
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
    with new_clients_of_s3(), pytest.raises(SMDebugCustomerError, match=r"pip install .*\[aws\]"):
        S3Storage("bucket").read("x")


def test_the_client_is_created_on_first_use_once_for_all_threads(s3, bucket, monkeypatch):
    made = []
    make = s3_clients._make_client
    monkeypatch.setattr(s3_clients, "_make_client", lambda given: made.append(1) or make(given))
    with new_clients_of_s3():
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


def test_places_share_a_client_until_the_settings_of_aws_change(bucket, monkeypatch, tmp_path):
    credentials = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    run = open_storage(f"s3://{bucket}/run")
    assert open_storage(f"s3://{bucket}/other")._client is run._client
    credentials.write_text("[default]\naws_access_key_id = renewed\naws_secret_access_key = x\n")
    renewed = open_storage(f"s3://{bucket}/run")
    assert renewed._client is not run._client
    assert open_storage(f"s3://{bucket}/other")._client is renewed._client
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    assert open_storage(f"s3://{bucket}/run")._client.meta.region_name == "eu-west-3"


def test_a_copy_uses_the_client_of_its_process_and_not_one_that_was_passed_in(s3, bucket):
    run = S3Storage(bucket, "run", s3)
    run.write("x", b"1")
    copy = pickle.loads(pickle.dumps(run))
    assert copy.read("x") == b"1"
    assert copy._client is open_storage(f"s3://{bucket}")._client is not s3
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


def test_the_region_of_the_environment_is_that_of_the_other_tools_of_aws(s3, monkeypatch):
    """boto3 alone knows AWS_DEFAULT_REGION only."""
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert open_storage("s3://bucket/run")._client.meta.region_name == "eu-central-1"
    monkeypatch.setenv("AWS_REGION", "")
    assert open_storage("s3://bucket/run")._client.meta.region_name == "us-east-1"


@pytest.mark.parametrize("prefix", ["../x", "a/./b", "\0", "\ud800"])
def test_a_prefix_that_is_not_a_plain_path_is_refused(prefix):
    with pytest.raises(SMDebugValueError, match="prefix of a run"):
        S3Storage("bucket", prefix)


def test_what_another_writes_between_reading_and_replacing_is_kept(run, s3, bucket):
    run.write("annotations.json", b"first")
    theirs = itertools.count()

    def write_theirs(**_request):
        if next(theirs) == 0:
            s3.put_object(Bucket=bucket, Key="run/annotations.json", Body=b"theirs")

    s3.meta.events.register("before-call.s3.PutObject", write_theirs)
    try:
        assert not run.replace("annotations.json", b"first", b"mine")
    finally:
        s3.meta.events.unregister("before-call.s3.PutObject", write_theirs)
    assert run.read("annotations.json") == b"theirs"
