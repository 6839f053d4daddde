"""What becomes of the messages of a batch, and when schedules are due."""

from __future__ import annotations

import json

import pytest

from local_aws.delivery import moment_of, seconds_of_rate, shaped
from local_aws.errors import Unsupported
from local_aws.functions import Invocation
from local_aws.queues import failed_of

BATCH = {"a", "b"}


def answered(payload: bytes, error: str | None = None) -> Invocation:
    return Invocation("ingest", payload, error, 0.0, 0.0, False, "request")


def told_failed(*names: str) -> bytes:
    return json.dumps({"batchItemFailures": [{"itemIdentifier": one} for one in names]}).encode()


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (answered(told_failed()), set()),
        (answered(b"null"), set()),
        (answered(told_failed("a")), {"a"}),
        (answered(told_failed("a", "stranger")), BATCH),
        (answered(b'{"batchItemFailures": [{}]}'), BATCH),
        (answered(b'"text"'), BATCH),
        (answered(told_failed(), error="ValueError"), BATCH),
    ],
)
def test_what_failed_comes_again_and_an_answer_without_sense_means_all(answer, again):
    assert failed_of(answer, BATCH, tells_failures=True) == again


def test_a_function_that_tells_no_failures_has_done_all():
    assert failed_of(answered(told_failed("a")), BATCH, tells_failures=False) == set()


def test_rates_and_moments_are_read():
    assert seconds_of_rate("rate(5 minutes)") == 300
    assert seconds_of_rate("rate(1 hour)") == 3600
    assert seconds_of_rate(None) is None
    assert moment_of("at(1970-01-02T00:00:00)") == 86400
    for unknown in ("cron(0 12 * * ? *)", "rate(2 fortnights)"):
        with pytest.raises(Unsupported):
            seconds_of_rate(unknown)
    with pytest.raises(Unsupported):
        moment_of("rate(5 minutes)")


def test_a_target_gets_the_event_in_the_shape_that_it_asked_for():
    event = {"detail": {"text": 'a "quoted" text', "n": 1}}
    transformer = {
        "InputPathsMap": {"text": "$.detail.text", "gone": "$.detail.gone"},
        "InputTemplate": '{"text": <text>, "gone": <gone>}',
    }
    shape = json.loads(shaped({"InputTransformer": transformer}, event))
    assert shape == {"text": 'a "quoted" text', "gone": ""}
    assert json.loads(shaped({}, event)) == event
    assert shaped({"Input": "{}"}, event) == "{}"
