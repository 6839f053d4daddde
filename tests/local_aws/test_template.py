"""The references of a template are followed, and what is not known is never left out silently."""

from __future__ import annotations

from typing import Any

import pytest

from local_aws.errors import Unsupported
from local_aws.template import ACCOUNT, REGION, Resolver, known_only

TEMPLATE = {
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
    "Parameters": {"Version": {"Default": "/a/version"}},
}


def resolver() -> Resolver:
    return Resolver(
        TEMPLATE,
        "stack",
        made=lambda name: (f"url-of-{name}", {"Arn": f"arn-of-{name}"}),
        secret=lambda name, field: f"{field} of {name}",
    )


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"Ref": "Queue"}, "url-of-Queue"),
        ({"Ref": "AWS::AccountId"}, ACCOUNT),
        ({"Ref": "Version"}, "/a/version"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn-of-Queue"),
        ({"Fn::Join": ["/", ["a", {"Ref": "AWS::Region"}]]}, f"a/{REGION}"),
        ({"Fn::Select": [1, {"Fn::Split": [":", "a:b"]}]}, "b"),
        ({"Fn::Sub": "${Queue}-${Queue.Arn}-${!kept}"}, "url-of-Queue-arn-of-Queue-${kept}"),
        ({"Fn::Sub": ["${x}", {"x": {"Ref": "Queue"}}]}, "url-of-Queue"),
        ({"a": [{"Ref": "AWS::NoValue"}, 1], "b": {"Ref": "AWS::NoValue"}}, {"a": [1]}),
        ("{{resolve:secretsmanager:pager:SecretString:url::}}", "url of pager"),
    ],
)
def test_a_reference_becomes_what_it_refers_to(told: Any, meant: Any):
    assert resolver()(told) == meant


@pytest.mark.parametrize(
    "told",
    [
        {"Fn::ImportValue": "x"},
        {"Fn::If": ["a", 1, 2]},
        {"Condition": "x"},
        {"Fn::GetAtt": ["Queue", "NoSuch"]},
        "{{resolve:ssm:x}}",
    ],
)
def test_what_is_not_known_raises(told: Any):
    with pytest.raises(Unsupported):
        resolver()(told)


def test_a_property_that_nobody_looks_at_raises():
    with pytest.raises(Unsupported, match=r"Fifo.*"):
        known_only("AWS::SQS::Queue", "Queue", {"Fifo": True}, ["QueueName"])
