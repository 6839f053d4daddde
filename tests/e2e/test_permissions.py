"""Every permission in the template is needed by something that the application does, or has its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from local_aws import LocalAws, LocalDebugger
from tests.e2e.test_rules import COUNTING, custom
from tests.functions.saver import ILL, WELL, Saver

ROOT = Path(__file__).parents[2]

# What nobody shows here, and why it is in the template all the same.
NOT_SHOWN = {
    "UndeliveredQueue sqs:SendMessage": "EventBridge itself sends undeliverable events there; on this machine "
    "every function can be reached.",
    "NotifyFunction lambda:InvokeFunction": "CloudWatch calls it for the stack's alarms; moto raises none.",
    "Act sagemaker:StopTrainingJob": "It stops the job of a run; moto does not support this call.",
    "Watch scheduler:UpdateSchedule": "A schedule that has fired may still exist on AWS; moto removes it "
    "at once.",
}

MANY = {f"gradient/{number:03}": np.full(3, np.nan, np.float32) for number in range(300)}
REMEMBERING = """
import numpy as np
from smdebug.rules import Rule


class Remembering(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.much = np.zeros(0)

    def invoke_at_step(self, step):
        self.base_trial.tensor("gradient/fc").value(step)
        self.much = np.random.default_rng(step).normal(size=100_000)
        if step == 3:
            for number in range(30):
                self.findings.append(f"gradient/{number} is too much of everything")
        return step == 3
"""


COMPARING = """
from smdebug.rules import Rule


class Comparing(Rule):
    def __init__(self, base_trial, other_trial=None):
        super().__init__(base_trial, other_trials=[other_trial])
        self.other_trial = other_trial

    def invoke_at_step(self, step):
        return not self.other_trial.tensor_names(step=step)
"""

WAITING = """
from smdebug.rules import Rule


class Waiting(Rule):
    def __init__(self, base_trial, other_trial=None):
        super().__init__(base_trial, other_trials=[other_trial])
        self.other_trial = other_trial

    def invoke_at_step(self, step):
        return self.other_trial.tensor("gradient/fc").value(step) is None
"""


def test_every_permission_is_needed_and_none_is_missing():
    # A stack of its own: others may have things go wrong that are refused, or that nobody needs.
    with LocalAws({"alert_emails": "me@example.org"}) as aws:
        everything_that_happens(LocalDebugger(aws))
        assert aws.refused() == []
        report = aws.permissions()
    names = report["roles"]
    unused = {f"{short(names.get(owner, owner))} {action}" for owner, action, _ in report["unused"]}
    # Each statement taken away in turn: something that was done would be refused.
    needless = {
        f"{short(names.get(statement['owner'], statement['owner']))} {action}"
        for statement in report["needless"]
        for action in statement["actions"]
    }
    assert sorted((unused | needless) - set(NOT_SHOWN)) == []
    assert sorted(set(NOT_SHOWN) - unused - needless) == [], (
        "it is shown, and need not be explained"
    )


def test_the_page_tells_what_is_not_shown_and_why():
    page = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
    rows = re.findall(
        r"\| (\w+) \| `(\w+:\w+)` \| ([^|]+) \|", page.split("never asked for there")[1]
    )
    assert {f"{role} {action}": why for role, action, why in rows} == NOT_SHOWN


def short(name: str) -> str:
    """DebuggerIngestRole88014964 -> Ingest."""
    for owner in ("UndeliveredQueue", "ArrivalsQueue", "NotifyFunction"):
        if owner in name:
            return owner
    return re.sub(r"^Debugger|Role[0-9A-F]{8}$", "", name)


def source_of(name: str, debugger) -> str:
    """The source lies at a place that both runs know."""
    key = f"rule-sources/{name}.py"
    body = REMEMBERING.encode()
    debugger.aws.client("s3").put_object(Bucket=debugger.bucket, Key=key, Body=body)
    return f"s3://{debugger.bucket}/{key}"


def everything_that_happens(debugger) -> None:
    all_of_a_life(debugger)
    a_run_at_the_root_of_the_bucket(LocalDebugger(debugger.aws))
    a_finished_run_that_goes_on_unnoticed(debugger)
    rules_that_ask_for_what_is_not_there(debugger)
    a_custom_rule_that_waits_alone(debugger)
    a_run_that_ends_while_its_rule_waits(debugger)
    what_cannot_be_done_in_three_attempts(debugger)


def a_finished_run_that_goes_on_unnoticed(debugger) -> None:
    """The sweeper sees it, alone, and before it takes the run for a past one."""
    aws = debugger.aws
    debugger.attach("again", ["ExplodingTensor"])
    saver = Saver(debugger.storage("again")).begin()
    saver.save(0)
    saver.end()
    aws.kill_when("sweep", "dynamodb:Query", times=100)
    debugger.finish("again")
    with aws.losing_notifications():
        resumed = Saver(debugger.storage("again"), run_id="run-2", training_run=1).begin()
        debugger.attach("again", ["ExplodingTensor", "VanishingGradient"])
        resumed.save(1)
    aws.kill_when("ingest", "dynamodb:GetItem", times=100)
    aws.kill_when("sweep", "dynamodb:Query", times=0)
    aws.forward(361)
    wait_for_use(aws, "Sweep", "scheduler:UpdateSchedule")
    aws.kill_when("ingest", "dynamodb:GetItem", times=0)
    debugger.wait("again", through=1)


def rules_that_ask_for_what_is_not_there(debugger) -> None:
    """A source that was never uploaded, and a run to compare with that nobody knows."""
    elsewhere = debugger.path("unknown")
    debugger.attach(
        "asking",
        [
            {
                "rule": "Nowhere",
                "name": "n",
                "source": f"s3://{debugger.bucket}/rule-sources/no.py",
            },
            {
                "rule": "SimilarAcrossRuns",
                "name": "s",
                "parameters": {"collection_names": "gradients"},
                "other_trials": [elsewhere],
            },
            {**custom(debugger, "Comparing", COMPARING), "other_trials": [elsewhere]},
        ],
    )
    Saver(debugger.storage("asking")).begin().save(0)
    run = debugger.run("asking")
    debugger.aws.wait_until(lambda: str(run.status("n").status) == "Error", what="the error")
    wait_for_use(debugger.aws, "Claim", "s3:ListBucket")
    wait_for_use(debugger.aws, "Evaluate", "s3:ListBucket")
    wait_for_use(debugger.aws, "CustomRulesAccess", "s3:ListBucket")


def a_custom_rule_that_waits_alone(debugger) -> None:
    """Nobody else notes what its step holds, and nobody else has it looked at later."""
    aws = debugger.aws
    Saver(debugger.storage("slow")).begin().save(0)
    debugger.wait("slow", through=0)
    waiting = custom(debugger, "Waiting", WAITING)
    debugger.attach("alone", [{**waiting, "other_trials": [debugger.path("slow")]}])
    aws.kill_when("evaluate", "dynamodb:PutItem", times=100)
    Saver(debugger.storage("alone")).begin().save(1)
    wait_for_use(aws, "Claim", "dynamodb:PutItem")
    wait_for_use(aws, "Commit", "sqs:SendMessage")
    aws.kill_when("evaluate", "dynamodb:PutItem", times=0)


def a_run_that_ends_while_its_rule_waits(debugger) -> None:
    """The check that the rule has left is over, and nobody has heard it, when the run is to be finished."""
    aws = debugger.aws
    waiting = custom(debugger, "Waiting", WAITING)
    debugger.attach("ending", [{**waiting, "other_trials": [debugger.path("slow")]}])
    saver = Saver(debugger.storage("ending")).begin()
    saver.save(1)
    saver.end()
    run = debugger.end("ending")
    aws.kill_when("ingest", "dynamodb:GetItem", times=100)

    def has_left_one() -> bool:
        aws.forward(61)
        aws.invoke("finish_run", {"run": run.run})
        return is_used(aws, "FinishRun", "sqs:SendMessage")

    aws.wait_until(has_left_one, what="FinishRun to leave a check")
    aws.kill_when("ingest", "dynamodb:GetItem", times=0)


def wait_for_use(aws, role: str, action: str) -> None:
    aws.wait_until(lambda: is_used(aws, role, action), what=f"{role} to need {action}", seconds=60)


def is_used(aws, role: str, action: str) -> bool:
    report = aws.permissions()
    unused = {
        (short(report["roles"].get(permission[0], permission[0])), permission[1])
        for permission in report["unused"]
    }
    return (role, action) not in unused


def what_cannot_be_done_in_three_attempts(debugger) -> None:
    """It ends among the dead letters, or is looked at again because the workflow has left a check."""
    aws = debugger.aws
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": ["stoptraining"]}
    debugger.attach("failing", [stop])
    saver = Saver(debugger.storage("failing")).begin()
    with dying(aws, "Act", "dynamodb:UpdateItem"), dying(aws, "Notify", "dynamodb:UpdateItem"):
        saver.save(0, ILL)
    debugger.wait("failing", through=0)
    with dying(aws, "Sweep", "dynamodb:Query"):
        aws.forward(301)
    with dying(aws, "MarkPublished", "dynamodb:UpdateItem", leaves="Evaluation"):
        saver.save(1, WELL)
    debugger.wait("failing", through=1)
    with dying(aws, "Watch", "dynamodb:GetItem"):
        aws.forward(1801)
    saver.save(2, WELL)
    debugger.wait("failing", through=2)
    saver.end()
    with dying(aws, "WriteReport", "dynamodb:Query"):
        debugger.finish("failing")


@contextmanager
def dying(aws, role: str, call: str, leaves: str = "") -> Iterator[None]:
    """Within this a function dies at that call, until somebody had to leave a message because of it."""
    function = re.sub("([a-z])([A-Z])", r"\1_\2", role).lower()
    aws.kill_when(function, call, times=100)
    yield
    wait_for_use(aws, leaves or role, "sqs:SendMessage")
    aws.kill_when(function, call, times=0)


def a_training_that_is_resumed(debugger) -> None:
    """Its run is woken up for already, and will be later now."""
    Saver(debugger.storage("resumed")).begin().save(0)
    run = debugger.wait("resumed", through=0)
    again = Saver(debugger.storage("resumed"), training_run=1).begin()
    debugger.aws.wait_until(
        lambda: run.look().record.training_run == 1, what="the second attempt to be noticed"
    )
    again.save(1)
    debugger.wait("resumed", through=1)


def a_run_at_the_root_of_the_bucket(debugger) -> None:
    rules = [
        {"rule": "ExplodingTensor", "name": "x", "actions": ["stoptraining"]},
        {
            "rule": "Remembering",
            "name": "Remembering",
            "source": source_of("Remembering", debugger),
        },
    ]
    debugger.attach("", rules)
    saver = Saver(debugger.storage("")).begin()
    for step in range(4):
        saver.save(step, WELL if step < 3 else {**WELL, **MANY})
    run = debugger.wait("", through=3)
    debugger.aws.wait_until(run.actions, what="the outcome of the action at the root")
    saver.end()
    debugger.finish("")
    the_report_is_there(debugger, "")


def the_report_is_there(debugger, name: str) -> None:
    place = debugger.storage(name)
    debugger.aws.wait_until(lambda: place.exists("report/report.html"), what="the report")


def all_of_a_life(debugger) -> None:
    aws = debugger.aws
    actions = [{"name": "stoptraining", "training_job_prefix": "nobody"}, "email"]
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": actions}
    debugger.attach(
        "all",
        [
            stop,
            custom(debugger, "Counting", COUNTING),
            {
                "rule": "Remembering",
                "name": "Remembering",
                "source": source_of("Remembering", debugger),
            },
        ],
    )
    saver = Saver(debugger.storage("all")).begin()
    for step in range(4):
        saver.save(step, WELL if step < 3 else {**WELL, **MANY})
    run = debugger.wait("all", through=3)
    ended = {"TrainingJobName": "not-one-of-ours", "TrainingJobStatus": "Completed"}
    aws.client("events").put_events(
        Entries=[
            {
                "Source": "aws.sagemaker",
                "DetailType": "SageMaker Training Job State Change",
                "Detail": json.dumps(ended),
            }
        ]
    )
    aws.wait_until(run.actions, what="the outcome of the action")
    with aws.losing_notifications():
        saver.save(4)
    aws.forward(361)  # the sweeper finds it
    debugger.wait("all", through=4)
    aws.forward(1801)  # it is silent
    aws.wait_until(lambda: str(run.look().state) == "Silent", what="the silence")
    saver.save(5, ILL)
    debugger.wait("all", through=5)
    run.attach({"name": "later", "rule": "VanishingGradient"})
    saver.save(6)
    aws.wait_until(
        lambda: [status for status in run.statuses() if status.name == "later" and status.attached],
        what="the rule attached later",
    )
    debugger.wait("all", through=6)
    for step in range(7, 40):  # a lane joins the others at a step at which it has nothing to tell
        saver.save(step)
        debugger.wait("all", through=step)
        if not any(group.startswith("lane-") for group in run.look().record.groups):
            break
    saver.end()
    debugger.finish("all")
    the_report_is_there(debugger, "all")
    aws.forward(301)  # the sweeper lists it no more
    aws.wait_until(
        lambda: run.run not in [run.run for run in aws.connect().runs(watched=True)],
        what="the run to be a past one",
    )
