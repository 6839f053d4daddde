"""What is deployed: queues, notifications, functions and their settings, alarms, what a person is told."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import aws_cdk as cdk
import pytest

from infra import names
from infra.arrivals_queue import PATTERNS, SUFFIXES
from infra.assets import ROOT
from infra.settings import Architecture, Removal, Settings
from infra.training_debugger import TrainingDebugger
from smdebug.service.records import RunState
from tests.infra.conftest import UNBUNDLED, Stack

FUNCTIONS = ROOT / "functions"
KEYS = (
    "{run}index/000000000/000000000010_worker_0.json",
    "{run}events/000000000010/000000000010_worker_0.tfevents",
    "{run}collections/000000000/worker_0_collections.json",
    "{run}training_job_end.ts",
    "{run}rules.json",
)
RUNS = ("", "mnist/", "team/2026/mnist 1/debug-output/", "events/index/")


def environment(function: dict[str, Any]) -> dict[str, Any]:
    return function.get("Environment", {}).get("Variables", {})


def matches(key: str, patterns: list[Any]) -> bool:
    """As EventBridge does it."""
    for pattern in patterns:
        match pattern:
            case {"wildcard": wildcard} if fnmatchcase(key, wildcard):
                return True
            case {"suffix": suffix} if key.endswith(suffix):
                return True
            case str() if key == pattern:
                return True
    return False


# Functions


def test_every_handler_is_a_function_that_there_is(stack: Stack):
    handlers = {one["Handler"] for one in stack.of("AWS::Lambda::Function").values()}
    assert len(handlers) >= 11
    for handler in handlers:
        package, room, module, name = handler.split(".")
        assert (package, room) == ("functions", "handlers")
        tree = ast.parse((FUNCTIONS / room / f"{module}.py").read_text(encoding="utf-8"))
        found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
        assert len(found) == 1, handler
        assert len(found[0].args.args) == 2, handler


def test_every_function_runs_python_3_13_on_arm_with_the_layer(default_stack: Stack):
    (layer,) = default_stack.of("AWS::Lambda::LayerVersion")
    for function in default_stack.of("AWS::Lambda::Function").values():
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert function["Layers"] == [{"Ref": layer}]
        assert function["MemorySize"] <= 1024


def test_every_log_is_deleted_in_time(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(log_retention_days=7))
    functions = stack.of("AWS::Lambda::Function")
    logs = stack.of("AWS::Logs::LogGroup")
    of_functions = {one["LoggingConfig"]["LogGroup"]["Ref"] for one in functions.values()}
    assert len(of_functions) == len(functions)
    assert all(logs[log]["RetentionInDays"] == 7 for log in of_functions)


def test_what_is_called_asynchronously_keeps_what_it_could_not_do(stack: Stack):
    called = {
        permission["FunctionName"]["Fn::GetAtt"][0]
        for permission in stack.of("AWS::Lambda::Permission").values()
    } | {"watch"}
    kept = [
        name
        for name, one in stack.of("AWS::Lambda::Function").items()
        if "DeadLetterConfig" in one and (name in called or "Watch" in name)
    ]
    assert (
        len(kept) == len(called) == 5
    )  # sweep, act, notify, write_report; and watch, which a schedule calls


def test_every_rule_keeps_what_its_target_did_not_take(stack: Stack):
    rules = stack.of("AWS::Events::Rule").values()
    assert rules
    assert all("DeadLetterConfig" in target for rule in rules for target in rule["Targets"])


def test_the_environment_of_a_function_is_what_the_functions_read():
    told = {
        value
        for name, value in vars(names).items()
        if name.isupper() and value.startswith("SMDEBUG_")
    }
    read = {
        name
        for path in FUNCTIONS.rglob("*.py")
        for name in re.findall(r'"(SMDEBUG_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    may_be_left_out = {"SMDEBUG_LOG_LEVEL"}
    assert read - told <= may_be_left_out


def test_the_settings_reach_the_functions_that_are_trusted(synthesize: Callable[..., Stack]):
    stack = synthesize(
        Settings(
            default_rules=("AllZero", "Overfit"),
            incomplete_step_timeout_seconds=61,
            stall_timeout_seconds=62,
            silence_timeout_seconds=3600,
            index_retention_days=2,
        )
    )
    told = environment(stack.function("Ingest"))
    assert told[names.DEFAULT_RULES] == "AllZero,Overfit"
    assert told[names.INCOMPLETE_STEP_TIMEOUT] == "61"
    assert told[names.STALL_TIMEOUT] == "62"
    assert told[names.SILENCE_TIMEOUT] == "3600"
    assert told[names.INDEX_RETENTION] == str(2 * 86_400)


def test_watch_knows_itself(default_stack: Stack):
    watch = default_stack.function("Watch")
    arn = default_stack.text(environment(watch)[names.WATCH_ARN])
    assert arn.endswith(f":function:{watch['FunctionName']}")
    assert default_stack.text(environment(default_stack.function("Ingest"))[names.WATCH_ARN]) == arn


# Queues


def test_a_message_stays_hidden_for_six_times_as_long_as_its_function_may_take(stack: Stack):
    mapping = stack.one("AWS::Lambda::EventSourceMapping")
    queue = stack.of("AWS::SQS::Queue")[mapping["EventSourceArn"]["Fn::GetAtt"][0]]
    function = stack.of("AWS::Lambda::Function")[mapping["FunctionName"]["Ref"]]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_an_idle_stack_has_one_queue_looked_into_so_that_this_stays_in_the_free_tier(stack: Stack):
    looks_a_month = 5 * 3 * 60 * 24 * 30  # five pollers that wait 20 s each
    assert looks_a_month * len(stack.of("AWS::Lambda::EventSourceMapping")) <= 1_000_000


def test_the_batch_window_is_a_setting(default_stack: Stack, full_stack: Stack):
    def of_arrivals(stack: Stack) -> Any:
        return stack.one("AWS::Lambda::EventSourceMapping")

    assert of_arrivals(default_stack)["MaximumBatchingWindowInSeconds"] == 0
    assert of_arrivals(default_stack)["BatchSize"] == 10
    assert of_arrivals(full_stack)["MaximumBatchingWindowInSeconds"] == 2
    assert of_arrivals(full_stack)["BatchSize"] == 1000


def test_messages_are_kept_for_two_weeks(stack: Stack):
    queues = stack.of("AWS::SQS::Queue").values()
    assert len(queues) == 3
    assert all(queue["MessageRetentionPeriod"] == 14 * 86_400 for queue in queues)


# Notifications


def test_the_own_bucket_tells_of_every_kind_of_upload_by_suffix(default_stack: Stack):
    told = default_stack.one("AWS::S3::Bucket")["NotificationConfiguration"]["QueueConfigurations"]
    assert {one["Event"] for one in told} == {"s3:ObjectCreated:*"}
    suffixes = [rule["Value"] for one in told for rule in one["Filter"]["S3Key"]["Rules"]]
    assert suffixes == list(SUFFIXES)


def test_no_two_suffixes_overlap():
    assert not [
        (one, other)
        for one in SUFFIXES
        for other in SUFFIXES
        if one is not other and one.endswith(other)
    ]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("run", RUNS)
def test_every_file_of_a_run_is_told_of(key: str, run: str):
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
def test_an_existing_bucket_tells_of_nothing_else(key: str):
    assert not any(matches(key, patterns) for patterns in PATTERNS.values())


def test_an_existing_bucket_is_watched_through_its_events_and_not_touched(full_stack: Stack):
    assert not full_stack.of("AWS::S3::Bucket")
    assert not full_stack.of("AWS::S3::BucketPolicy")
    patterns = [
        rule.get("EventPattern", {}) for rule in full_stack.of("AWS::Events::Rule").values()
    ]
    of_s3 = [one["detail"] for one in patterns if one.get("source") == ["aws.s3"]]
    assert [one["object"]["key"] for one in of_s3] == list(PATTERNS.values())
    assert all(one["bucket"]["name"] == ["my-runs"] for one in of_s3)


def test_the_end_of_a_training_job_is_told_to_ingest(stack: Stack):
    rules = stack.of("AWS::Events::Rule").values()
    (rule,) = [
        one for one in rules if one.get("EventPattern", {}).get("source") == ["aws.sagemaker"]
    ]
    assert rule["EventPattern"]["detail"]["TrainingJobStatus"] == ["Completed", "Failed", "Stopped"]
    mapping = stack.one("AWS::Lambda::EventSourceMapping")
    assert rule["Targets"][0]["Arn"] == mapping["EventSourceArn"]


# Table and bucket


def test_what_is_known_of_a_run_is_forgotten_in_time(stack: Stack):
    table = stack.one("AWS::DynamoDB::Table")
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "GlobalSecondaryIndexes" not in table


def test_runs_and_step_index_stay_unless_they_are_to_go(synthesize: Callable[..., Stack]):
    for removal, policy in ((Removal.RETAIN, "Retain"), (Removal.DESTROY, "Delete")):
        stack = synthesize(Settings(removal_policy=removal))
        kept = [
            one
            for one in stack.resources.values()
            if one["Type"] in ("AWS::S3::Bucket", "AWS::DynamoDB::Table")
        ]
        assert [one["DeletionPolicy"] for one in kept] == [policy, policy]


def test_old_runs_are_deleted_only_if_asked_to(
    synthesize: Callable[..., Stack], default_stack: Stack
):
    def rules(stack: Stack) -> Any:
        return stack.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]

    assert not [rule for rule in rules(default_stack) if "ExpirationInDays" in rule]
    asked = rules(synthesize(Settings(run_retention_days=30)))
    assert [rule["ExpirationInDays"] for rule in asked if "ExpirationInDays" in rule] == [30]


# Alerts


def test_whoever_is_named_is_subscribed(full_stack: Stack):
    subscribed = full_stack.of("AWS::SNS::Subscription").values()
    told = [(one["Protocol"], one["Endpoint"]) for one in subscribed]
    assert told == [
        ("email", "me@example.org"),
        ("email", "you@example.org"),
        ("sms", "+15551234567"),
    ]


def test_what_is_meant_for_one_reaches_that_one_only(full_stack: Stack):
    for one in full_stack.of("AWS::SNS::Subscription").values():
        assert one["FilterPolicy"] == {"to": [one["Endpoint"], "everybody"]}


def test_who_acts_knows_whom_it_may_tell(full_stack: Stack):
    told = environment(full_stack.function("Act"))
    assert told[names.ALERT_EMAILS] == "me@example.org,you@example.org"
    assert told[names.ALERT_PHONE_NUMBERS] == "+15551234567"


def test_slack_gets_a_message_of_whole_values_so_that_any_text_is_quoted_rightly(full_stack: Stack):
    rule = full_stack.one("AWS::Events::Rule", "DebuggerFindingsSlack")
    words = rule["Targets"][0]["InputTransformer"]
    text = words["InputTemplate"]
    for name in words["InputPathsMap"]:
        assert f"<{name}>" in text
        text = text.replace(f"<{name}>", json.dumps(f'a "{name}"\n'))
    assert json.loads(text)["text"] == 'a "text"\n'


def test_a_webhook_gets_the_events_as_they_are(full_stack: Stack):
    rule = full_stack.one("AWS::Events::Rule", "DebuggerFindingsWebhook")
    assert "InputTransformer" not in rule["Targets"][0]


def test_only_findings_with_actions_have_something_done(default_stack: Stack):
    pattern = default_stack.one("AWS::Events::Rule", "DebuggerFindingsAct")["EventPattern"]
    assert pattern["detail-type"] == ["Rule Evaluation Condition Met"]
    assert pattern["detail"] == {"has_actions": [True]}


def test_a_report_is_written_of_a_run_whose_last_words_are_published(default_stack: Stack):
    pattern = default_stack.one("AWS::Events::Rule", "DebuggerFindingsWriteReport")["EventPattern"]
    assert pattern["detail-type"] == ["Run State Change"]
    assert pattern["detail"] == {"state": [str(RunState.FINISHED)]}
    function = default_stack.function("WriteReport")
    assert (function["Timeout"], function["MemorySize"]) == (300, 1024)


def test_the_detail_types_are_those_that_the_functions_publish():
    from infra.findings_bus import ACTION, FOUND, RESOLVED, RUN, STATUS

    published = (FUNCTIONS / "decisions" / "detail_types.py").read_text(encoding="utf-8")
    assert [
        one for one in (ACTION, FOUND, RESOLVED, RUN, STATUS) if f'"{one}"' not in published
    ] == []


def test_the_alarms_fit_into_the_free_tier_and_tell_people(stack: Stack):
    alarms = stack.of("AWS::CloudWatch::Alarm")
    assert 6 <= len(alarms) <= 10
    rules = stack.of("AWS::Events::Rule").values()
    (rule,) = [
        one for one in rules if one.get("EventPattern", {}).get("source") == ["aws.cloudwatch"]
    ]
    told = {arn["Fn::GetAtt"][0] for arn in rule["EventPattern"]["resources"]}
    assert told == set(alarms)


def test_the_numbers_that_alarms_watch_are_emitted(stack: Stack):
    watched = {
        alarm["MetricName"]
        for alarm in stack.of("AWS::CloudWatch::Alarm").values()
        if alarm.get("Namespace") == names.METRICS
    }
    emitted = "".join(path.read_text(encoding="utf-8") for path in FUNCTIONS.rglob("*.py"))
    assert watched == {"OldestUnevaluatedStep", "RuleErrors"}
    assert all(f'"{name}"' in emitted for name in watched)


# As a whole


def test_a_person_is_told_what_to_use(default_stack: Stack, full_stack: Stack):
    outputs = set(default_stack.template["Outputs"])
    assert outputs == {
        *("Bucket", "StepIndex", "FindingsBus", "AlertsTopic", "Workflow", "Dashboard"),
        *("EvaluationLog", "CustomRuleLogs"),
    }
    assert set(full_stack.template["Outputs"]) - outputs == {"TurnOnEvents"}


def test_the_client_finds_a_debugger_by_the_outputs_of_its_stack_or_of_somebody_elses(
    default_stack: Stack, tmp_path
):
    from smdebug.service.aws import output_of

    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    TrainingDebugger(cdk.Stack(app, "Theirs"), "Watch")
    theirs = app.synth().get_stack_by_name("Theirs").template["Outputs"]
    for told in (default_stack.template["Outputs"], theirs):
        for name in ("Bucket", "StepIndex"):
            assert output_of({key: key for key in told}, name), name


def test_the_stack_of_a_laptop_differs_in_the_content_of_the_layer_only(
    synthesize: Callable[..., Stack],
):
    local = synthesize(Settings(local=True)).template
    deployed = synthesize(Settings()).template

    def layer_key(template: dict[str, Any]) -> Any:
        resources = template["Resources"].values()
        (layer,) = [one for one in resources if one["Type"] == "AWS::Lambda::LayerVersion"]
        return layer["Properties"]["Content"].pop("S3Key")

    assert layer_key(local) != layer_key(deployed)
    assert json.dumps(local).replace(*_layer_ids(local, deployed)) == json.dumps(deployed)


def _layer_ids(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The logical id of a layer version follows its content."""
    return [
        next(
            name
            for name, told in template["Resources"].items()
            if told["Type"] == "AWS::Lambda::LayerVersion"
        )
        for template in (one, other)
    ]


