"""What AWS refuses in a request or a template, and moto lets pass: pure checks, without a stack."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import urlencode

import pytest

from local_aws.limits import BeyondLimit, Limits
from local_aws.limits.conflicts import WritesInProgress
from local_aws.limits.requests import check_request
from local_aws.limits.templates import refusals
from local_aws.permissions.calls import Request

QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"


def checked(service: str, body: Any = b"", *, path: str = "/", target: str = "", **more: Any) -> str:
    """The kind of the error with which a request is refused; empty if it is not."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        check_request(Request(service, "POST", path, "", target, data, **more), Limits())
    except BeyondLimit as limit:
        return limit.kind
    return ""


def nested(levels: int) -> dict[str, Any]:
    return {"S": "x"} if levels == 0 else {"M": {"a": nested(levels - 1)}}


INVOKE = "/2015-03-31/functions/f/invocations"


@pytest.mark.parametrize(
    ("most", "beyond", "kind"),
    [
        (
            ("dynamodb", {"Item": {"pk": nested(32)}}),
            ("dynamodb", {"Item": {"pk": nested(33)}}),
            "ValidationException",
        ),
        (
            ("dynamodb", {"TransactItems": [{"Put": {"Item": {"pk": nested(32)}}}]}),
            ("dynamodb", {"TransactItems": [{"Put": {"Item": {"pk": nested(33)}}}]}),
            "ValidationException",
        ),
        (
            ("dynamodb", {"RequestItems": {"t": [{}] * 25}}),
            ("dynamodb", {"RequestItems": {"t": [{}] * 26}}),
            "ValidationException",
        ),
        (
            ("dynamodb", {"RequestItems": {"t": {"Keys": [{}] * 100}}}),
            ("dynamodb", {"RequestItems": {"t": {"Keys": [{}] * 101}}}),
            "ValidationException",
        ),
        (
            ("sts", urlencode({"Policy": "x" * 2048}).encode()),
            ("sts", urlencode({"Policy": "x" * 2049}).encode()),
            "ValidationError",
        ),
    ],
)
def test_a_request_at_the_limit_passes_and_one_beyond_it_is_refused(most, beyond, kind):
    assert checked(*most) == ""
    assert checked(*beyond) == kind


def test_the_limits_of_names_and_keys_count_what_they_are_decoded_to():
    assert checked("s3", path="/bucket/" + "%C3%A9" * 512) == ""
    assert checked("s3", path="/bucket/" + "%C3%A9" * 513) == "KeyTooLongError"
    assert checked("scheduler", {"Target": {}}, path="/schedules/" + "n" * 64) == ""
    assert checked("scheduler", {"Target": {}}, path="/schedules/" + "n" * 65) == "ValidationException"


def test_a_call_that_is_waited_for_may_be_larger_than_one_that_is_not():
    assert checked("lambda", b"x" * (6 << 20), path=INVOKE) == ""
    assert checked("lambda", b"x" * ((6 << 20) + 1), path=INVOKE) == "RequestTooLargeException"
    assert checked("lambda", b"x" * (256 << 10), path=INVOKE, is_asynchronous=True) == ""
    large = b"x" * ((256 << 10) + 1)
    assert checked("lambda", large, path=INVOKE, is_asynchronous=True) == "RequestTooLargeException"


def policy(size: int) -> tuple[str, dict[str, Any]]:
    document = {"Statement": [{"Resource": "x" * size}]}
    return "AWS::IAM::Policy", {"Roles": ["act"], "PolicyDocument": document}


