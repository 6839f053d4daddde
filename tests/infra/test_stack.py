"""The stack as a whole: what is kept, its outputs, and several debuggers in one account."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.app import app_with
from infra.packaging.assets import ROOT
from infra.settings import Architecture, Removal, Settings
from infra.training_debugger import TrainingDebugger
from tests.infra.conftest import UNBUNDLED, Stack
from tests.support.looking import each

FUNCTIONS = ROOT / "functions"


# Table and bucket


def test_the_records_of_a_run_expire(stack: Stack):
    table = stack.single("AWS::DynamoDB::Table")
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "GlobalSecondaryIndexes" not in table


def test_a_new_table_is_warm_from_the_first_second_on_if_asked_for(default_stack, full_stack):
    warm = {"WriteUnitsPerSecond": 20_000, "ReadUnitsPerSecond": 30_000}
    assert full_stack.single("AWS::DynamoDB::Table")["WarmThroughput"] == warm
    assert "WarmThroughput" not in default_stack.single("AWS::DynamoDB::Table")


def test_runs_and_step_index_are_retained_unless_configured(synthesize: Callable[..., Stack]):
    for removal, policy in ((Removal.RETAIN, "RetainExceptOnCreate"), (Removal.DESTROY, "Delete")):
        stack = synthesize(Settings(removal_policy=removal))
        kept = [
            resource
            for resource in stack.resources.values()
            if resource["Type"] in ("AWS::S3::Bucket", "AWS::DynamoDB::Table")
        ]
        assert [resource["DeletionPolicy"] for resource in kept] == [policy, policy]


def test_a_rolled_back_creation_leaves_nothing_behind(default_stack: Stack):
    for resource in each(default_stack.resources.values(), at_least=90):
        # `Retain` would keep the resource even then, and deletion protection would fail the rollback.
        assert resource.get("DeletionPolicy") != "Retain", resource["Type"]
        assert not resource.get("Properties", {}).get("DeletionProtectionEnabled")


def test_what_holds_runs_is_kept_when_it_is_replaced(default_stack: Stack):
    for kind in ("AWS::S3::Bucket", "AWS::DynamoDB::Table"):
        (resource,) = [r for r in default_stack.resources.values() if r["Type"] == kind]
        assert resource["UpdateReplacePolicy"] == "Retain"


# A different value of one of these would make CloudFormation create a second bucket or table, and every
# present run would be out of reach. Do not change the file: keep the construct's path and the property.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
REPLACED_BY = {
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::DynamoDB::Table": ("TableName", "KeySchema", "AttributeDefinitions"),
}


def test_an_update_replaces_neither_the_bucket_nor_the_table(default_stack: Stack):
    deployed = json.loads((Path(__file__).parent / "never_replaced.json").read_text())
    found = {
        logical_id: {key: resource["Properties"].get(key) for key in REPLACED_BY[resource["Type"]]}
        | {"Type": resource["Type"]}
        for logical_id, resource in default_stack.resources.items()
        if resource["Type"] in REPLACED_BY
    }
    assert found == deployed


def test_old_runs_are_deleted_only_if_configured(synthesize: Callable[..., Stack], default_stack: Stack):
    def rules(stack: Stack) -> Any:
        found = stack.single("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
        return [rule for rule in found if rule["Id"] != "Bundles"]  # copies of files of runs

    assert not [rule for rule in rules(default_stack) if "ExpirationInDays" in rule]
    prefixes = ("experiments/", "nightly/")
    configured = rules(synthesize(Settings(run_retention_days=30, run_retention_prefixes=prefixes)))
    expiring = [rule for rule in configured if "ExpirationInDays" in rule]
    assert [(rule["Prefix"], rule["ExpirationInDays"]) for rule in expiring] == [
        ("experiments/", 30),
        ("nightly/", 30),
    ]


# As a whole


def test_the_outputs(default_stack: Stack, full_stack: Stack):
    outputs = set(default_stack.template["Outputs"])
    assert outputs == {
        "Bucket",
        "StepIndex",
        "FindingsBus",
        "AlertsTopic",
        "Workflow",
        "Dashboard",
        "EvaluationLog",
        "CustomRuleLogs",
        "AlarmsTopic",
    }
    assert set(full_stack.template["Outputs"]) - outputs == {
        "TurnOnEvents",
        "StopQueues",
        "ExportQueues",
    }


def test_the_client_finds_a_debugger_by_the_outputs_of_any_stack(default_stack: Stack, tmp_path):
    from smdebug.service.aws import output_of

    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    TrainingDebugger(cdk.Stack(app, "Theirs"), "Watch")
    theirs = app.synth().get_stack_by_name("Theirs").template["Outputs"]
    for outputs in (default_stack.template["Outputs"], theirs):
        for name in ("Bucket", "StepIndex"):
            assert output_of({key: key for key in outputs}, name), name


def test_the_local_stack_differs_only_in_the_content_of_the_layer(
    synthesize: Callable[..., Stack],
):
    local = synthesize(Settings(local=True)).template
    deployed = synthesize(Settings()).template

    def layer_key(template: dict[str, Any]) -> Any:
        resources = template["Resources"].values()
        (layer,) = [resource for resource in resources if resource["Type"] == "AWS::Lambda::LayerVersion"]
        return layer["Properties"]["Content"].pop("S3Key")

    assert layer_key(local) != layer_key(deployed)
    assert json.dumps(local).replace(*_layer_ids(local, deployed)) == json.dumps(deployed)


def _layer_ids(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The logical ids of the layer version, which depend on its content."""
    return [
        next(
            name
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::Lambda::LayerVersion"
        )
        for template in (first, other)
    ]