def test_the_processor_is_a_setting(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(architecture=Architecture.X86_64))
    assert stack.one("AWS::Lambda::LayerVersion")["CompatibleArchitectures"] == ["x86_64"]
    assert {tuple(one["Architectures"]) for one in stack.of("AWS::Lambda::Function").values()} == {
        ("x86_64",)
    }


def test_two_debuggers_live_in_one_stack_of_somebody_else(tmp_path, everything: Settings):
    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    scope = cdk.Stack(app, "Theirs")
    TrainingDebugger(scope, "One")
    TrainingDebugger(scope, "Two", settings=replace(everything, bucket=None))
    resources = app.synth().get_stack_by_name("Theirs").template["Resources"].values()
    for kind, key in (
        ("AWS::S3::Bucket", "BucketName"),
        ("AWS::Events::EventBus", "Name"),
        ("AWS::Scheduler::ScheduleGroup", "Name"),
    ):
        told = [json.dumps(one["Properties"][key]) for one in resources if one["Type"] == kind]
        assert len(set(told)) == 2


def test_the_command_line_gives_the_settings(synthesize: Callable[..., Stack]):
    settings = Settings.from_context(
        {"alert_emails": "me@example.org", "aws:cdk:version-reporting": True}
    )
    stack = synthesize(settings)
    assert stack.one("AWS::SNS::Subscription")["Endpoint"] == "me@example.org"
