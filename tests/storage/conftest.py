"""The three places, empty, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws

from smdebug.storage import Storage
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.storage.s3 import S3Storage

BUCKET = "runs"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def aws() -> Iterator[None]:
    with patch.dict(os.environ, CREDENTIALS), mock_aws():
        yield


@pytest.fixture
def bucket(aws):
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture(params=["memory", "folder", "s3"])
def storage(request, tmp_path) -> Storage:
    if request.param == "memory":
        return MemoryStorage()
    if request.param == "folder":
        return FolderStorage(tmp_path / "my runs" / "run +%41 ü")
    request.getfixturevalue("bucket")
    return S3Storage(BUCKET, "my runs/run +%41 ü")
