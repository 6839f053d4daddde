"""References of a template are resolved, and unknown ones are never ignored."""

from __future__ import annotations

from typing import Any

import pytest

from local_aws.errors import Unsupported
from local_aws.template import ACCOUNT, REGION, Resolver, known_only

TEMPLATE = {
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
    "Mappings": {"Consoles": {"aws": {"host": "console.aws.amazon.com"}}},
    "Parameters": {"Version": {"Default": "/a/version"}},
}


def resolver() -> Resolver:
    return Resolver(
        TEMPLATE,
        "stack",
        created=lambda name: (f"url-of-{name}", {"Arn": f"arn-of-{name}"}),
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Queue"}, "url-of-Queue"),
        ({"Ref": "AWS::AccountId"}, ACCOUNT),
        ({"Ref": "Version"}, "/a/version"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn-of-Queue"),
        ({"Fn::Join": ["/", ["a", {"Ref": "AWS::Region"}]]}, f"a/{REGION}"),
        ({"Fn::Select": [1, {"Fn::Split": [":", "a:b"]}]}, "b"),
        ({"Fn::FindInMap": ["Consoles", {"Ref": "AWS::Partition"}, "host"]}, "console.aws.amazon.com"),
        ({"Fn::Sub": "${Queue}-${Queue.Arn}-${!kept}"}, "url-of-Queue-arn-of-Queue-${kept}"),
        ({"Fn::Sub": ["${x}", {"x": {"Ref": "Queue"}}]}, "url-of-Queue"),
        ({"a": [{"Ref": "AWS::NoValue"}, 1], "b": {"Ref": "AWS::NoValue"}}, {"a": [1]}),
    ],
)
def test_a_reference_is_resolved(value: Any, expected: Any):
    assert resolver()(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::ImportValue": "x"},
        "{{resolve:secretsmanager:pager:SecretString:url::}}",
        {"Fn::If": ["a", 1, 2]},
        {"Condition": "x"},
        {"Fn::GetAtt": ["Queue", "NoSuch"]},
        "{{resolve:ssm:x}}",
    ],
)
def test_an_unknown_reference_raises(value: Any):
    with pytest.raises(Unsupported):
        resolver()(value)


def test_an_unsupported_property_raises():
    with pytest.raises(Unsupported, match=r"Fifo.*"):
        known_only("AWS::SQS::Queue", "Queue", {"Fifo": True}, ["QueueName"])
