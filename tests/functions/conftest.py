"""AWS in this process, with the resources of the stack."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.mocked_aws import mocked_aws


@dataclass
class Deployed:
    """The environment of the functions, and clients to inspect its resources."""

    environment: dict[str, str]
    s3: Any
    sqs: Any
    dynamodb: Any
    scheduler: Any
    stepfunctions: Any


@pytest.fixture
def deployed() -> Iterator[Deployed]:
    import boto3

    from functions import wiring

    with mocked_aws():
        clients = {name: boto3.client(name) for name in _SERVICES}
        clients["s3"].create_bucket(Bucket="runs")
        clients["dynamodb"].create_table(
            TableName="steps",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        queue = clients["sqs"].create_queue(QueueName="arrivals")["QueueUrl"]
        clients["scheduler"].create_schedule_group(Name="runs")
        definition = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
        machine = clients["stepfunctions"].create_state_machine(
            name="evaluation",
            definition=json.dumps(definition),
            roleArn="arn:aws:iam::123456789012:role/workflow",
        )
        environment = {
            "SMDEBUG_TABLE": "steps",
            "SMDEBUG_CHECKS_QUEUE": queue,
            "SMDEBUG_WORKFLOW": machine["stateMachineArn"],
            "SMDEBUG_SCHEDULE_GROUP": "runs",
            "SMDEBUG_SCHEDULE_ROLE": "arn:aws:iam::123456789012:role/schedules",
            "SMDEBUG_WATCH_ARN": "arn:aws:lambda:us-east-1:123456789012:function:watch",
            "SMDEBUG_DEFAULT_RULES": "ExplodingTensor",
            "SMDEBUG_INDEX_RETENTION": str(90 * 86_400),
            "SMDEBUG_INCOMPLETE_STEP_TIMEOUT": "900",
            "SMDEBUG_STALL_TIMEOUT": "1800",
            "SMDEBUG_SILENCE_TIMEOUT": "21600",
            "SMDEBUG_CUSTOM_RULES": "{}",
            "SMDEBUG_TENANTS": '{"prefixes": [["all", "runs/"]], "shared": []}',
            "SMDEBUG_CUSTOM_RULES_PER_RUN": "10",
            "SMDEBUG_CUSTOM_GB_SECONDS": "100000",
            "SMDEBUG_CUSTOM_MEMORY": "1024",
        }
        with patch.dict(os.environ, environment):
            _forget(wiring)
            yield Deployed(environment, **clients)
            _forget(wiring)


_SERVICES = ("s3", "sqs", "dynamodb", "scheduler", "stepfunctions")


def _forget(wiring: Any) -> None:
    wiring.world.cache_clear()
    wiring.items.cache_clear()
    wiring.client.cache_clear()
