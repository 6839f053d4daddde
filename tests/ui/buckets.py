"""An S3 in this process, and its requests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import boto3

from tests.support.mocked_aws import mocked_aws


@contextmanager
def an_s3() -> Iterator[Any]:
    """Yield a client of an empty S3 in this process, with the bucket `runs`."""
    with mocked_aws():
        for name in ("SMDEBUG_TABLE", "SMDEBUG_BUCKET", "SMDEBUG_STACK"):
            os.environ.pop(name, None)
        client = boto3.client("s3")
        client.create_bucket(Bucket="runs")
        yield client


def copy_run(client: Any, folder: Any, bucket: str, prefix: str) -> None:
    """Put the files of a run in a folder below a prefix."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            key = f"{prefix}/{file.relative_to(folder)}"
            client.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())


@contextmanager
def requests_to_s3() -> Iterator[list[tuple[str, str]]]:
    """Yield the requests that are made meanwhile: the operation, and its key or prefix."""
    from smdebug.storage import s3_clients
    from tests.support.mocked_aws import new_clients_of_s3

    seen: list[tuple[str, str]] = []
    make = s3_clients._make_client

    def note(params: Any, model: Any, **_: Any) -> None:
        seen.append((model.name, params.get("Key") or params.get("Prefix", "")))

    def noting(given: Any) -> Any:
        client = make(given)
        client.meta.events.register("provide-client-params.s3", note)
        return client

    with new_clients_of_s3(), patch.object(s3_clients, "_make_client", noting):
        yield seen
