"""The three places, empty, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from smdebug.storage import Storage
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.storage.s3 import S3Storage
from tests.support.mocked_aws import mocked_aws

numbers = itertools.count(1)


@pytest.fixture(scope="package")
def s3() -> Iterator[Any]:
    """A client of an S3 in this process. Making one takes long, so all tests here share it."""
    with mocked_aws():
        yield boto3.client("s3")


@pytest.fixture
def bucket(s3) -> str:
    """The name of an empty bucket."""
    name = f"runs-{next(numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def run(s3, bucket) -> S3Storage:
    """A run in an empty bucket."""
    return S3Storage(bucket, "run", s3)


@pytest.fixture
def requests(s3) -> Iterator[list[str]]:
    """The names of the operations requested from S3, in order."""
    seen: list[str] = []

    def note(model, **_more):
        seen.append(model.name)

    s3.meta.events.register("before-call.s3", note)
    yield seen
    s3.meta.events.unregister("before-call.s3", note)


@pytest.fixture(params=["memory", "folder", "s3"])
def storage(request, tmp_path) -> Storage:
    if request.param == "memory":
        return MemoryStorage()
    if request.param == "folder":
        return FolderStorage(tmp_path / "my runs" / "run +%41 ü")
    client = request.getfixturevalue("s3")
    return S3Storage(request.getfixturevalue("bucket"), "my runs/run +%41 ü", client)
