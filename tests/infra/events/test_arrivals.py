"""The queue of arrivals, and the notifications that feed it."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

import functions.world
from infra.events.arrivals_queue import PATTERNS, SUFFIXES
from infra.functions import ARRIVALS
from infra.packaging.assets import ROOT
from infra.settings import Settings
from tests.infra.conftest import Stack

FUNCTIONS = ROOT / "functions"
KEYS = (
    "{run}index/000000000/000000000010_worker_0.json",
    "{run}events/000000000010/000000000010_worker_0.tfevents",
    "{run}collections/000000000/worker_0_collections.json",
    "{run}training_job_end.ts",
    "{run}rules.json",
)
RUNS = ("", "mnist/", "team/2026/mnist 1/debug-output/", "events/index/")


def matches(key: str, patterns: list[Any]) -> bool:
    """Whether EventBridge matches the key."""
    for pattern in patterns:
        match pattern:
            case {"wildcard": wildcard} if fnmatchcase(key, wildcard):
                return True
            case {"suffix": suffix} if key.endswith(suffix):
                return True
            case str() if key == pattern:
                return True
    return False


# Queues


def test_throttled_arrivals_come_back_within_half_a_minute_for_half_an_hour(stack: Stack):
    mapping = stack.single("AWS::Lambda::EventSourceMapping")
    queue = stack.of("AWS::SQS::Queue")[mapping["EventSourceArn"]["Fn::GetAtt"][0]]
    function = stack.of("AWS::Lambda::Function")[mapping["FunctionName"]["Ref"]]
    window = mapping["MaximumBatchingWindowInSeconds"]
    # Lambda refuses a queue that shows a message again while a call may be at work on it.
    assert queue["VisibilityTimeout"] == function["Timeout"] + window
    assert queue["VisibilityTimeout"] <= 30 + window
    assert queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"] >= 1800
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_last_files_of_a_run_are_waited_for_while_their_messages_may_come_back(stack: Stack):
    mapping = stack.single("AWS::Lambda::EventSourceMapping")
    queue = stack.of("AWS::SQS::Queue")[mapping["EventSourceArn"]["Fn::GetAtt"][0]]
    assert functions.world.AppSettings.end_grace == queue["RedrivePolicy"]["maxReceiveCount"] * ARRIVALS


def test_polling_of_an_idle_stack_is_within_the_free_tier(stack: Stack):
    polls_per_month = 5 * 3 * 60 * 24 * 30  # five pollers that wait 20 s each
    assert polls_per_month * len(stack.of("AWS::Lambda::EventSourceMapping")) <= 1_000_000


def test_the_batch_window_is_a_setting(default_stack: Stack, full_stack: Stack):
    def of_arrivals(stack: Stack) -> Any:
        return stack.single("AWS::Lambda::EventSourceMapping")

    assert of_arrivals(default_stack)["MaximumBatchingWindowInSeconds"] == 0
    assert of_arrivals(default_stack)["BatchSize"] == 10
    assert of_arrivals(full_stack)["MaximumBatchingWindowInSeconds"] == 2
    assert of_arrivals(full_stack)["BatchSize"] == 1000


def test_messages_are_kept_for_two_weeks(stack: Stack):
    queues = [
        queue
        for name, queue in stack.of("AWS::SQS::Queue").items()
        if not name.startswith(("DebuggerStops", "DebuggerExports"))  # see test_readers_queues.py
    ]
    assert len(queues) == 3
    assert all(queue["MessageRetentionPeriod"] == 14 * 86_400 for queue in queues)


# Notifications


def test_the_own_bucket_notifies_of_every_kind_of_upload_by_suffix(default_stack: Stack):
    configurations = default_stack.single("AWS::S3::Bucket")["NotificationConfiguration"][
        "QueueConfigurations"
    ]
    assert {configuration["Event"] for configuration in configurations} == {"s3:ObjectCreated:*"}
    suffixes = [
        rule["Value"]
        for configuration in configurations
        for rule in configuration["Filter"]["S3Key"]["Rules"]
    ]
    assert suffixes == list(SUFFIXES)


@pytest.mark.parametrize(("account", "batches", "groups"), [(10, 2, 2), (1000, 50, 40), (10_000, 500, 40)])
def test_arrivals_cannot_starve_the_rules(
    synthesize: Callable[..., Stack], account: int, batches: int, groups: int
):
    stack = synthesize(Settings(account_concurrency=account))
    mapping = stack.single("AWS::Lambda::EventSourceMapping")
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": batches}
    assert batches <= account / 5
    machine = stack.single("AWS::StepFunctions::StateMachine")
    assert json.loads(machine["DefinitionString"])["States"]["Groups"]["MaxConcurrency"] == groups


def test_a_reservation_belongs_to_the_evaluation(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(account_concurrency=1000, reserved_concurrency=100))
    reserved = {
        name: function["ReservedConcurrentExecutions"]
        for name, function in stack.of("AWS::Lambda::Function").items()
        if "ReservedConcurrentExecutions" in function
    }
    assert list(reserved.values()) == [100]
    assert stack.function("Evaluate")["ReservedConcurrentExecutions"] == 100


def test_nothing_is_reserved_in_a_small_account(default_stack: Stack):
    functions = default_stack.of("AWS::Lambda::Function").values()
    assert not [f for f in functions if "ReservedConcurrentExecutions" in f]


def test_no_two_suffixes_overlap():
    assert not [
        (suffix, other)
        for suffix in SUFFIXES
        for other in SUFFIXES
        if suffix is not other and suffix.endswith(other)
    ]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("run", RUNS)
def test_every_file_of_a_run_is_notified(key: str, run: str):
    key = key.format(run=run)
    assert key.endswith(SUFFIXES)
    assert any(matches(key, patterns) for patterns in PATTERNS.values())


@pytest.mark.parametrize(
    "key",
    [
        "mnist/model.pt",
        "mnist/notes.json",
        "xrules.json",
        "mnist/tensorboard/a.tfevents",
        "a/training_job_end",
    ],
)
def test_an_existing_bucket_notifies_of_nothing_else(key: str):
    assert not any(matches(key, patterns) for patterns in PATTERNS.values())


def test_an_existing_bucket_is_watched_through_its_events_and_not_changed(full_stack: Stack):
    assert not full_stack.of("AWS::S3::Bucket")
    assert not full_stack.of("AWS::S3::BucketPolicy")
    patterns = [rule.get("EventPattern", {}) for rule in full_stack.of("AWS::Events::Rule").values()]
    of_s3 = [pattern["detail"] for pattern in patterns if pattern.get("source") == ["aws.s3"]]
    assert [detail["object"]["key"] for detail in of_s3] == list(PATTERNS.values())
    assert all(detail["bucket"]["name"] == ["my-runs"] for detail in of_s3)


def test_the_end_of_a_training_job_reaches_ingest(stack: Stack):
    rules = stack.of("AWS::Events::Rule").values()
    (rule,) = [rule for rule in rules if rule.get("EventPattern", {}).get("source") == ["aws.sagemaker"]]
    assert rule["EventPattern"]["detail"]["TrainingJobStatus"] == ["Completed", "Failed", "Stopped"]
    mapping = stack.single("AWS::Lambda::EventSourceMapping")
    assert rule["Targets"][0]["Arn"] == mapping["EventSourceArn"]
