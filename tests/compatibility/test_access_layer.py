from __future__ import annotations

import os
import time

import boto3
import pytest

from smdebug.core.access_layer import (
    TSAccessFile,
    TSAccessS3,
    check_dir_exists,
    has_training_ended,
    is_rule_signalled_gracetime_passed,
    training_has_ended,
)
from smdebug.core.access_layer.base import TSAccessBase
from smdebug.core.access_layer.file import SMDEBUG_TEMP_PATH_SUFFIX, get_temp_path
from smdebug.core.access_layer.s3handler import (
    DeleteRequest,
    ListRequest,
    ReadObjectRequest,
    S3Handler,
    _bucket,
)
from smdebug.core.access_layer.utils import delete_s3_prefixes, file_exists
from smdebug.core.s3_utils import list_s3_objects
from smdebug.exceptions import (
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
    StorageError,
)
from tests.support.mocked_aws import mocked_aws


@pytest.fixture(scope="module")
def runs():
    """A client of an S3 in this process that has an empty bucket `runs`."""
    with mocked_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="runs")
        yield client
    _bucket.cache_clear()


def test_a_local_file_appears_on_close(tmp_path):
    path = str(tmp_path / "new" / "f.txt")
    assert get_temp_path(path) == path + SMDEBUG_TEMP_PATH_SUFFIX
    with TSAccessFile(path, "wb") as file:
        assert file.write(b"abc") == [0, 3]
        assert file.write(b"defg") == [3, 4]
        file.flush()
        assert os.listdir(tmp_path / "new") == ["f.txt.tmp"]  # noqa: PTH208
    file.close()
    reader = TSAccessFile(path, "rb")
    reader.ingest_all()
    assert reader.read(3) == b"abc"
    assert reader.has_data()
    assert reader.read(4) == b"defg"
    assert not reader.has_data()
    with pytest.raises(SMDebugError, match="out of bounds"):
        reader.read(1)
    reader.close()


def test_a_new_writer_does_not_append_to_the_file_of_a_killed_one(tmp_path):
    (tmp_path / "f.txt.tmp").write_text("stale")
    file = TSAccessFile(str(tmp_path / "f.txt"), "a+")
    file.write("fresh")
    file.close()
    assert (tmp_path / "f.txt").read_text() == "fresh"


def test_the_base_class_names_its_subclasses():
    base = TSAccessBase()
    for ask in (base.open, base.flush, base.close, base.ingest_all, lambda: base.write(b"")):
        with pytest.raises(SMDebugNotImplementedError, match="TSAccessFile"):
            ask()


def test_a_training_has_ended_once_it_has_an_end_marker(tmp_path, monkeypatch):
    assert not has_training_ended(str(tmp_path))
    assert not check_dir_exists(str(tmp_path / "nowhere"))
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    training_has_ended(str(tmp_path))
    assert not has_training_ended(str(tmp_path))
    monkeypatch.delenv("TRAINING_JOB_NAME")
    training_has_ended(str(tmp_path))
    assert has_training_ended(str(tmp_path))
    assert check_dir_exists(str(tmp_path))
    assert (tmp_path / "training_job_end.ts").read_bytes() == b""


def test_a_rule_is_stopped_after_its_grace_time(tmp_path, monkeypatch):
    run = str(tmp_path)
    assert not is_rule_signalled_gracetime_passed(run)
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "stop")
    assert not is_rule_signalled_gracetime_passed(run)
    (tmp_path / "stop").write_text(str(int(time.time())))
    assert not is_rule_signalled_gracetime_passed(run)
    monkeypatch.setenv("rule_stop_grace_time_secs", "-5")
    assert is_rule_signalled_gracetime_passed(run)
    monkeypatch.delenv("rule_stop_grace_time_secs")
    for text in ("100", "garbage", ""):
        (tmp_path / "stop").write_text(text)
        assert is_rule_signalled_gracetime_passed(run)


def test_file_exists_knows_files_folders_and_objects(tmp_path):
    assert file_exists(str(tmp_path))
    assert not file_exists(str(tmp_path / "x"))


def test_an_object_is_uploaded_on_close(runs):
    with TSAccessS3("runs", "access/a") as file:
        assert file.write(b"abc") == [0, 3]
        assert file.write("def") == [3, 3]
        file.flush()
        assert not file_exists("s3://runs/access/a")
    assert file_exists("s3://runs/access/a")
    reader = TSAccessS3("runs", "access/a", "key", "secret", binary=False)
    reader.ingest_all()
    assert reader.read(6) == "abcdef"
    with pytest.raises(SMDebugNotImplementedError):
        reader.open("runs", "w")


def test_a_missing_bucket_is_not_created(runs):
    file = TSAccessS3("not-there", "a")
    file.write(b"x")
    with pytest.raises(StorageError, match="bucket does not exist"):
        file.close()


def test_an_end_marker_on_s3_is_seen(runs):
    training_has_ended("s3://runs/ended")
    assert has_training_ended("s3://runs/ended")
    assert not has_training_ended("s3://runs/other")


def test_objects_are_listed_read_and_deleted(runs, tmp_path):
    for key in ("h/a/1", "h/a/2", "h/b", "h/c/3"):
        runs.put_object(Bucket="runs", Key=key, Body=key.encode())
    assert S3Handler.list_prefix(ListRequest("runs", "h/", StartAfter="h/a/1")) == [
        "h/a/2",
        "h/b",
        "h/c/3",
    ]
    assert S3Handler.list_prefix(ListRequest("runs", "h/", "/")) == ["h/a/", "h/b", "h/c/"]
    assert S3Handler.list_prefixes([ListRequest("runs", "h/a"), ListRequest("runs", "none")]) == [
        ["h/a/1", "h/a/2"],
        [],
    ]
    assert list_s3_objects("runs", "h/a/") == (["h/a/1", "h/a/2"], "h/a/2")
    assert list_s3_objects("runs", "h/a/", "h/a/2") == ([], None)

    (tmp_path / "local").write_bytes(b"local")
    requests = [
        ReadObjectRequest("s3://runs/h/a/1"),
        ReadObjectRequest("s3://runs/h/a/1", 2, 1),
        ReadObjectRequest("s3://runs/h/a/1", 2),
        ReadObjectRequest("s3://runs/h/none"),
        ReadObjectRequest(str(tmp_path / "local")),
    ]
    assert S3Handler.get_objects(requests) == [b"h/a/1", b"a", b"a/1", None, b"local"]

    S3Handler.delete_prefix("s3://runs/h/a")
    assert S3Handler.list_prefix(ListRequest("runs", "h/")) == ["h/b", "h/c/3"]
    S3Handler.delete_prefix(delete_request=DeleteRequest("runs", "h/b"))
    delete_s3_prefixes("runs", ["h/"])
    assert S3Handler.list_prefix(ListRequest("runs", "h/")) == []


def test_only_lists_of_requests_are_accepted():
    for ask in (S3Handler.list_prefixes, S3Handler.get_objects, S3Handler.delete_prefixes):
        with pytest.raises(SMDebugTypeError, match="list of"):
            ask("s3://runs/x")
    with pytest.raises(SMDebugValueError, match="either"):
        S3Handler.delete_prefix()
    with pytest.raises(SMDebugValueError, match="s3://"):
        S3Handler.delete_prefix("/local")
