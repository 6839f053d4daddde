"""Checks of a live stack from outside, on a stack in moto."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from infra.settings import Settings
from smdebug.service.checks.live_checks import batches_of, check_deployment
from tests.support.mocked_aws import mocked_aws

REGION = "us-east-1"
SUFFIXES = (".tfevents", ".json", "training_job_end.ts")


def template() -> dict[str, Any]:
    """A stack with the resources that the checks look for, named as the real one names them."""
    queues = ("DebuggerArrivalsQueue1", "DebuggerArrivalsDeadLetters1", "DebuggerUndeliveredQueue1")
    table = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    resources: dict[str, Any] = {
        **{queue: {"Type": "AWS::SQS::Queue"} for queue in queues},
        "Bucket1": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "runs"}},
        "Table1": {"Type": "AWS::DynamoDB::Table", "Properties": table},
        "DebuggerAlarmsTopic1": {"Type": "AWS::SNS::Topic"},
    }
    outputs = {"StepIndex": {"Value": {"Ref": "Table1"}}, "Bucket": {"Value": {"Ref": "Bucket1"}}}
    return {"Resources": resources, "Outputs": outputs}


def notify_of(*suffixes: str) -> None:
    """Let the bucket notify the stack's queue of keys with these suffixes."""
    urls = boto3.client("sqs").list_queues()["QueueUrls"]
    (name,) = [url.rsplit("/", 1)[-1] for url in urls if "ArrivalsQueue" in url]
    boto3.client("s3").put_bucket_notification_configuration(
        Bucket="runs",
        NotificationConfiguration={
            "QueueConfigurations": [
                {
                    "QueueArn": f"arn:aws:sqs:{REGION}:123456789012:{name}",
                    "Events": ["s3:ObjectCreated:*"],
                    "Filter": {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}},
                }
                for suffix in suffixes
            ]
        },
    )


@pytest.fixture
def clients():
    with mocked_aws(REGION):
        boto3.client("cloudformation").create_stack(StackName="smdebug", TemplateBody=json.dumps(template()))
        notify_of(*SUFFIXES)
        boto3.client("cloudwatch").put_metric_alarm(
            AlarmName="smdebug-StepsWait",
            Namespace="smdebug",
            MetricName="m",
            Statistic="Maximum",
            Period=300,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )
        yield lambda service: boto3.client(service, region_name=REGION)


def states(clients: Callable[[str], Any], what: str) -> list[tuple[str, str]]:
    return [
        (check.state, check.found) for check in check_deployment("smdebug", clients) if check.what == what
    ]


def test_a_stack_that_does_not_exist_is_wrong_with_what_to_do(clients):
    (check,) = check_deployment("other", clients)
    assert (check.what, check.state) == ("stack", "wrong")
    assert "The stack other in us-east-1" in check.found
    assert "--stack NAME" in check.hint


def test_a_healthy_stack_passes_every_check(clients):
    assert states(clients, "stack") == [("well", "smdebug is CREATE_COMPLETE")]
    assert states(clients, "notifications") == [("well", "runs notifies")]
    assert [state for state, _ in states(clients, "dead letters")] == ["well", "well"]


def test_a_table_whose_records_would_never_expire_is_wrong(clients):
    ((state, found),) = states(clients, "step index")
    assert state == "wrong"
    assert found.endswith("is ACTIVE, expiry of old records is DISABLED")
    (table,) = clients("dynamodb").list_tables()["TableNames"]
    clients("dynamodb").update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    ((state, _),) = states(clients, "step index")
    assert state == "well"


def test_a_message_that_could_not_be_handled_is_wrong(clients):
    sqs = clients("sqs")
    (url,) = [url for url in sqs.list_queues()["QueueUrls"] if "DeadLetters" in url]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    found = states(clients, "dead letters")
    assert sorted(state for state, _ in found) == ["well", "wrong"]
    assert any(text.startswith("1 in ") for state, text in found if state == "wrong")


def test_a_suffix_that_is_not_notified_is_named(clients):
    notify_of(".tfevents")
    ((state, found),) = states(clients, "notifications")
    assert state == "wrong"
    assert found == "runs does not notify of .json, training_job_end.ts"


