"""A stack that goes on with the step index of a deleted one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from infra.names import TABLE
from infra.settings import Settings, SettingsError
from tests.infra.conftest import Stack
from tests.infra.test_lint import violations
from tests.support.looking import each

KEPT = "smdebug-DebuggerStepIndexTable0A1B2C3D-4E5F6G7H8I9J"
HERE = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/" + KEPT


@pytest.fixture(scope="module")
def adopting(synthesize: Callable[..., Stack]) -> Stack:
    return synthesize(Settings(table=KEPT, bucket="my-runs"))


def joined(value: object) -> str:
    """Return an ARN of the template as text."""
    if isinstance(value, dict) and "Ref" in value:
        return "${" + str(value["Ref"]) + "}"
    if isinstance(value, dict):
        return "".join(map(joined, value["Fn::Join"][1]))
    return str(value)


def test_it_creates_no_table_and_names_the_kept_one(adopting: Stack, default_stack: Stack):
    assert adopting.of("AWS::DynamoDB::Table") == {}
    assert len(default_stack.of("AWS::DynamoDB::Table")) == 1
    assert adopting.template["Outputs"]["StepIndex"]["Value"] == KEPT


def test_its_functions_use_that_table(adopting: Stack, default_stack: Stack):
    def named(stack: Stack) -> dict[str, object]:
        functions = stack.of("AWS::Lambda::Function").items()
        variables = {
            name: function.get("Environment", {}).get("Variables", {}) for name, function in functions
        }
        return {name: known[TABLE] for name, known in variables.items() if TABLE in known}

    assert set(each(named(adopting).values(), at_least=8)) == {KEPT}
    assert named(adopting).keys() == named(default_stack).keys()


def test_its_roles_may_use_that_table_alone(adopting: Stack, default_stack: Stack):
    def of_table(stack: Stack) -> list[tuple[str, tuple[str, ...], str]]:
        return sorted(
            (joined(policy["Roles"][0]), tuple(actions), json.dumps(statement["Resource"]))
            for policy in stack.of("AWS::IAM::Policy").values()
            for statement in policy["PolicyDocument"]["Statement"]
            for actions in [
                [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
            ]
            if any(action.startswith("dynamodb:") for action in actions)
        )

    allowed = each(of_table(adopting), at_least=8)
    assert {joined(json.loads(resource)) for _, _, resource in allowed} == {HERE}
    # And as much of it as of a table of the stack's own.
    assert [grant[:2] for grant in allowed] == [grant[:2] for grant in of_table(default_stack)]


def test_cdk_nag_reports_nothing(tmp_path):
    assert violations(Settings(table=KEPT, bucket="my-runs"), tmp_path) == []


@pytest.mark.parametrize("table", ["arn:aws:dynamodb:eu-west-1:123456789012:table/x", "ab", "a/b", "x" * 256])
def test_what_is_no_name_of_a_table_is_refused(table: str):
    with pytest.raises(SettingsError, match="is not the name of a table: write it without its ARN"):
        Settings(table=table)


def test_the_setting_comes_from_the_command_line():
    assert Settings.from_context({"table": KEPT}).table == KEPT
