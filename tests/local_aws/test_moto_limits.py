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
