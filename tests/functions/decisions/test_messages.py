from __future__ import annotations

import json
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.decisions.messages import (
    Arrival,
    FileKind,
    JobEnded,
    NotUnderstood,
    arrival_of,
    arrivals_in,
    bucket_and_prefix,
    job_of,
)
from smdebug.files.names import END_MARKER, collections_key, event_key, index_key

WORKERS = ["worker_0", "worker_12345678", "a_b", "/job:worker/replica:0/device:GPU:0"]
FILES = [
    *((event_key(20, worker), FileKind.EVENT, 20, worker) for worker in WORKERS),
    *((index_key(7_000_123, worker), FileKind.INDEX, 7_000_123, worker) for worker in WORKERS),
    (collections_key("worker_0"), FileKind.COLLECTIONS, -1, "worker_0"),
    ("rules.json", FileKind.RULES, -1, ""),
    (END_MARKER, FileKind.END, -1, ""),
]


def notification(
    bucket: str,
    key: str,
    name: str = "ObjectCreated:Put",
    at: str = "2026-11-21T06:00:00.500Z",
) -> str:
    record = {
        "eventSource": "aws:s3",
        "eventName": name,
        "eventTime": at,
        "s3": {
            "bucket": {"name": bucket},
            "object": {"key": quote_plus(key), "size": 1, "sequencer": "0055AED6DCD90281E5"},
        },
    }
    return json.dumps({"Records": [record]})


def event(bucket: str, key: str) -> str:
    return json.dumps(
        {
            "source": "aws.s3",
            "detail-type": "Object Created",
            "time": "2026-11-21T06:00:00Z",
            "detail": {"bucket": {"name": bucket}, "object": {"key": key, "sequencer": "00"}},
        }
    )


@pytest.mark.parametrize(("file", "kind", "step", "worker"), FILES)
@pytest.mark.parametrize(
    ("prefix", "run"),
    [
        ("", "b"),
        ("run/", "b/run"),
        ("a/b c/ü%20+x/", "b/a/b c/ü%20+x"),
        ("events/000000000020/", "b/events/000000000020"),
        ("jobs/mnist-1/debug-output/", "b/jobs/mnist-1/debug-output"),
    ],
)
def test_a_file_of_a_run_is_known_by_the_end_of_its_key(prefix, run, file, kind, step, worker):
    expected = (run, kind, prefix + file, step, worker)
    (of_s3,) = arrivals_in(notification("b", prefix + file))
    (of_eventbridge,) = arrivals_in(event("b", prefix + file))
    assert of_s3[:5] == of_eventbridge[:5] == expected
    assert of_s3.uploaded - of_eventbridge.uploaded == pytest.approx(0.5)
    assert of_s3.sequencer == "0055AED6DCD90281E5"


@pytest.mark.parametrize(
    "name",
    ["ObjectCreated:Put", "ObjectCreated:Copy", "ObjectCreated:CompleteMultipartUpload"],
)
def test_every_kind_of_creation_is_an_arrival(name):
    assert arrivals_in(notification("b", "rules.json", name))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "run/",
        "run/other.json",
        "run/control/stop",
        "run/state/builtin/1.npz",
        "run/report/report.html",
        "run/events/000000000020/000000000021_worker_0.tfevents",  # not the folder of that step
        "run/index/000000000/000000001000_worker_0.json",
        "run/index/000000000/000000000001_.json",
        "run/index/000000000/000000000001_a/b.json",
        "run/events/000000000020/000000000020_worker_0.tfevents.tmp",
        "run/index/٠٠٠٠٠٠٠٠٠/000000000001_worker_0.json",
        "/rules.json",
        "run//rules.json",
        "run/../other/rules.json",
        "run/./rules.json",
        "run\n/rules.json",
        "myrules.json",
    ],
)
def test_any_other_key_belongs_to_no_run(key):
    assert arrivals_in(notification("b", key)) == arrivals_in(event("b", key)) == []


def test_what_is_removed_has_not_arrived():
    assert arrivals_in(notification("b", "rules.json", "ObjectRemoved:Delete")) == []
    assert arrivals_in(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent"})) == []


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
def test_an_event_of_sagemaker_announces_the_end_of_a_job(status):
    detail = {"TrainingJobName": "mnist-1", "TrainingJobStatus": status}
    event = {"source": "aws.sagemaker", "detail": detail}
    assert arrivals_in(json.dumps(event)) == [JobEnded("mnist-1", status)]
    detail["TrainingJobStatus"] = "InProgress"
    assert arrivals_in(json.dumps(event)) == []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"Records": 3}',
        '{"Records": [{}]}',
        '{"Records": [{"eventName": 3}]}',
        '{"Records": [{"eventName": "ObjectCreated:Put", "s3": []}]}',
        notification("b", "x").replace('{"name": "b"}', '{"name": 1}'),
        notification("b", "x").replace('{"name": "b"}', '{"name": ""}'),
        notification("b", "x").replace('{"name": "b"}', '{"name": "b/m"}'),
        notification("b", "x").replace('"key": "x"', '"key": 2'),
        notification("b", "x").replace('"key": "x"', '"key": "%FF"'),
        '{"source": "aws.s3", "detail-type": "Object Created"}',
        '{"source": "aws.sagemaker", "detail": {}}',
        "[" * 100_000,
    ],
)
def test_an_unknown_message_is_an_error(body):
    with pytest.raises(NotUnderstood, match="message"):
        arrivals_in(body)


@given(st.text())
def test_whatever_the_key_the_run_is_a_place_in_that_bucket(key):
    arrival = arrival_of("b", key)
    if arrival is not None:
        bucket, prefix = bucket_and_prefix(arrival.run)
        assert bucket == "b"
        assert key.startswith(prefix)
        assert not {"", ".", ".."} & set(prefix.split("/")[:-1])


def test_a_sagemaker_job_is_known_by_where_it_saves():
    assert job_of("b/prefix/mnist-2026/debug-output") == "mnist-2026"
    assert job_of("b/mnist-2026") is None
    assert job_of("b/debug-output") is None
    assert bucket_and_prefix("b") == ("b", "")
    assert Arrival("b/r", FileKind.END, "r/x").run == "b/r"
