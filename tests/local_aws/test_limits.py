"""The limits of AWS, held by the local stack. On moto alone these fail, except where a test says otherwise.

Some numbers are lowered, because a laptop would not reach them; `test_the_numbers_are_those_of_aws` has all.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws.errors import LocalStackError
from local_aws.limits import BeyondLimit, Limits
from local_aws.limits.lineage import Lineages
from local_aws.limits.requests import check_request
from local_aws.permissions.calls import Request
from local_aws.running.environments import uses_more_than

KB = 1024
LOWERED = {"table_writes": 40, "key_writes": 20, "express_seconds": 1, "concurrency": 4}
ROLE = "arn:aws:iam::123456789012:role/any"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(limits=LOWERED) as stack:
        yield stack


@pytest.fixture(scope="module")
def table(aws: LocalAws) -> Any:
    """A table beside the stack's."""
    client = aws.client("dynamodb")
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    client.create_table(
        TableName="t",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


def key(name: str) -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": "1"}}


def refusal(call: Any, **arguments: Any) -> str:
    """The code of the error with which AWS refuses the call."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    # Without an id the workflows of moto fail at once instead of trying again.
    assert caught.value.response["ResponseMetadata"]["RequestId"]
    return str(caught.value.response["Error"]["Code"])


def test_the_numbers_are_those_of_aws():
    assert dataclasses.asdict(Limits()) == {
        "item_bytes": 409_600,
        "expression_bytes": 4096,
        "transaction_actions": 100,
        "table_writes": 4000,
        "table_reads": 12_000,
        "key_writes": 1000,
        "state_bytes": 262_144,
        "express_seconds": 300,
        "concurrency": 10,
        "environment_bytes": 4096,
        "code_bytes": 262_144_000,
        "answer_bytes": 6_291_456,
        "asynchronous_bytes": 262_144,
        "hops": 16,
        "message_bytes": 262_144,
        "event_bytes": 262_144,
        "events_bytes": 1_048_576,
    }


# DynamoDB


@pytest.fixture(scope="module")
def unthrottled() -> Iterator[LocalAws]:
    with LocalAws() as stack:
        yield stack


def test_an_item_that_grows_beyond_400_kb_by_an_update_stays_as_it_was(unthrottled: LocalAws):
    client, name = unthrottled.client("dynamodb"), unthrottled.outputs["StepIndex"]
    start = {"m": {"M": {"a": {"S": "x" * 300 * KB}}}}
    client.put_item(TableName=name, Item={**key("grows"), **start})
    growing = {
        "TableName": name,
        "Key": key("grows"),
        "UpdateExpression": "SET m.b = :more",
        "ExpressionAttributeValues": {":more": {"S": "x" * 120 * KB}},
    }
    assert refusal(client.update_item, **growing) == "ValidationException"
    found = client.get_item(TableName=name, Key=key("grows"))["Item"]
    assert list(found["m"]["M"]) == ["a"]


def test_a_set_that_grows_beyond_400_kb_is_refused(unthrottled: LocalAws):
    client, name = unthrottled.client("dynamodb"), unthrottled.outputs["StepIndex"]

    def add(kind: str) -> None:
        client.update_item(
            TableName=name,
            Key=key("set"),
            UpdateExpression="ADD s :more",
            ExpressionAttributeValues={":more": {"SS": [f"{kind}{n:05}" + "x" * 194 for n in range(1100)]}},
        )

    add("a")
    assert refusal(add, kind="b") == "ValidationException"


def test_an_expression_of_more_than_4_kb_is_refused(unthrottled: LocalAws):
    client, name = unthrottled.client("dynamodb"), unthrottled.outputs["StepIndex"]
    names = {f"#{'a' * 100}{n}": f"a{n}" for n in range(40)}
    expression = "SET " + ", ".join(f"{alias} = :v" for alias in names)
    assert len(expression) > 4096
    arguments = {
        "TableName": name,
        "Key": key("expression"),
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":v": {"N": "1"}},
    }
    assert refusal(client.update_item, **arguments) == "ValidationException"


def test_an_expression_within_a_transaction_is_limited_too():
    payload = {"TransactItems": [{"Update": {"UpdateExpression": "S" * 5000}}]}
    request = Request("dynamodb", "POST", "/", "", "X.TransactWriteItems", json.dumps(payload).encode())
    with pytest.raises(BeyondLimit, match="expression size: 5000"):
        check_request(request, Limits())


def test_a_transaction_of_101_actions_is_refused(unthrottled: LocalAws):
    client, name = unthrottled.client("dynamodb"), unthrottled.outputs["StepIndex"]
    actions = [{"Put": {"TableName": name, "Item": key(f"t{n}")}} for n in range(101)]
    assert refusal(client.transact_write_items, TransactItems=actions) == "ValidationException"
    client.transact_write_items(TransactItems=actions[:100])


def test_a_table_and_a_key_are_throttled(aws: LocalAws, table: Any):
    import boto3

    client = boto3.client(
        "dynamodb",
        endpoint_url=aws.endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}),
    )

    def write(names: list[str]) -> None:
        for name in names:
            client.put_item(TableName="t", Item={**key(name), "a": {"S": "x" * 9 * KB}})

    # Ten units each, in one second or two: the same key may get 20 a second, the table 40.
    assert refusal(write, names=["hot"] * 8) == "ThrottlingException"
    assert refusal(write, names=[f"cold {n}" for n in range(16)]) == "ThrottlingException"


def test_an_expired_item_is_deleted(unthrottled: LocalAws):
    client, name = unthrottled.client("dynamodb"), unthrottled.outputs["StepIndex"]

    def is_there(item: str) -> bool:
        return "Item" in client.get_item(TableName=name, Key=key(item), ConsistentRead=True)

    now = unthrottled.ask("now")
    for item, expires in (("old", now + 600), ("young", now + 86_400)):
        client.put_item(TableName=name, Item={**key(item), "expires": {"N": f"{expires:.0f}"}})
    assert is_there("old")
    unthrottled.forward(3600)
    unthrottled.wait_until(lambda: not is_there("old"), what="the item to expire", seconds=20)
    assert is_there("young")


# SQS, EventBridge, S3, Step Functions


def test_a_message_of_more_than_256_kb_is_refused(aws: LocalAws):
    client = aws.client("sqs")
    url = client.create_queue(QueueName="large")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="x" * 256 * KB)
    sending = {"QueueUrl": url, "MessageBody": "x" * (256 * KB + 1)}
    assert refusal(client.send_message, **sending) == "InvalidParameterValue"
    entries = [{"Id": str(n), "MessageBody": "x" * 90 * KB} for n in range(3)]
    assert refusal(client.send_message_batch, QueueUrl=url, Entries=entries)


def test_an_event_of_more_than_256_kb_fails_alone(aws: LocalAws):
    entry = {"Source": "x", "DetailType": "y", "Detail": json.dumps({"a": "x" * 10})}
    large = {**entry, "Detail": json.dumps({"a": "x" * 257 * KB})}
    answer = aws.client("events").put_events(Entries=[entry, large, entry])
    assert answer["FailedEntryCount"] == 1
    assert ["EventId" in result for result in answer["Entries"]] == [True, False, True]
    many = [{**entry, "Detail": json.dumps({"a": "x" * 220 * KB})}] * 5
    assert refusal(aws.client("events").put_events, Entries=many) == "ValidationException"


def test_a_bucket_cannot_notify_a_queue_that_is_gone(aws: LocalAws):
    client = aws.client("s3")
    client.create_bucket(Bucket="notifying")
    arn = "arn:aws:sqs:us-east-1:123456789012:gone"
    configuration = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
    arguments: dict[str, Any] = {"Bucket": "notifying", "NotificationConfiguration": configuration}
    refused = refusal(client.put_bucket_notification_configuration, **arguments)
    assert refused == "InvalidArgument"
    client.put_bucket_notification_configuration(**arguments, SkipDestinationValidation=True)


def machine(aws: LocalAws, name: str, states: dict[str, Any], kind: str = "EXPRESS") -> str:
    definition = json.dumps({"StartAt": next(iter(states)), "States": states})
    client = aws.client("stepfunctions")
    created = client.create_state_machine(name=name, definition=definition, roleArn=ROLE, type=kind)
    return str(created["stateMachineArn"])


def test_an_express_execution_ends_after_its_five_minutes(aws: LocalAws):
    arn = machine(aws, "slow", {"Wait": {"Type": "Wait", "Seconds": 60, "End": True}})
    client = aws.client("stepfunctions")
    execution = client.start_execution(stateMachineArn=arn, input="{}")["executionArn"]
    status = aws.wait_until(
        lambda: (found := client.describe_execution(executionArn=execution)["status"]) != "RUNNING" and found,
        what="the execution to end",
        seconds=30,
    )
    assert status == "TIMED_OUT"


def test_the_input_of_an_execution_is_limited_to_256_kb(aws: LocalAws):
    arn = machine(aws, "small", {"Done": {"Type": "Succeed"}})
    large = {"stateMachineArn": arn, "input": json.dumps("x" * 256 * KB)}
    assert refusal(aws.client("stepfunctions").start_execution, **large)


def test_the_state_of_an_execution_is_limited_to_256_kb(aws: LocalAws):
    """This one moto has by itself."""
    doubled = {"Type": "Pass", "Parameters": {"text.$": "States.Format('{}{}', $.text, $.text)"}}
    states = {"Double": {**doubled, "Next": "Again"}, "Again": {**doubled, "End": True}}
    arn = machine(aws, "growing", states)
    client = aws.client("stepfunctions")
    given = json.dumps({"text": "x" * 100 * KB})
    execution = client.start_execution(stateMachineArn=arn, input=given)["executionArn"]
    found = aws.wait_until(
        lambda: (now := client.describe_execution(executionArn=execution))["status"] != "RUNNING" and now,
        what="the execution to end",
        seconds=30,
    )
    assert (found["status"], found["error"]) == ("FAILED", "States.DataLimitExceeded")


# Lambda


def test_the_environment_of_a_function_is_limited_to_4_kb(aws: LocalAws):
    with pytest.raises(LocalStackError, match="and Lambda allows 4096"):
        LocalAws(environment={"RULES": "x" * 4000}).start()


def test_a_function_that_uses_more_memory_than_it_has_is_noticed():
    import os

    assert uses_more_than(os.getpid(), 1)
    assert not uses_more_than(os.getpid(), 100_000)


def test_a_chain_of_calls_is_cut_after_sixteen():
    lineages, message, hops = Lineages(16), "first", 0
    while (lineage := lineages.next([message], "ingest")) is not None:
        hops += 1
        lineages.begin("environment", lineage)
        message = f"message {hops}"
        with lineages.request_of("environment"):
            lineages.sent(message)
    assert hops == 16


def test_messages_of_others_begin_a_new_chain():
    lineages = Lineages(16)
    lineages.begin("environment", {"ingest": 16})
    lineages.sent("of a state machine")
    assert lineages.next(["of a state machine"], "ingest") == {"ingest": 1}
    with lineages.request_of("environment"):
        lineages.sent("of ingest")
    assert lineages.next(["of a state machine", "of ingest"], "ingest") is None
    assert lineages.next(["of ingest"], "other") == {"ingest": 16, "other": 1}


@pytest.mark.parametrize(
    "order", [("long", "short", "none"), ("short", "none", "long"), ("none", "long", "short")]
)
def test_of_several_messages_the_longest_chain_counts_for_each_function(order):
    lineages = Lineages(16)
    for message, lineage in {"long": {"ingest": 15, "watch": 1}, "short": {"ingest": 1, "watch": 9}}.items():
        lineages.begin("environment", lineage)
        with lineages.request_of("environment"):
            lineages.sent(message)
    assert lineages.next(order, "ingest") == {"ingest": 16, "watch": 9}
    assert lineages.next(order, "watch") == {"ingest": 15, "watch": 10}
    lineages.begin("environment", {"ingest": 16})
    with lineages.request_of("environment"):
        lineages.sent("longest")
    assert lineages.next((*order, "longest"), "ingest") is None
    assert lineages.next(("longest", *order), "ingest") is None


def test_a_missing_schedule_group_is_said(unthrottled: LocalAws):
    refused = refusal(
        unthrottled.client("scheduler").create_schedule,
        Name="s",
        GroupName="missing",
        ScheduleExpression="rate(1 hour)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": "arn:aws:lambda:us-east-1:123456789012:function:f", "RoleArn": ROLE},
    )
    assert refused == "ResourceNotFoundException"


def test_a_key_of_more_than_1024_bytes_and_a_long_session_policy_are_refused(unthrottled: LocalAws):
    put = unthrottled.client("s3").put_object
    assert refusal(put, Bucket=unthrottled.bucket, Key="é" * 513, Body=b"") == "KeyTooLongError"
    assume = unthrottled.client("sts").assume_role
    assert refusal(assume, RoleArn=ROLE, RoleSessionName="session", Policy=" " * 2049) == "ValidationError"


def test_transactions_that_meet_are_cancelled_or_happen_whole(unthrottled: LocalAws):
    client = unthrottled.client("dynamodb")
    name = unthrottled.outputs["StepIndex"]
    outcomes: list[str] = []
    begin = threading.Barrier(8)

    def added(item: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": name,
                "Key": key(item),
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }

    def write(thread: int) -> None:
        begin.wait()
        # Items of its own make a transaction long enough for others to begin within it.
        items = [added("together"), *(added(f"own-{thread}-{number}") for number in range(60))]
        for _ in range(3):
            try:
                client.transact_write_items(TransactItems=items)
                outcomes.append("done")
            except client.exceptions.TransactionCanceledException as error:
                outcomes.append(error.response["CancellationReasons"][0]["Code"])

    for _ in range(50):  # as often as it takes on this machine until two of them meet
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        if "TransactionConflict" in outcomes:
            break
    assert set(outcomes) == {"done", "TransactionConflict"}
    item = client.get_item(TableName=name, Key=key("together"), ConsistentRead=True)["Item"]
    assert int(item["n"]["N"]) == outcomes.count("done")
