from __future__ import annotations

import subprocess
import sys

import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage import open_storage
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.storage.s3 import S3Storage


@pytest.mark.parametrize(
    ("path", "kind", "location"),
    [
        ("s3://bucket/prefix", S3Storage, "s3://bucket/prefix"),
        ("s3://bucket/prefix//", S3Storage, "s3://bucket/prefix"),
        ("s3://bucket", S3Storage, "s3://bucket"),
        ("s3://bucket/", S3Storage, "s3://bucket"),
        ("s3://Bucket/my runs/größe 1", S3Storage, "s3://Bucket/my runs/größe 1"),
        ("s3://bucket/a//b/", S3Storage, "s3://bucket/a//b"),
        ("memory://mine", MemoryStorage, "memory://mine"),
        ("/tmp/run", FolderStorage, "/tmp/run"),
        ("/tmp/run/", FolderStorage, "/tmp/run"),
        ("/tmp/s3://odd", FolderStorage, "/tmp/s3:/odd"),
    ],
)
def test_the_path_says_which_place_it_is(path, kind, location):
    storage = open_storage(path)
    assert type(storage) is kind
    assert storage.location == location


def test_memory_of_one_name_is_one_place():
    open_storage("memory://one place").write("key", b"x")
    assert open_storage("memory://one place").read("key") == b"x"
    assert not open_storage("memory://another").exists("key")
    assert not MemoryStorage().exists("key")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("S3://bucket/x", "lower case"),
        ("gs://bucket/x", "s3://bucket/prefix"),
        ("file:///tmp/x", "a local path"),
        ("memory://", "memory://name"),
        ("s3://", "names a bucket"),
        ("s3:///prefix", "names a bucket"),
        ("s3://bucket/a/../b", "no . or .."),
        ("s3://bucket/\ud800", "Unicode"),
        ("s3://bucket/a\0b", "NUL"),
        ("", "not the path"),
    ],
)
def test_what_is_not_a_place_is_refused_with_what_would_be(path, problem):
    with pytest.raises(SMDebugValueError, match=problem):
        open_storage(path)


@pytest.mark.parametrize("path", [None, 3, b"/tmp"])
def test_a_place_is_text_a_path_or_a_storage(path):
    with pytest.raises(SMDebugTypeError, match="path"):
        open_storage(path)


def test_opening_a_local_run_imports_no_boto3():
    script = """
import sys
from smdebug.storage import open_storage
open_storage("/tmp/x")
open_storage("s3://bucket/x")
assert not {"boto3", "botocore", "asyncio", "concurrent.futures", "inspect"} & set(sys.modules)
"""
    path = ":".join(sys.path)
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": path})
