"""Functions whose new versions take over gradually, and are taken back by an alarm."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from infra.settings import Settings, SettingsError
from tests.infra.conftest import Stack
from tests.infra.test_lint import violations

GRADUAL = Settings(gradual_deployment=True)
FUNCTIONS = ("Ingest", "Evaluate")


@pytest.fixture(scope="module")
def gradual(synthesize: Callable[..., Stack]) -> Stack:
    return synthesize(GRADUAL)


def alias_of(stack: Stack, function: str) -> tuple[str, dict[str, Any]]:
    """Return the alias of a function, with its logical id."""
    ((name, alias),) = [
        (name, resource)
        for name, resource in stack.resources.items()
        if resource["Type"] == "AWS::Lambda::Alias" and name.startswith(f"Debugger{function}Live")
    ]
    return name, alias


def version_of(stack: Stack, function: str) -> str:
    """Return the logical id of a function's version."""
    (name,) = [name for name in stack.of("AWS::Lambda::Version") if name.startswith(f"Debugger{function}")]
    return name


def test_it_is_a_setting_that_is_off(default_stack: Stack, full_stack: Stack):
    for stack in (default_stack, full_stack):
        for kind in ("Lambda::Alias", "Lambda::Version", "CodeDeploy::Application"):
            assert stack.of(f"AWS::{kind}") == {}


def test_codedeploy_moves_the_alias_of_each_busy_function(gradual: Stack):
    assert len(gradual.of("AWS::Lambda::Alias")) == len(FUNCTIONS)
    for function in FUNCTIONS:
        _, alias = alias_of(gradual, function)
        update = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        group = gradual.resources[update["DeploymentGroupName"]["Ref"]]["Properties"]
        assert group["ApplicationName"] == update["ApplicationName"]
        assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"
        assert group["DeploymentStyle"]["DeploymentOption"] == "WITH_TRAFFIC_CONTROL"
        assert (
            gradual.resources[update["ApplicationName"]["Ref"]]["Properties"]["ComputePlatform"] == "Lambda"
        )


def test_the_alarm_of_the_new_version_alone_takes_it_back(gradual: Stack):
    for function in FUNCTIONS:
        _, alias = alias_of(gradual, function)
        update = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        group = gradual.resources[update["DeploymentGroupName"]["Ref"]]["Properties"]
        back = group["AutoRollbackConfiguration"]
        assert (back["Enabled"], back["Events"]) == (True, ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"])
        (named,) = group["AlarmConfiguration"]["Alarms"]
        assert group["AlarmConfiguration"]["Enabled"]
        alarm = gradual.resources[named["Name"]["Ref"]]["Properties"]
        metrics = [metric["MetricStat"]["Metric"] for metric in alarm["Metrics"] if "MetricStat" in metric]
        assert sorted(metric["MetricName"] for metric in metrics) == ["Errors", "Invocations"]
        for metric in metrics:
            dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric["Dimensions"]}
            assert dimensions["ExecutedVersion"] == alias["Properties"]["FunctionVersion"]
            assert dimensions["ExecutedVersion"]["Fn::GetAtt"][0] == version_of(gradual, function)
        # It can be raised within the five minutes of the canary.
        assert alarm["EvaluationPeriods"] * 60 < 300
        assert {metric["MetricStat"]["Period"] for metric in alarm["Metrics"] if "MetricStat" in metric} == {
            60
        }


def test_whatever_calls_these_functions_calls_the_alias(gradual: Stack):
    ingest, _ = alias_of(gradual, "Ingest")
    evaluate, _ = alias_of(gradual, "Evaluate")
    mapping = gradual.single("AWS::Lambda::EventSourceMapping")
    assert ingest in json.dumps(mapping["FunctionName"])
    machine = gradual.single("AWS::StepFunctions::StateMachine")
    assert machine["DefinitionSubstitutions"]["Evaluate"] == {"Ref": evaluate}
    invoked = [
        statement
        for policy in gradual.of("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "lambda:InvokeFunction"
    ]
    assert json.dumps(invoked).count(evaluate) == 1
    assert "DebuggerEvaluateFunction" not in json.dumps(invoked)
    for permission in gradual.of("AWS::Lambda::Permission").values():
        for function in FUNCTIONS:
            assert f"Debugger{function}" not in json.dumps(permission)


def test_a_change_of_a_function_is_a_new_version_and_no_other_is(gradual: Stack, synthesize):
    changed = synthesize(replace(GRADUAL, memory_mb=2048))
    assert version_of(changed, "Evaluate") != version_of(gradual, "Evaluate")
    assert version_of(synthesize(GRADUAL), "Evaluate") == version_of(gradual, "Evaluate")


def test_codedeploy_may_move_these_aliases_and_read_these_alarms_alone(gradual: Stack):
    for function in FUNCTIONS:
        beginning = f"DebuggerReleases{function}Role"
        (role,) = [name for name in gradual.of("AWS::IAM::Role") if name.startswith(beginning)]
        check_role(gradual, role, function)


def check_role(gradual: Stack, role: str, function: str) -> None:
    trust = gradual.of("AWS::IAM::Role")[role]["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Principal"]["Service"] for statement in trust] == ["codedeploy.amazonaws.com"]
    assert trust[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert "ManagedPolicyArns" not in gradual.of("AWS::IAM::Role")[role]
    actions = {
        action: json.dumps(statement["Resource"])
        for statement in gradual.statements_of(role)
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert actions.keys() == {"lambda:GetAlias", "lambda:UpdateAlias", "cloudwatch:DescribeAlarms"}
    for resources in actions.values():
        assert "*" not in resources
        assert f"Debugger{function}" in resources
        for other in set(FUNCTIONS) - {function}:
            assert f"Debugger{other}" not in resources


def test_cdk_nag_reports_nothing(tmp_path):
    assert violations(GRADUAL, tmp_path) == []


def test_the_local_stack_refuses_it():
    with pytest.raises(SettingsError, match="no calls come during a deployment"):
        Settings(gradual_deployment=True, local=True)