def test_a_raised_alarm_is_wrong_and_leads_to_the_runbook(clients):
    assert states(clients, "alarms") == [("well", "none of 1 is raised")]
    clients("cloudwatch").set_alarm_state(
        AlarmName="smdebug-StepsWait", StateValue="ALARM", StateReason="test"
    )
    (check,) = [c for c in check_deployment("smdebug", clients) if c.what == "alarms"]
    assert (check.state, check.found) == ("wrong", "smdebug-StepsWait is raised")
    assert "Runbook" in check.hint


def test_a_topic_without_recipients_is_absent_and_not_wrong(clients):
    assert states(clients, "recipients") == [("absent", "the alarms have no recipient")]
    (topic,) = clients("sns").list_topics()["Topics"]
    clients("sns").subscribe(TopicArn=topic["TopicArn"], Protocol="email", Endpoint="me@example.org")
    assert states(clients, "recipients") == [("well", "1 get the alarms")]


def test_a_check_that_is_refused_does_not_hide_the_others(clients):
    denied = {"Error": {"Code": "AccessDenied", "Message": "no"}}

    class Refusing:
        def __getattr__(self, _: str) -> Any:
            from botocore.exceptions import ClientError

            raise ClientError(denied, "GetQueueAttributes")  # type: ignore[arg-type]

    def some(service: str) -> Any:
        return Refusing() if service == "sqs" else clients(service)

    ((state, found),) = states(some, "dead letters")
    assert state == "wrong"
    assert "lack sqs:GetQueueAttributes" in found
    assert states(some, "alarms") == [("well", "none of 1 is raised")]


@pytest.mark.parametrize(
    ("quota", "deployed_for", "state"),
    [(10, 10, "well"), (1000, 1000, "well"), (1000, 10, "absent"), (10, 1000, "wrong"), (400, 1000, "wrong")],
)
def test_a_stack_is_compared_with_the_quota_of_its_account(clients, quota, deployed_for, state):
    class Lambda:
        def get_account_settings(self) -> dict[str, Any]:
            limit = {"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": quota}
            return {"AccountLimit": limit}

        def get_event_source_mapping(self, **_: Any) -> dict[str, Any]:
            at_once = Settings(account_concurrency=deployed_for).ingest_at_once
            return {"State": "Enabled", "ScalingConfig": {"MaximumConcurrency": at_once}}

    class StackWithMapping:
        def __init__(self, stack: Any):
            self._stack = stack

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stack, name)

        def get_paginator(self, name: str) -> Any:
            pages = self._stack.get_paginator(name)
            mapping = {
                "ResourceType": "AWS::Lambda::EventSourceMapping",
                "LogicalResourceId": "Mapping1",
                "PhysicalResourceId": "1-2-3",
            }

            class Pages:
                def paginate(self, **how: Any) -> Any:
                    yield from pages.paginate(**how)
                    if name == "list_stack_resources":
                        yield {"StackResourceSummaries": [mapping]}

            return Pages()

    def some(service: str) -> Any:
        if service == "lambda":
            return Lambda()
        return StackWithMapping(clients(service)) if service == "cloudformation" else clients(service)

    checks = [check for check in check_deployment("smdebug", some) if check.what == "concurrency"]
    assert [check.state for check in checks] == ["well", state]
    assert (f"-c account_concurrency={quota}" in checks[1].hint) == (state != "well")


@pytest.mark.parametrize("quota", [10, 59, 60, 1000, 20_000, 100_000])
def test_the_library_and_the_deployment_derive_the_same_from_a_quota(quota):
    assert batches_of(quota) == Settings(account_concurrency=quota).ingest_at_once


def test_the_resources_that_the_checks_look_for_exist_in_the_template():
    import tempfile
    from pathlib import Path

    from tests.infra.conftest import synthesized

    with tempfile.TemporaryDirectory() as folder:
        resources = synthesized(Settings(slack_secret="pager"), Path(folder)).resources
    for kind, part in (
        ("AWS::SQS::Queue", "ArrivalsQueue"),
        ("AWS::SQS::Queue", "DeadLetters"),
        ("AWS::SQS::Queue", "Undelivered"),
        ("AWS::Lambda::Function", "SweepFunction"),
        ("AWS::Lambda::Function", "PostTo"),
        ("AWS::Lambda::EventSourceMapping", ""),
        ("AWS::SNS::Topic", "Alarms"),
        ("AWS::CloudWatch::Alarm", ""),
    ):
        named = [name for name, r in resources.items() if r["Type"] == kind and part in name]
        assert named, (kind, part)