def rule(pattern: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "AWS::Events::Rule", {"EventPattern": pattern}


def mapping(batch: int, window: int, *, visibility: int, timeout: int) -> dict[str, Any]:
    return {
        "Queue": ("AWS::SQS::Queue", {"QueueName": "q", "VisibilityTimeout": visibility}),
        "Function": ("AWS::Lambda::Function", {"FunctionName": "f", "Timeout": timeout}),
        "Mapping": (
            "AWS::Lambda::EventSourceMapping",
            {
                "BatchSize": batch,
                "MaximumBatchingWindowInSeconds": window,
                "EventSourceArn": QUEUE,
                "FunctionName": "f",
            },
        ),
    }


def notified(*suffixes: str, service: str = "s3.amazonaws.com") -> dict[str, Any]:
    entries = [
        {
            "Event": "s3:ObjectCreated:*",
            "Queue": QUEUE,
            "Filter": {"S3Key": {"Rules": [{"Name": "suffix", "Value": suffix}]}},
        }
        for suffix in suffixes
    ]
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Resource": QUEUE}
    return {
        "Bucket": ("AWS::S3::Bucket", {"NotificationConfiguration": {"QueueConfigurations": entries}}),
        "Policy": ("AWS::SQS::QueuePolicy", {"PolicyDocument": {"Statement": [statement]}}),
    }


@pytest.mark.parametrize(
    ("resources", "refusal"),
    [
        ({"a": policy(5000), "b": policy(5000)}, ""),
        ({"a": policy(5200), "b": policy(5200)}, "inline policies of act"),
        ({"m": ("AWS::StepFunctions::StateMachine", {"DefinitionString": "x" * (1 << 20)})}, ""),
        (
            {"m": ("AWS::StepFunctions::StateMachine", {"DefinitionString": "x" * ((1 << 20) + 1)})},
            "The definition of m",
        ),
        ({"r": rule({"source": ["x" * 4080]})}, ""),
        ({"r": rule({"source": ["x" * 4096]})}, "EventBridge allows 4096"),
        ({"r": rule({"detail": {"key": [{"wildcard": "*/index/*/*.json"}, "a", None]}})}, ""),
        ({"r": rule({"detail": {"key": [{"wildcard": "**/index"}]}})}, "consecutive wildcard"),
        ({"r": rule({"detail": {"key": [{"regex": "a.*"}]}})}, "unknown match type regex"),
        ({"r": rule({"detail": {"$or": [{"a": [{"prefix": "x"}]}, {"b": [{"like": "y"}]}]}})}, "type like"),
        ({"r": rule({"source": []})}, "an array that is not empty"),
        (mapping(10, 0, visibility=60, timeout=60), ""),
        (mapping(11, 1, visibility=60, timeout=60), ""),
        (mapping(11, 0, visibility=60, timeout=60), "needs a window"),
        (mapping(10, 0, visibility=59, timeout=60), "visibility timeout of 59 s is less"),
        (notified(".tfevents", ".json"), ""),
        (notified(".json", "s.json"), "overlap"),
        (notified(".json", service="sns.amazonaws.com"), "does not let S3 send"),
    ],
)
def test_a_template_that_aws_would_refuse_is_refused_and_one_at_the_limit_is_not(resources, refusal):
    found = refusals(resources)
    assert [refusal in text for text in found] == ([True] if refusal else [])


def test_a_write_that_meets_the_transaction_of_another_is_a_conflict_and_one_of_its_own_is_none():
    writes, seen = WritesInProgress(), []

    def other():
        with writes.write("a") as is_taken:
            seen.append(is_taken)
        with writes.transaction(["b", "a"]) as taken:
            seen.append(taken)

    with writes.transaction(["a", "c"]) as taken:
        assert taken == [False, False]
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with writes.write("a") as is_taken:
            assert not is_taken
    assert seen == [True, [False, True]]
    seen.clear()
    other()
    assert seen == [False, [False, False]]


def test_a_transaction_that_meets_a_single_write_is_cancelled_and_two_single_writes_are_not():
    writes, seen = WritesInProgress(), []

    def other():
        with writes.write("a") as is_taken:
            seen.append(is_taken)
        with writes.transaction(["a"]) as taken:
            seen.append(taken)

    with writes.write("a"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [False, [True]]
