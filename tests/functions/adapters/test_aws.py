from __future__ import annotations

import json
import time

import pytest

from functions import wiring
from functions.environment import EvaluateEnvironment, IngestEnvironment, WatchEnvironment
from smdebug.exceptions import AccessDenied, ObjectMissing, StorageUnavailable


def test_an_object_is_read_and_listed_behind_a_key(deployed):
    for key in ("a/1", "a/2", "a/3", "b/1"):
        deployed.s3.put_object(Bucket="runs", Key=key, Body=key.encode())
    objects = wiring.world(IngestEnvironment).objects
    assert objects.read("runs", "a/2") == b"a/2"
    assert [listed.key for listed in objects.list("runs", "a/", "a/1")] == ["a/2", "a/3"]
    (listed,) = objects.list("runs", "b/")
    assert listed.modified > 1_700_000_000


def test_errors_of_s3_become_our_exceptions(deployed):
    objects = wiring.world(IngestEnvironment).objects
    with pytest.raises(ObjectMissing, match="s3://runs/none"):
        objects.read("runs", "none")
    with pytest.raises(ObjectMissing):
        list(objects.list("no-such-bucket", "a/"))
    policy = {
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": "arn:aws:s3:::runs/*",
            }
        ]
    }
    deployed.s3.put_object(Bucket="runs", Key="a", Body=b"")
    deployed.s3.put_bucket_policy(Bucket="runs", Policy=json.dumps(policy))
    with pytest.raises(AccessDenied, match="role"):
        objects.read("runs", "a")


def test_a_bucket_that_cannot_be_reached_may_be_later(deployed, monkeypatch):
    from botocore.exceptions import EndpointConnectionError

    from functions.adapters.aws import ObjectsInS3

    class Unreachable:
        def get_object(self, **request):
            raise EndpointConnectionError(endpoint_url="https://s3")

    with pytest.raises(StorageUnavailable, match="s3://runs/a"):
        ObjectsInS3(Unreachable).read("runs", "a")


def test_an_execution_is_started_once_under_its_name(deployed):
    workflow = wiring.world(IngestEnvironment).workflow
    workflow.start("3-abc", {"run": "runs/x"})
    workflow.start("3-abc", {"run": "runs/x"})
    arn = deployed.environment["SMDEBUG_WORKFLOW"]
    (execution,) = deployed.stepfunctions.list_executions(stateMachineArn=arn)["executions"]
    assert execution["name"] == "3-abc"


def test_a_reminder_waits_in_the_queue(deployed):
    wiring.world(EvaluateEnvironment).checks.leave({"check": "runs/x"}, after_seconds=0)
    queue = deployed.environment["SMDEBUG_CHECKS_QUEUE"]
    (message,) = deployed.sqs.receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(message["Body"]) == {"check": "runs/x"}
    wiring.world(EvaluateEnvironment).checks.leave({"check": "runs/x"}, after_seconds=900)
    assert "Messages" not in deployed.sqs.receive_message(QueueUrl=queue)


def test_a_function_that_the_queue_calls_leaves_its_checks_to_schedules(deployed, monkeypatch):
    """Messages that return to their own queue are dropped after about 16 times."""
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.25)
    for environment in (IngestEnvironment, WatchEnvironment):
        checks = wiring.world(environment).checks
        checks.leave({"check": "runs/x"}, after_seconds=60)
        checks.leave({"finish": "runs/x"}, after_seconds=1800)
        checks.leave({"list": "runs/x"}, after_seconds=0)
    monkeypatch.undo()
    names = [schedule["Name"] for schedule in deployed.scheduler.list_schedules()["Schedules"]]
    assert len(names) == 3, "the second time they exist"
    inputs = {
        name.split("-", 2)[2]: json.loads(
            deployed.scheduler.get_schedule(Name=name, GroupName="runs")["Target"]["Input"]
        )
        for name in names
    }
    assert inputs == {
        "check-1800000061": {"check": "runs/x"},
        "finish-1800001801": {"finish": "runs/x"},
        "list-1800000003": {"list": "runs/x"},  # at once is soon: AWS does not promise to fire for the past
    }


def test_a_run_has_one_schedule_that_is_put_off(deployed):
    schedules = wiring.world(IngestEnvironment).schedules
    schedules.wake("runs/x", at=1_800_000_000)
    schedules.wake("runs/x", at=1_800_003_600)
    schedules.wake("runs/ü", at=1_800_000_000)
    names = [schedule["Name"] for schedule in deployed.scheduler.list_schedules()["Schedules"]]
    assert len(names) == 2
    expressions = {
        schedule["ScheduleExpression"]: json.loads(schedule["Target"]["Input"])
        for name in names
        for schedule in [deployed.scheduler.get_schedule(Name=name, GroupName="runs")]
    }
    assert expressions == {
        "at(2027-01-15T09:00:00)": {"run": "runs/x"},
        "at(2027-01-15T08:00:00)": {"run": "runs/ü"},
    }
