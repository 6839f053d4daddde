"""The state machine: as it is written, and as moto runs it with functions that answer what they are told."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.models import LambdaFunction
from moto.sqs import sqs_backends

from infra.evaluation_workflow import DEFINITION
from infra.training_debugger import EVALUATION
from tests.infra.conftest import Stack

ACCOUNT, REGION = "123456789012", "us-east-1"
LEASE = 130  # seconds: functions.world says so, too
WORKFLOW = json.loads(DEFINITION.read_text(encoding="utf-8"))
FUNCTIONS = ("Evaluate", "Claim", "Commit", "MarkPublished", "FinishRun")


def states(of: dict[str, Any] = WORKFLOW) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, state in of["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def tasks() -> dict[str, dict[str, Any]]:
    return {name: state for name, state in states() if state["Type"] == "Task"}


def patience(state: dict[str, Any], error: str) -> float:
    """For how many seconds the state is tried again after that error."""
    (retry,) = [one for one in state["Retry"] if error in one["ErrorEquals"]]
    waits = (
        retry["IntervalSeconds"] * retry["BackoffRate"] ** n for n in range(retry["MaxAttempts"])
    )
    return sum(min(wait, retry.get("MaxDelaySeconds", wait)) for wait in waits)


# As it is written


def test_a_busy_lease_is_outlasted():
    for name in ("Evaluate", "Claim", "Commit"):
        assert patience(tasks()[name], "GroupBusy") >= max(150, LEASE), name
        assert "JitterStrategy" not in tasks()[name]["Retry"][0]  # it would shorten the waiting


def test_an_evaluation_and_its_waiting_fit_into_an_express_execution():
    assert WORKFLOW["TimeoutSeconds"] == 280
    assert EVALUATION + patience(tasks()["Evaluate"], "GroupBusy") <= 300 - 10


def test_whatever_fails_leaves_a_check_behind():
    for name, task in tasks().items():
        if name.startswith("LeaveCheck"):
            continue
        (catch,) = task["Catch"]
        assert catch["ErrorEquals"] == ["States.ALL"]
        expected = ("Commit",) if name == "RunCustomRule" else ("LeaveCheck", "LeaveCheckOfRun")
        assert catch["Next"] in expected, name
    assert WORKFLOW["States"]["Groups"]["Catch"][0]["Next"] == "LeaveCheckOfRun"


def test_services_that_are_not_there_for_a_moment_are_asked_again():
    for name, task in tasks().items():
        if task["Resource"].endswith("lambda:invoke"):
            assert patience(task, "Lambda.TooManyRequestsException") >= 30, name
        else:
            assert patience(task, "States.TaskFailed") >= 15, name


def test_a_custom_rule_that_dies_is_not_run_again_before_the_commit_has_counted_it():
    retried = {error for one in tasks()["RunCustomRule"]["Retry"] for error in one["ErrorEquals"]}
    assert retried.isdisjoint(
        {"States.ALL", "States.TaskFailed", "Sandbox.Timedout", "Runtime.ExitError"}
    )


def test_every_state_leads_somewhere():
    def check(machine: dict[str, Any]) -> None:
        known = set(machine["States"])
        reached = {machine["StartAt"]}
        for state in machine["States"].values():
            reached |= {state[key] for key in ("Next", "Default") if key in state}
            reached |= {one["Next"] for one in (*state.get("Choices", ()), *state.get("Catch", ()))}
            if "ItemProcessor" in state:
                check(state["ItemProcessor"])
        assert reached == known

    check(WORKFLOW)


def test_the_template_fills_in_every_name(stack: Stack):
    machine = stack.one("AWS::StepFunctions::StateMachine")
    text = machine["DefinitionString"]
    assert json.loads(text) == WORKFLOW
    for name in machine["DefinitionSubstitutions"]:
        assert f"${{{name}}}" in text
        text = text.replace(f"${{{name}}}", "")
    assert "${" not in text


def test_express_is_the_default_and_standard_a_setting(default_stack: Stack, full_stack: Stack):
    assert default_stack.one("AWS::StepFunctions::StateMachine")["StateMachineType"] == "EXPRESS"
    assert full_stack.one("AWS::StepFunctions::StateMachine")["StateMachineType"] == "STANDARD"


# As it runs

Answers = dict[str, Callable[[Any], Any]]


class Died(Exception):
    """What Lambda says of a function that raised."""


class Machine:
    """The workflow in moto. Functions answer by `answers`; what they were told is kept in `calls`."""

    def __init__(self, answers: Answers):
        self.answers = answers
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
            **{one: one for one in FUNCTIONS},
            "Bus": "findings",
            "Reminders": queue,
        }.items():
            text = text.replace(f"${{{name}}}", value)
        self._client = boto3.client("stepfunctions")
        self._arn = self._client.create_state_machine(name="w", definition=text, roleArn=role)[
            "stateMachineArn"
        ]

    def answer(self, name: str, told: Any) -> tuple[str, bool, str]:
        self.calls.append((name, told))
        try:
            return json.dumps(self.answers[name](told)), False, ""
        except Died as error:
            return json.dumps({"errorType": str(error), "errorMessage": "so it goes"}), True, ""

    def run(
        self, groups: list[dict[str, Any]], *, run: str = "b/mnist", finish: bool = False
    ) -> str:
        told = {"run": run, "step": 7, "groups": groups, "finish": finish}
        execution = self._client.start_execution(
            stateMachineArn=self._arn, name=f"n{time.monotonic_ns()}", input=json.dumps(told)
        )["executionArn"]
        while True:
            status = self._client.describe_execution(executionArn=execution)["status"]
            if status != "RUNNING":
                return str(status)
            time.sleep(0.02)

    def told(self, name: str) -> list[Any]:
        return [told for called, told in self.calls if called == name]

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


def test_what_is_found_is_published_on_our_bus_and_marked_until_there_is_no_more(machine):
    answers = iter([finding("one", more=True), finding("two", more=False)])
    runs = machine({"Evaluate": lambda _: next(answers), "MarkPublished": lambda _: {}})
    assert runs.run([BUILT_IN]) == "SUCCEEDED"
    assert [event["detail"] for event in runs.published] == [{"id": "one"}, {"id": "two"}]
    assert [one["ids"] for one in runs.told("MarkPublished")] == [["one"], ["two"]]
    assert runs.told("Evaluate") == [{"run": "b/mnist", "step": 7, "group": "builtin"}] * 2
    assert [name for name, _ in runs.calls] == ["Evaluate", "MarkPublished"] * 2


def test_a_group_that_fails_leaves_a_check_and_the_others_go_on(machine):
    def evaluate(told: Any) -> Any:
        if told["group"] == "bad":
            raise Died("ValueError")
        return nothing(told)

    runs = machine({"Evaluate": evaluate})
    run = 'b/odd "run" ü'
    assert (
        runs.run([{"group": "bad", "kind": "builtin"}, BUILT_IN], run=run, finish=True) == "FAILED"
    )
    assert {told["group"] for told in runs.told("Evaluate")} == {"bad", "builtin"}
    assert runs.reminders == [{"check": run}]
    assert runs.told("FinishRun") == []


def test_a_custom_rule_is_claimed_run_and_committed_and_the_claim_passes_it_by(machine):
    claims = iter(
        [{"function": "my-rule", "job": {"steps": [7]}, "claim": {"token": 3}}, nothing(None)]
    )
    runs = machine(
        {
            "Claim": lambda _: next(claims),
            "my-rule": lambda told: {"findings": told["steps"]},
            "Commit": lambda _: {**nothing(None), "more": True},
        }
    )
    assert runs.run([CUSTOM]) == "SUCCEEDED"
    assert [name for name, _ in runs.calls] == ["Claim", "my-rule", "Commit", "Claim"]
    assert runs.told("my-rule") == [{"steps": [7]}]
    (committed,) = runs.told("Commit")
    assert committed == {
        "run": "b/mnist",
        "step": 7,
        "group": "custom-smooth-1a2b",
        "claim": {"token": 3},
        "ran": {"answer": {"findings": [7]}},
    }


def test_a_custom_rule_that_dies_is_told_to_the_commit(machine):
    def dies(_: Any) -> Any:
        raise Died("Sandbox.Timedout")

    claim = {"function": "my-rule", "job": {}, "claim": {}}
    runs = machine({"Claim": lambda _: claim, "my-rule": dies, "Commit": nothing})
    assert runs.run([CUSTOM]) == "SUCCEEDED"
    (committed,) = runs.told("Commit")
    assert committed["ran"]["Error"] == "Sandbox.Timedout"
    assert len(runs.told("my-rule")) == 1


def test_a_run_that_ends_is_finished_after_its_groups_and_its_summary_published(machine):
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


def test_a_finish_that_fails_leaves_a_check(machine):
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
