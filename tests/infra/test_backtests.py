"""Backtests: nothing of them unless they are asked for, their share of the account, and what they may do."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from infra.backtesting.share import most_at_once
from infra.settings import Settings, SettingsError
from tests.infra.conftest import Stack

MACHINE = "AWS::StepFunctions::StateMachine"


@pytest.fixture(scope="module")
def stack(synthesize: Callable[..., Stack]) -> Stack:
    return synthesize(Settings(backtests_at_once=2, nightly_backtest=True, account_concurrency=40))


def role_of(stack: Stack, function: str) -> str:
    """Return the logical id of a function's role."""
    (role,) = [name for name in stack.of("AWS::IAM::Role") if name.startswith(f"Debugger{function}Role")]
    return role


def test_a_stack_without_them_has_nothing_of_them(default_stack: Stack):
    assert not [name for name in default_stack.resources if "Backtest" in name]


def test_the_night_is_off_unless_it_is_asked_for(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(backtests_at_once=2))
    assert [name for name in stack.resources if "JudgeRuns" in name]
    assert not [name for name in stack.resources if "Night" in name]


def test_chunks_are_children_of_their_own_with_a_limit_for_failures(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(backtests_at_once=50, account_concurrency=200))
    machine = stack.single(MACHINE, "DebuggerBacktests")
    assert machine["StateMachineType"] == "STANDARD"
    text = json.dumps(machine["DefinitionString"])
    chunks = json.loads(json.loads(text))["States"]["Chunks"]
    assert chunks["MaxConcurrency"] == 50
    assert chunks["ToleratedFailurePercentage"] == 5
    assert chunks["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}


def test_only_the_sandbox_runs_code_of_users_and_it_may_only_log(stack: Stack):
    sandbox = stack.function("CustomRulesBacktestSandbox")
    assert sandbox["Handler"] == "functions.handlers.run_custom_rule.handler"
    assert "Variables" not in sandbox.get("Environment", {})
    actions = [
        action
        for statement in stack.statements_of(role_of(stack, "CustomRulesBacktestSandbox"))
        for action in statement["Action"]
    ]
    assert sorted(actions) == ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_the_functions_write_nothing_but_verdicts(stack: Stack):
    for name, writes in (("JudgeRuns", "rows/*"), ("KeepVerdicts", "rows/*"), ("PrepareBacktest", None)):
        statements = stack.statements_of(role_of(stack, f"Backtests{name}"))
        written = [
            json.dumps(statement["Resource"])
            for statement in statements
            if "s3:PutObject" in statement["Action"]
        ]
        assert len(written) == (writes is not None)
        assert all(f"backtests/*/{writes}" in resource for resource in written)


def writers_of_bundles(stack: Stack) -> set[str]:
    return {
        name
        for name in stack.of("AWS::IAM::Role")
        for statement in stack.statements_of(name)
        if "s3:PutObject" in statement["Action"] and "backtests/bundles/*" in json.dumps(statement)
    }


def test_bundles_are_written_by_the_functions_that_read_whole_runs_and_by_no_other(stack: Stack):
    assert writers_of_bundles(stack) == {role_of(stack, "BacktestsJudgeRuns"), role_of(stack, "WriteReport")}


def test_without_backtests_retention_or_memory_nobody_writes_bundles(
    default_stack: Stack, synthesize: Callable[..., Stack]
):
    without = ({"bundle_retention_days": 0}, {"memory_mb": 512})
    others = [synthesize(Settings(backtests_at_once=2, **settings)) for settings in without]
    for stack in (default_stack, *others):
        assert writers_of_bundles(stack) == set()
        assert "SMDEBUG_BUNDLES" not in json.dumps(stack.resources)


@pytest.mark.parametrize(("days", "kept"), [(90, 90), (7, 7), (0, 1)])
def test_bundles_expire(synthesize: Callable[..., Stack], days: int, kept: int):
    stack = synthesize(Settings(bundle_retention_days=days))
    rules = stack.single("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
    (rule,) = [rule for rule in rules if rule["Id"] == "Bundles"]
    assert (rule["Prefix"], rule["ExpirationInDays"]) == ("backtests/bundles/", kept)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"backtests_at_once": -1}, "is negative"),
        ({"backtests_at_once": 3}, "use at most 2"),
        ({"backtests_at_once": 600, "account_concurrency": 1000}, "use at most 500"),
        ({"nightly_backtest": True}, "set backtests_at_once"),
        ({"backtests_at_once": 2, "nightly_backtest": True}, "would slow down live runs.*of 40 or more"),
        ({"backtests_at_once": 2, "nightly_budget": 0}, "outside 1 to 10000"),
    ],
)
def test_settings_that_do_not_fit_say_what_to_write(settings: dict[str, object], problem: str):
    with pytest.raises(SettingsError, match=problem):
        Settings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("account", "slows"), [(10, True), (39, True), (40, False), (1000, False)])
def test_whoever_starts_a_backtest_learns_whether_it_slows_live_runs(
    synthesize: Callable[..., Stack], account: int, slows: bool
):
    stack = synthesize(Settings(backtests_at_once=2, account_concurrency=account))
    (capacity,) = (
        json.loads(output["Value"])
        for name, output in stack.template["Outputs"].items()
        if "BacktestCapacity" in name
    )
    assert capacity["slows_live_runs"] is slows


def test_backtests_leave_half_of_the_account_to_live_runs():
    assert most_at_once(10, 0) == 2
    assert most_at_once(1000, 0) == 500
    assert most_at_once(1000, 400) == 300
