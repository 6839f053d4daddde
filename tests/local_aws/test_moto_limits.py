"""Canaries: limits that moto alone does not have. If one fails, local_aws/limits may leave that one to moto.

Nothing is patched here: the stacks of other tests run in other processes.
"""

from __future__ import annotations

import json
import time
from typing import Any

import boto3
import pytest

from tests.support.mocked_aws import mocked_aws

REGION = "us-east-1"
KB = 1024


@pytest.fixture(autouse=True)
def aws():
    with mocked_aws(REGION):
        yield


@pytest.fixture
def table() -> Any:
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


def update(client: Any, expression: str, values: dict[str, Any], **more: Any) -> None:
    client.update_item(
        TableName="t",
        Key={"pk": {"S": "k"}},
        UpdateExpression=expression,
        ExpressionAttributeValues=values,
        **more,
    )


def test_an_item_may_grow_beyond_400_kb_within_a_map(table: Any):
    update(table, "SET m = :m", {":m": {"M": {"a": {"S": "x" * 300 * KB}}}})
    update(table, "SET m.b = :more", {":more": {"S": "x" * 120 * KB}})


def test_an_expression_may_have_more_than_4_kb(table: Any):
    names = {f"#{'a' * 100}{n}": f"a{n}" for n in range(40)}
    expression = "SET " + ", ".join(f"{alias} = :v" for alias in names)
    update(table, expression, {":v": {"N": "1"}}, ExpressionAttributeNames=names)


def test_an_expired_item_stays(table: Any):
    ttl = {"Enabled": True, "AttributeName": "expires"}
    table.update_time_to_live(TableName="t", TimeToLiveSpecification=ttl)
    update(table, "SET expires = :e", {":e": {"N": f"{time.time() - 86_400:.0f}"}})
    assert "Item" in table.get_item(TableName="t", Key={"pk": {"S": "k"}})


def test_a_message_may_have_more_than_256_kb():
    client = boto3.client("sqs")
    url = client.create_queue(QueueName="q")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="x" * 300 * KB)


def test_an_event_may_have_more_than_256_kb():
    detail = json.dumps({"a": "x" * 300 * KB})
    entry = {"Source": "x", "DetailType": "y", "Detail": detail}
    assert boto3.client("events").put_events(Entries=[entry] * 5)["FailedEntryCount"] == 0


def test_a_bucket_may_notify_a_queue_that_is_gone():
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    arn = f"arn:aws:sqs:{REGION}:123456789012:gone"
    configuration = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
    client.put_bucket_notification_configuration(Bucket="bucket", NotificationConfiguration=configuration)


def test_an_express_machine_is_executed_as_a_standard_one():
    from moto.stepfunctions.models import StateMachine

    machine = StateMachine("123456789012", REGION, "m", "{}", "role", {}, {}, {}, sm_type="EXPRESS")
    assert (machine.type, machine.sm_type) == ("EXPRESS", "STANDARD")


def test_no_message_says_which_chain_of_calls_it_belongs_to():
    client = boto3.client("sqs")
    url = client.create_queue(QueueName="q")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="x")
    (message,) = client.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert "AWSTraceHeader" not in message["Attributes"]


def test_values_may_be_nested_deeper_than_32(table: Any):
    value: dict[str, Any] = {"S": "x"}
    for _ in range(40):
        value = {"M": {"a": value}}
    update(table, "SET v = :v", {":v": value})


def test_a_key_of_an_object_may_have_more_than_1024_bytes_decoded():
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    client.put_object(Bucket="bucket", Key="é" * 600, Body=b"")


def test_the_policy_of_a_session_may_have_more_than_2048_characters():
    resources = [f"arn:aws:s3:::bucket/{number:0100}" for number in range(30)]
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": resources}
    boto3.client("sts").assume_role(
        RoleArn="arn:aws:iam::123456789012:role/any",
        RoleSessionName="session",
        Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )


def test_a_missing_schedule_group_is_an_internal_error():
    with pytest.raises(KeyError):
        boto3.client("scheduler").create_schedule(
            Name="s",
            GroupName="missing",
            ScheduleExpression="rate(1 hour)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={
                "Arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
                "RoleArn": "arn:aws:iam::1:role/r",
            },
        )


def test_a_pattern_may_have_unknown_match_types_and_consecutive_wildcards():
    client = boto3.client("events")
    for matcher in ({"regex": "a"}, {"wildcard": "**"}):
        client.put_rule(Name="r", EventPattern=json.dumps({"source": [matcher]}))


def test_notifications_may_overlap_and_a_queue_needs_no_policy():
    queue = boto3.client("sqs").create_queue(QueueName="q")["QueueUrl"].rpartition("/")[2]
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    entries = [
        {
            "QueueArn": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
            "Events": ["s3:ObjectCreated:*"],
            "Filter": {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}},
        }
        for suffix in (".json", "s.json")
    ]
    client.put_bucket_notification_configuration(
        Bucket="bucket", NotificationConfiguration={"QueueConfigurations": entries}
    )


def test_inline_policies_may_be_too_long():
    client = boto3.client("iam")
    client.create_role(RoleName="r", AssumeRolePolicyDocument="{}")
    resources = [f"arn:aws:s3:::bucket/{number:0100}" for number in range(120)]
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": resources}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=document)
