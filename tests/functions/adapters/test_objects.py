"""One set of promises for buckets in memory and in S3, as far as moto keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.adapters.aws import ObjectsInS3
from functions.adapters.in_memory import MemoryObjects
from functions.ports import LARGEST_OBJECT, Objects
from smdebug.exceptions import DamagedFile, ObjectMissing
from tests.support.mocked_aws import mocked_aws

Write = Callable[[str, str, bytes], None]
_buckets = (f"bucket-{number}" for number in range(10**9))


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    import boto3

    with mocked_aws():
        yield boto3.client("s3")


def in_s3(client: Any) -> tuple[Objects, Write]:
    def write(bucket: str, key: str, content: bytes) -> None:
        client.put_object(Bucket=bucket, Key=key, Body=content)

    return ObjectsInS3(lambda: client), write


def in_memory() -> tuple[Objects, Write]:
    objects = MemoryObjects()

    def write(bucket: str, key: str, content: bytes) -> None:
        objects.write(bucket, key, content, modified=1_800_000_000.75)

    return objects, write


@pytest.fixture(params=["memory", "s3"])
def place(request: pytest.FixtureRequest) -> tuple[Objects, Write, str]:
    bucket = next(_buckets)
    if request.param == "memory":
        return *in_memory(), bucket
    client = request.getfixturevalue("s3")
    client.create_bucket(Bucket=bucket)
    return *in_s3(client), bucket


def keys(objects: Objects, *asked: Any) -> list[str]:
    return [listed.key for listed in objects.list(*asked)]


def test_what_is_written_is_read_and_the_last_one_counts(place):
    objects, write, bucket = place
    write(bucket, "a", b"first")
    write(bucket, "a", b"second")
    assert objects.read(bucket, "a") == b"second"
    assert keys(objects, bucket, "") == ["a"]


def test_what_is_not_there_is_missing_and_in_no_listing(place):
    objects, write, bucket = place
    write(bucket, "there", b"")
    with pytest.raises(ObjectMissing, match=f"s3://{bucket}/not there"):
        objects.read(bucket, "not there")
    assert keys(objects, bucket, "not") == []


def test_an_object_that_would_fill_the_memory_is_not_read(place):
    objects, write, bucket = place
    write(bucket, "largest", bytes(LARGEST_OBJECT))
    write(bucket, "larger", bytes(LARGEST_OBJECT + 1))
    assert len(objects.read(bucket, "largest")) == LARGEST_OBJECT
    with pytest.raises(DamagedFile, match=f"{bucket}/larger.* at most {LARGEST_OBJECT}"):
        objects.read(bucket, "larger")


def test_the_body_of_a_larger_object_is_not_fetched():
    class Body:
        def close(self) -> None:
            pass

    class Client:
        def get_object(self, **request: Any) -> dict[str, Any]:
            return {"ContentLength": 1 << 40, "Body": Body()}

    with pytest.raises(DamagedFile):
        ObjectsInS3(Client).read("runs", "mnist/rules.json")


def test_a_listing_is_in_the_order_of_the_keys_bytes(place):
    objects, write, bucket = place
    names = ["b", "a/2", "a/10", "A", "a", "a/", "ä", "z", "￿", "\U0001f600", "a-", "a.b", "a0"]
    for name in names:
        write(bucket, name, b"")
    assert keys(objects, bucket, "") == sorted(names, key=str.encode)


def test_a_listing_begins_behind_a_key_that_need_not_be_there(place):
    objects, write, bucket = place
    for step in (8, 9, 10, 11):
        write(bucket, f"run/index/{step:012}_worker_0.json", b"")
    write(bucket, "run/index", b"")
    write(bucket, "sun/index/1", b"")
    after = f"run/index/{9:012}"
    found = keys(objects, bucket, "run/index/", after)
    assert found == [f"run/index/{step:012}_worker_0.json" for step in (9, 10, 11)]
    assert keys(objects, bucket, "run/index/", f"run/index/{10:012}_worker_0.json") == [
        f"run/index/{11:012}_worker_0.json"
    ]
    assert keys(objects, bucket, "run/index/", "a") == keys(objects, bucket, "run/index/")
    assert keys(objects, bucket, "run/index/", "s") == []


def test_a_long_listing_is_returned_whole(place):
    objects, write, bucket = place
    for number in range(1005):
        write(bucket, f"{number:05}", b"")
    assert keys(objects, bucket, "") == [f"{number:05}" for number in range(1005)]
    assert len(keys(objects, bucket, "", "00002")) == 1002


def test_the_time_of_an_object_is_in_whole_seconds(place):
    objects, write, bucket = place
    write(bucket, "a", b"")
    (listed,) = objects.list(bucket, "")
    assert listed.modified > 1_700_000_000
    assert listed.modified == int(listed.modified)


NAMES = st.text(alphabet="a/_-0é", min_size=1, max_size=4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(NAMES, max_size=8), st.text(alphabet="a/0", max_size=2), st.none() | NAMES)
def test_memory_and_s3_list_the_same(s3, names, prefix, after):
    bucket = next(_buckets)
    s3.create_bucket(Bucket=bucket)
    found = []
    for objects, write in (in_memory(), in_s3(s3)):
        for name in sorted(names):
            write(bucket, name, b"x")
        found.append(keys(objects, bucket, prefix, after))
    assert found[0] == found[1]
