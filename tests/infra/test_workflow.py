"""The state machine: its definition, and its execution in moto with scripted functions."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.models import LambdaFunction
from moto.sqs import sqs_backends
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state import state as state_of_moto
from moto.stepfunctions.parser.asl.component.state.choice.comparison.operator.implementations import (
    is_operator,
)

from infra.evaluation_workflow import DEFINITION
from infra.functions import EVALUATION
from local_aws import moto_fixes
from tests.functions import deployed_settings
from tests.infra.conftest import Stack
from tests.support.looking import each

ACCOUNT, REGION = "123456789012", "us-east-1"
EXECUTION = deployed_settings.settings().execution  # seconds for beginning something
WORKFLOW = json.loads(DEFINITION.read_text(encoding="utf-8"))
FUNCTIONS = ("Evaluate", "Claim", "Commit", "MarkPublished", "FinishRun")


def states(of: dict[str, Any] = WORKFLOW) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, state in of["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def tasks() -> dict[str, dict[str, Any]]:
    return {name: state for name, state in states() if state["Type"] == "Task"}


def retry_seconds(state: dict[str, Any], error: str) -> float:
    """The seconds for which the state is retried after that error."""
    (retry,) = [retry for retry in state["Retry"] if error in retry["ErrorEquals"]]
    waits = (retry["IntervalSeconds"] * retry["BackoffRate"] ** n for n in range(retry["MaxAttempts"]))
    return sum(min(wait, retry.get("MaxDelaySeconds", wait)) for wait in waits)


# Its definition


def test_an_execution_tries_for_longer_than_a_dead_function_holds_its_group():
    assert deployed_settings.settings().lease + 10 <= EXECUTION


def test_what_is_begun_last_ends_before_the_execution_does():
    assert WORKFLOW["TimeoutSeconds"] <= 300 - 10  # an Express execution has five minutes
    for name in ("Evaluate", "Claim", "FinishRun"):
        wait = retry_seconds(tasks()[name], "GroupBusy")
        assert EXECUTION + wait + EVALUATION < WORKFLOW["TimeoutSeconds"], name
        assert "Sandbox.Timedout" not in str(tasks()[name]["Retry"])  # no time for a second one


def test_only_the_clock_ends_waiting_for_a_busy_group():
    for name in ("Evaluate", "Claim", "Commit", "FinishRun"):
        busy, rest = tasks()[name]["Catch"]
        assert busy["ErrorEquals"] == ["GroupBusy", "LeaseLost"]
        assert busy["Next"] == ("IsThereTimeForRun" if name == "FinishRun" else "IsThereTime")
        assert rest["Next"].startswith("LeaveCheck")


def test_every_failure_sends_a_reminder():
    for name, task in tasks().items():
        if name.startswith(("LeaveCheck", "LeaveContinuation")):
            continue
        catch = task["Catch"][-1]
        assert catch["ErrorEquals"] == ["States.ALL"]
        expected = ("Commit",) if name == "RunCustomRule" else ("LeaveCheck", "LeaveCheckOfRun")
        assert catch["Next"] in expected, name
    assert WORKFLOW["States"]["Groups"]["Catch"][0]["Next"] == "LeaveCheckOfRun"


def test_calls_of_unavailable_services_are_retried():
    for name, task in each(tasks().items(), at_least=10):
        if task["Resource"].endswith("lambda:invoke"):
            assert retry_seconds(task, "Lambda.TooManyRequestsException") >= 30, name
        else:
            assert retry_seconds(task, "States.TaskFailed") >= 15, name


def test_a_custom_rule_that_dies_is_not_retried_before_the_commit_counts_it():
    retried = {error for retry in tasks()["RunCustomRule"]["Retry"] for error in retry["ErrorEquals"]}
    assert retried.isdisjoint({"States.ALL", "States.TaskFailed", "Sandbox.Timedout", "Runtime.ExitError"})


def test_every_state_is_reached():
    def check(machine: dict[str, Any]) -> None:
        known = set(machine["States"])
        reached = {machine["StartAt"]}
        for state in machine["States"].values():
            reached |= {state[key] for key in ("Next", "Default") if key in state}
            reached |= {target["Next"] for target in (*state.get("Choices", ()), *state.get("Catch", ()))}
            if "ItemProcessor" in state:
                check(state["ItemProcessor"])
        assert reached == known

    check(WORKFLOW)


def test_the_template_substitutes_every_name(stack: Stack):
    machine = stack.single("AWS::StepFunctions::StateMachine")
    text = machine["DefinitionString"]
    deployed = json.loads(text.replace("arn:${Partition}:states", "arn:aws:states"))
    assert deployed["States"]["Groups"].pop("MaxConcurrency") >= 2
    written = json.loads(DEFINITION.read_text(encoding="utf-8"))
    del written["States"]["Groups"]["MaxConcurrency"]
    assert deployed == written
    for name in machine["DefinitionSubstitutions"]:
        assert f"${{{name}}}" in text
        text = text.replace(f"${{{name}}}", "")
    assert "${" not in text


def test_express_is_the_default_and_standard_a_setting(default_stack: Stack, full_stack: Stack):
    assert default_stack.single("AWS::StepFunctions::StateMachine")["StateMachineType"] == "EXPRESS"
    assert full_stack.single("AWS::StepFunctions::StateMachine")["StateMachineType"] == "STANDARD"


# Its execution

Answers = dict[str, Callable[[Any], Any]]


class Died(Exception):
    """The error of a function, as Lambda reports it."""


class Machine:
    """The workflow in moto. `answers` are the functions, and `calls` has their events."""

    def __init__(self, answers: Answers):
        self.answers = answers
        self.clock = time.time()
        moto_fixes.use_local_time_in_workflows(lambda: self.clock)
        self.calls: list[tuple[str, Any]] = []
        functions, roles = boto3.client("lambda"), boto3.client("iam")
        role = roles.create_role(RoleName="any", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        for name in (*FUNCTIONS, "my-rule"):
            functions.create_function(
                FunctionName=name,
                Role=role,
                Code={"ZipFile": _zip()},
                Handler="a.handler",
                Runtime="python3.13",
            )
        queue = boto3.client("sqs").create_queue(QueueName="reminders")["QueueUrl"]
        boto3.client("sqs").create_queue(QueueName="seen")
        events = boto3.client("events")
        events.create_event_bus(Name="findings")
        events.put_rule(Name="all", EventBusName="findings", EventPattern='{"source": ["smdebug"]}')
        target = {"Id": "seen", "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:seen"}
        events.put_targets(Rule="all", EventBusName="findings", Targets=[target])
        text = DEFINITION.read_text(encoding="utf-8")
        for name, value in {
            **{function: function for function in FUNCTIONS},
            "Bus": "findings",
            "Reminders": queue,
        }.items():
            text = text.replace(f"${{{name}}}", value)
        self._client = boto3.client("stepfunctions")
        self._arn = self._client.create_state_machine(name="w", definition=text, roleArn=role)[
            "stateMachineArn"
        ]

    def answer(self, name: str, payload: Any) -> tuple[str, bool, str]:
        self.calls.append((name, payload))
        try:
            return json.dumps(self.answers[name](payload)), False, ""
        except Died as error:
            return json.dumps({"errorType": str(error), "errorMessage": "failed"}), True, ""

    def run(self, groups: list[dict[str, Any]], *, run: str = "b/mnist", finish: bool = False) -> str:
        until = datetime.fromtimestamp(self.clock + EXECUTION, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        request = {"run": run, "step": 7, "groups": groups, "finish": finish, "until": until}
        execution = self._client.start_execution(
            stateMachineArn=self._arn, name=f"n{time.monotonic_ns()}", input=json.dumps(request)
        )["executionArn"]
        while True:
            status = self._client.describe_execution(executionArn=execution)["status"]
            if status != "RUNNING":
                return str(status)
            time.sleep(0.02)

    def events_of(self, name: str) -> list[Any]:
        return [payload for called, payload in self.calls if called == name]

    @property
    def published(self) -> list[Any]:
        return [json.loads(body) for body in self._bodies("seen")]

    @property
    def reminders(self) -> list[Any]:
        return [json.loads(body) for body in self._bodies("reminders")]

    def _bodies(self, queue: str) -> list[str]:
        return [message.body for message in sqs_backends[ACCOUNT][REGION].queues[queue]._messages]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answers], Machine]]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    made: list[Machine] = []

    def make(answers: Answers) -> Machine:
        made.append(Machine(answers))
        return made[-1]

    monkeypatch.setattr(
        LambdaFunction,
        "_invoke_lambda",
        lambda function, event=None: made[-1].answer(function.function_name, event),
    )
    # What the local stack replaces in moto is put back afterwards.
    monkeypatch.setattr(state_of_moto, "datetime", state_of_moto.datetime)
    parse = is_operator.IsTimestamp.__dict__["string_to_timestamp"]
    monkeypatch.setattr(is_operator.IsTimestamp, "string_to_timestamp", parse)
    monkeypatch.setattr(retrier_decl, "time", SimpleNamespace(sleep=lambda _: None))
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield make


def nothing(_: Any) -> Any:
    return {"run": "b/mnist", "group": "builtin", "outbox": [], "mark": {}, "more": False}


def finding(id: str, *, more: bool) -> Any:
    entry = {"Id": id, "Source": "smdebug", "DetailType": "Found", "Detail": json.dumps({"id": id})}
    entry["EventBusName"] = "somewhere-else"
    mark = {"run": "b/mnist", "group": "builtin", "ids": [id]}
    return {"outbox": [entry], "mark": mark, "more": more}


BUILT_IN = {"group": "builtin", "kind": "builtin"}
CUSTOM = {"group": "custom-smooth-1a2b", "kind": "custom"}


def test_findings_are_published_on_the_bus_and_marked_until_none_are_left(machine):
    answers = iter([finding("one", more=True), finding("two", more=False)])
    runs = machine({"Evaluate": lambda _: next(answers), "MarkPublished": lambda _: {}})
    assert runs.run([BUILT_IN]) == "SUCCEEDED"
    assert [event["detail"] for event in runs.published] == [{"id": "one"}, {"id": "two"}]
    assert [payload["ids"] for payload in runs.events_of("MarkPublished")] == [["one"], ["two"]]
    assert runs.events_of("Evaluate") == [{"run": "b/mnist", "step": 7, "group": "builtin"}] * 2
    assert [name for name, _ in runs.calls] == ["Evaluate", "MarkPublished"] * 2


def test_a_failing_group_sends_a_reminder_and_the_others_continue(machine):
    def evaluate(payload: Any) -> Any:
        if payload["group"] == "bad":
            raise Died("ValueError")
        return nothing(payload)

    runs = machine({"Evaluate": evaluate})
    run = 'b/odd "run" ü'
    assert runs.run([{"group": "bad", "kind": "builtin"}, BUILT_IN], run=run, finish=True) == "FAILED"
    assert {payload["group"] for payload in runs.events_of("Evaluate")} == {"bad", "builtin"}
    assert runs.reminders == [{"check": run}]
    assert runs.events_of("FinishRun") == []


def test_a_loop_without_time_leaves_a_continuation_instead_of_a_time_out(machine):
    """A healthy backlog: the function works for 45 s each time and there is always more."""

    def evaluate(_: Any) -> Any:
        runs.clock += 45
        return {**nothing(None), "more": True}

    runs = machine({"Evaluate": evaluate, "FinishRun": nothing})
    begun = runs.clock
    assert runs.run([BUILT_IN, {"group": "lane-a", "kind": "builtin"}], finish=True) == "SUCCEEDED"
    assert runs.clock - begun <= EXECUTION + 2 * 45  # two groups at a time
    assert sorted(runs.reminders, key=str) == [
        {"continue": "b/mnist", "group": "builtin"},
        {"continue": "b/mnist", "group": "lane-a"},
    ]
    assert runs.events_of("FinishRun") == []  # its rules are not done


def test_a_group_that_stays_busy_is_left_to_another_execution(machine):
    def evaluate(_: Any) -> Any:
        runs.clock += 60
        raise Died("GroupBusy")

    runs = machine({"Evaluate": evaluate})
    assert runs.run([BUILT_IN]) == "SUCCEEDED"
    assert runs.reminders == [{"continue": "b/mnist", "group": "builtin"}]


def test_finishing_a_run_without_time_is_left_to_another_execution(machine):
    def finish(_: Any) -> Any:
        runs.clock += 100
        return {**nothing(None), "more": True}

    runs = machine({"FinishRun": finish})
    assert runs.run([], finish=True) == "SUCCEEDED"
    assert runs.reminders == [{"continue": "b/mnist"}]
    assert len(runs.events_of("FinishRun")) == 2


def test_a_custom_rule_is_claimed_run_and_committed_until_nothing_is_due(machine):
    claims = iter([{"function": "my-rule", "job": {"steps": [7]}, "claim": {"token": 3}}, nothing(None)])
    runs = machine(
        {
            "Claim": lambda _: next(claims),
            "my-rule": lambda payload: {"findings": payload["steps"]},
            "Commit": lambda _: {**nothing(None), "more": True},
        }
    )
    assert runs.run([CUSTOM]) == "SUCCEEDED"
    assert [name for name, _ in runs.calls] == ["Claim", "my-rule", "Commit", "Claim"]
    assert runs.events_of("my-rule") == [{"steps": [7]}]
    (committed,) = runs.events_of("Commit")
    assert committed == {
        "run": "b/mnist",
        "step": 7,
        "group": "custom-smooth-1a2b",
        "claim": {"token": 3},
        "ran": {"answer": {"findings": [7]}},
    }


def test_the_death_of_a_custom_rule_reaches_the_commit(machine):
    def dies(_: Any) -> Any:
        raise Died("Sandbox.Timedout")

    claim = {"function": "my-rule", "job": {}, "claim": {}}
    runs = machine({"Claim": lambda _: claim, "my-rule": dies, "Commit": nothing})
    assert runs.run([CUSTOM]) == "SUCCEEDED"
    (committed,) = runs.events_of("Commit")
    assert committed["ran"]["Error"] == "Sandbox.Timedout"
    assert len(runs.events_of("my-rule")) == 1


def test_an_ended_run_is_finished_after_its_groups_and_its_summary_published(machine):
    runs = machine(
        {
            "Evaluate": nothing,
            "FinishRun": lambda _: finding("summary", more=False),
            "MarkPublished": lambda _: {},
        }
    )
    assert runs.run([BUILT_IN], finish=True) == "SUCCEEDED"
    assert [name for name, _ in runs.calls] == ["Evaluate", "FinishRun", "MarkPublished"]
    assert [event["detail"] for event in runs.published] == [{"id": "summary"}]


def test_a_failing_finish_sends_a_reminder(machine):
    def fails(_: Any) -> Any:
        raise Died("ValueError")

    runs = machine({"FinishRun": fails})
    assert runs.run([], finish=True) == "FAILED"
    assert runs.reminders == [{"check": "b/mnist"}]


def _zip() -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("a.py", "")
    return into.getvalue()