def test_the_processor_is_a_setting(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(architecture=Architecture.X86_64))
    assert stack.single("AWS::Lambda::LayerVersion")["CompatibleArchitectures"] == ["x86_64"]
    assert {tuple(function["Architectures"]) for function in stack.of("AWS::Lambda::Function").values()} == {
        ("x86_64",)
    }


def test_two_debuggers_fit_in_one_stack_of_another_app(tmp_path, everything: Settings):
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
        names = [
            json.dumps(resource["Properties"][key]) for resource in resources if resource["Type"] == kind
        ]
        assert len(set(names)) == 2


def test_two_stacks_in_one_account_and_region_share_no_name(tmp_path, default_stack: Stack):
    app = app_with(
        Settings(stack="second"),
        context=UNBUNDLED,
        outdir=str(tmp_path),
        builtin_cloud_formation_validation=False,
    )
    second = Stack(app.synth().get_stack_by_name("second").template)

    def names(stack: Stack) -> set[tuple[str, str]]:
        return {
            (resource["Type"], json.dumps(value))
            for resource in stack.resources.values()
            for key, value in resource.get("Properties", {}).items()
            if key in CHOSEN_NAMES and resource["Type"] not in INSIDE_ANOTHER
        }

    assert len(names(default_stack)) >= 5
    assert names(default_stack) & names(second) == set()


CHOSEN_NAMES = {
    "Name",
    "BucketName",
    "FunctionName",
    "TableName",
    "QueueName",
    "TopicName",
    "RoleName",
    "LogGroupName",
    "StateMachineName",
    "DashboardName",
    "AlarmName",
    "LayerName",
}
INSIDE_ANOTHER = {"AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping"}


def test_the_settings_come_from_the_command_line(synthesize: Callable[..., Stack]):
    settings = Settings.from_context({"alert_emails": "me@example.org", "aws:cdk:version-reporting": True})
    stack = synthesize(settings)
    alerts = stack.single("AWS::SNS::Subscription", "DebuggerAlertsEmail")
    assert alerts["Endpoint"] == "me@example.org"
