"""Failures of S3: each has its type and its advice."""

from __future__ import annotations

import pickle

import boto3
import pytest
from botocore import exceptions as aws
from botocore.config import Config
from botocore.stub import Stubber

from smdebug.exceptions import (
    AccessDenied,
    ObjectMissing,
    StorageError,
    StorageUnavailable,
)
from smdebug.storage.s3 import S3Storage


@pytest.mark.parametrize("ask", ["read", "view", "create", "list"])
def test_a_missing_bucket_is_reported(s3, ask):
    run = S3Storage("not-there", "run", s3)
    with pytest.raises(StorageError, match="bucket does not exist"):
        if ask == "create":
            run.create("x").commit()
        elif ask == "list":
            list(run.list("x"))
        else:
            getattr(run, ask)("x")


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
def test_each_refusal_has_its_exception_and_advice(code, status, kind, advice):
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
def test_a_denial_names_the_missing_permission(ask, operation, right):
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
def test_connection_failures_raise_storage_errors(run, s3, error, kind):
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


def test_an_internal_error_is_not_wrapped(run, s3):
    def fail(**_request):
        raise ZeroDivisionError

    s3.meta.events.register("before-call.s3", fail)
    try:
        with pytest.raises(ZeroDivisionError):
            run.read("x")
    finally:
        s3.meta.events.unregister("before-call.s3", fail)


@pytest.mark.parametrize("bucket", ["has space", "UPPER!", "x"])
def test_an_invalid_bucket_name_is_reported(s3, bucket):
    with pytest.raises(StorageError):
        S3Storage(bucket, "run", s3).read("x")
