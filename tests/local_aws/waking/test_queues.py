"""The messages of a batch after an invocation, and the shapes of events."""

from __future__ import annotations

import json

import pytest

from local_aws.running.functions import Invocation
from local_aws.waking.delivery import shaped
from local_aws.waking.queues import failed_messages

BATCH = {"a", "b"}


def invocation(payload: bytes, error: str | None = None) -> Invocation:
    return Invocation("ingest", payload, error, 0.0, 0.0, False, "request")


def failures(*names: str) -> bytes:
    return json.dumps({"batchItemFailures": [{"itemIdentifier": name} for name in names]}).encode()


@pytest.mark.parametrize(
    ("result", "again"),
    [
        (invocation(failures()), set()),
        (invocation(b"null"), set()),
        (invocation(failures("a")), {"a"}),
        (invocation(failures("a", "stranger")), BATCH),
        (invocation(b'{"batchItemFailures": [{}]}'), BATCH),
        (invocation(b'"text"'), BATCH),
        (invocation(failures(), error="ValueError"), BATCH),
    ],
)
def test_failed_messages_are_redelivered_and_a_malformed_result_means_all(result, again):
    assert failed_messages(result, BATCH, reports_failures=True) == again


def test_a_function_that_reports_no_failures_has_handled_all():
    assert failed_messages(invocation(failures("a")), BATCH, reports_failures=False) == set()


def test_a_target_receives_the_event_in_its_own_shape():
    event = {"detail": {"text": 'a "quoted" text', "n": 1}}
    transformer = {
        "InputPathsMap": {"text": "$.detail.text", "gone": "$.detail.gone"},
        "InputTemplate": '{"text": <text>, "gone": <gone>}',
    }
    shape = json.loads(shaped({"InputTransformer": transformer}, event))
    assert shape == {"text": 'a "quoted" text', "gone": ""}
    assert json.loads(shaped({}, event)) == event
    assert shaped({"Input": "{}"}, event) == "{}"
