"""The functions: their handlers, settings, logs and dead letters."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from functions.environment import (
    ActEnvironment,
    BacktestEnvironment,
    ClaimEnvironment,
    EvaluateEnvironment,
    IndexAccess,
    IngestEnvironment,
    NightlyEnvironment,
    NotifyEnvironment,
    ReaderAccess,
    SandboxedBacktestEnvironment,
    WatchEnvironment,
    WebhookEnvironment,
)
from infra import names
from infra.packaging.assets import ROOT
from infra.settings import Settings
from tests.infra.conftest import Stack, environment
from tests.support.looking import each

FUNCTIONS = ROOT / "functions"


def test_every_handler_exists(stack: Stack):
    handlers = {function["Handler"] for function in stack.of("AWS::Lambda::Function").values()}
    assert len(handlers) >= 11
    for handler in handlers:
        package, room, module, name = handler.split(".")
        assert (package, room) == ("functions", "handlers")
        tree = ast.parse((FUNCTIONS / room / f"{module}.py").read_text(encoding="utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        assert len(found) == 1, handler
        assert len(found[0].args.args) == 2, handler


def test_every_function_runs_python_3_13_on_arm_with_the_layer(default_stack: Stack):
    (layer,) = default_stack.of("AWS::Lambda::LayerVersion")
    for function in each(default_stack.of("AWS::Lambda::Function").values(), at_least=10):
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert function["Layers"] == [{"Ref": layer}]
        assert function["MemorySize"] <= 1024


def test_logs_expire(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(log_retention_days=7))
    functions = stack.of("AWS::Lambda::Function")
    logs = stack.of("AWS::Logs::LogGroup")
    of_functions = {function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions.values()}
    assert len(of_functions) == len(functions)
    assert all(logs[log]["RetentionInDays"] == 7 for log in of_functions)


def test_asynchronous_functions_have_dead_letters(stack: Stack):
    called = {
        permission["FunctionName"]["Fn::GetAtt"][0]
        for permission in stack.of("AWS::Lambda::Permission").values()
    } | {"watch"}
    kept = [
        name
        for name, function in stack.of("AWS::Lambda::Function").items()
        if "DeadLetterConfig" in function and (name in called or "Watch" in name)
    ]
    # sweep, act, notify, write_report; watch, which a schedule calls; and those that post to webhooks
    webhooks = [name for name in called if "PostTo" in name]
    assert len(kept) == len(called) == 5 + len(webhooks)


def test_every_rule_has_dead_letters(stack: Stack):
    rules = stack.of("AWS::Events::Rule").values()
    assert rules
    assert all("DeadLetterConfig" in target for rule in rules for target in rule["Targets"])


ENVIRONMENTS = {
    "act": (ActEnvironment,),
    "claim": (ClaimEnvironment,),
    "commit": (EvaluateEnvironment,),
    "evaluate": (EvaluateEnvironment,),
    "finish_run": (EvaluateEnvironment,),
    "ingest": (IngestEnvironment,),
    "judge_runs": (BacktestEnvironment,),
    "keep_verdicts": (BacktestEnvironment,),
    "mark_published": (IndexAccess,),
    "notify": (NotifyEnvironment,),
    "plan_nightly": (NightlyEnvironment,),
    "post_webhook": (WebhookEnvironment,),
    "prepare_backtest": (SandboxedBacktestEnvironment,),
    "read_shard": (),  # it is asked for the files of a run
    "run_custom_rule": (),  # it gets no more than the name of its rule file
    "sweep": (IngestEnvironment,),
    "watch": (WatchEnvironment,),
    "write_report": (IndexAccess,),
}


OF_LARGE_ACCOUNTS = {"read_shard"}
OF_BACKTESTS = {"judge_runs", "keep_verdicts", "plan_nightly", "prepare_backtest"}


def test_functions_of_backtests_get_every_variable_that_their_handlers_read(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(backtests_at_once=2, nightly_backtest=True, account_concurrency=40))
    functions = stack.of("AWS::Lambda::Function").values()
    of_handler = {function["Handler"].split(".")[-2]: function for function in functions}
    for handler in each(OF_BACKTESTS, at_least=4):
        (read,) = ENVIRONMENTS[handler]
        required = {field.metadata["variable"] for field in dataclasses.fields(read)}
        assert required <= set(environment(of_handler[handler])), handler


def test_only_an_account_with_room_has_functions_that_read_shards(synthesize: Callable[..., Stack]):
    small, large = (synthesize(Settings(account_concurrency=number)) for number in (119, 1000))
    assert names.READER not in environment(small.function("Evaluate"))
    assert not [name for name in small.of("AWS::Lambda::Function") if "ReadShard" in name]
    known = environment(large.function("Evaluate"))
    (reader,) = (name for name in large.of("AWS::Lambda::Function") if "ReadShard" in name)
    assert known[names.READER] == {"Fn::GetAtt": [reader, "Arn"]}
    assert known[names.READERS_AT_ONCE] == "32"
    assert {field.metadata["variable"] for field in dataclasses.fields(ReaderAccess)} <= set(known)


def test_a_function_that_reads_shards_may_read_steps_and_nothing_else(synthesize: Callable[..., Stack]):
    stack = synthesize(Settings(account_concurrency=1000))
    (role,) = (name for name in stack.of("AWS::IAM::Role") if "ReadShard" in name)
    allowed = {
        (action, stack.text(resource))
        for statement in stack.statements_of(role)
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
        if not action.startswith("logs:")
    }
    assert {action for action, _ in allowed} == {"s3:GetObject"}
    assert sorted(resource.rpartition(":::")[2].partition("/")[2] for _, resource in allowed) == [
        "*/events/*",
        "*/index/*",
    ]
    callers = [
        policy["Roles"]
        for policy in stack.of("AWS::IAM::Policy").values()
        if "ReadShardFunction" in json.dumps(policy["PolicyDocument"])
    ]
    assert len(callers) == 1
    assert "Evaluate" in callers[0][0]["Ref"]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_every_function_gets_every_variable_that_its_handler_reads(stack: Stack):
    functions = stack.of("AWS::Lambda::Function").values()
    handlers = {function["Handler"].split(".")[-2] for function in functions}
    of_others = {"post_webhook"} | OF_BACKTESTS | OF_LARGE_ACCOUNTS
    assert handlers | of_others == set(ENVIRONMENTS)
    for function in functions:
        for read in ENVIRONMENTS[function["Handler"].split(".")[-2]]:
            required = {field.metadata["variable"] for field in dataclasses.fields(read)}
            assert required <= set(environment(function)), function["Handler"]


def test_every_handler_is_deployed():
    assert set(ENVIRONMENTS) == {
        path.stem for path in (FUNCTIONS / "handlers").glob("*.py") if path.stem != "__init__"
    }


@pytest.mark.parametrize("handler", ENVIRONMENTS)
def test_a_handler_reads_the_environment_that_is_compared(handler: str):
    """The handlers that ask `wiring` for a world name their environment in their source."""
    text = (FUNCTIONS / "handlers" / f"{handler}.py").read_text(encoding="utf-8")
    named = set(re.findall(r"wiring\.world\((\w+)\)", text))
    if named:
        assert named == {read.__name__ for read in ENVIRONMENTS[handler]}


def test_the_variables_that_the_functions_read_are_declared():
    declared = {
        value for name, value in vars(names).items() if name.isupper() and value.startswith("SMDEBUG_")
    }
    read = {
        name
        for path in FUNCTIONS.rglob("*.py")
        for name in re.findall(r'"(SMDEBUG_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    optional = {"SMDEBUG_LOG_LEVEL"}
    assert read - declared <= optional


def test_the_settings_reach_the_trusted_functions(synthesize: Callable[..., Stack]):
    stack = synthesize(
        Settings(
            default_rules=("AllZero", "Overfit"),
            incomplete_step_timeout_seconds=61,
            stall_timeout_seconds=62,
            silence_timeout_seconds=3600,
            index_retention_days=2,
        )
    )
    variables = environment(stack.function("Ingest"))
    assert variables[names.DEFAULT_RULES] == "AllZero,Overfit"
    assert json.loads(variables[names.TENANTS])["shared"] == []
    assert variables[names.CUSTOM_RULES_PER_RUN] == "10"
    assert variables[names.CUSTOM_GB_SECONDS] == "100000"
    assert variables[names.CUSTOM_MEMORY] == "1024"
    assert variables[names.INCOMPLETE_STEP_TIMEOUT] == "61"
    assert variables[names.STALL_TIMEOUT] == "62"
    assert variables[names.SILENCE_TIMEOUT] == "3600"
    assert variables[names.INDEX_RETENTION] == str(2 * 86_400)


def test_watch_knows_its_own_arn(default_stack: Stack):
    watch = default_stack.function("Watch")
    arn = default_stack.text(environment(watch)[names.WATCH_ARN])
    assert arn.endswith(f":function:{watch['FunctionName']}")
    assert default_stack.text(environment(default_stack.function("Ingest"))[names.WATCH_ARN]) == arn
