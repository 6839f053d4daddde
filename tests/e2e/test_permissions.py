"""Every permission in the template is needed by something that the application does, or has its reason."""

from __future__ import annotations

import json
import re

import numpy as np

from infra.local import LocalDebugger
from tests.e2e.test_rules import COUNTING, custom
from tests.functions.saver import ILL, WELL, Saver

# What nobody can show on a laptop, and why it is in the template all the same.
FAILED = "It is for what its function could not do in three attempts."
LEFT = (
    "It leaves a check when the workflow or the function itself fails, which no run here has it do."
)
JOB = "It is for SageMaker's jobs, which moto has no training for."
AGAIN = "It is for a finished run that goes on, with nobody but the sweeper noticing."
NOT_SHOWN = {
    **{
        (role, "sqs:SendMessage"): FAILED
        for role in ("Act", "Notify", "Sweep", "Watch", "WriteReport")
    },
    ("UndeliveredQueue", "sqs:SendMessage"): FAILED,
    (
        "NotifyFunction",
        "lambda:InvokeFunction",
    ): "CloudWatch calls it too, for alarms, which moto never raises.",
    (
        "Claim",
        "s3:GetObject",
    ): "Whatever it reads in the bucket, the sources of rules that lie elsewhere, too.",
    **{
        (role, "sqs:SendMessage"): LEFT
        for role in ("Commit", "Evaluate", "Evaluation", "FinishRun", "MarkPublished")
    },
    **{
        ("Act", f"sagemaker:{action}"): JOB
        for action in ("DescribeTrainingJob", "ListTrainingJobs", "StopTrainingJob")
    },
    **{
        ("Sweep", action): AGAIN
        for action in ("iam:PassRole", "scheduler:CreateSchedule", "scheduler:UpdateSchedule")
    },
    ("Sweep", "s3:GetObject"): "It is for a collections or rules file that only the sweeper finds.",
    (
        "Watch",
        "scheduler:UpdateSchedule",
    ): "A schedule is gone once it has fired; on AWS not at once.",
    (
        "Act",
        "sns:Publish",
    ): "It is for e-mails and SMS that a rule asks for, to addresses of the stack.",
    ("Claim", "s3:ListBucket"): "It is for a rule's source that is not there.",
    ("Evaluate", "s3:ListBucket"): "It is for runs to compare with that the index does not know.",
    ("CustomRulesAccess", "s3:ListBucket"): "The same, for a custom rule.",
    ("Commit", "dynamodb:DeleteItem"): "It ends the lane of a custom rule that has caught up.",
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


def test_every_permission_is_needed_and_none_is_missing(local_debugger):
    everything_that_happens(local_debugger)
    aws = local_debugger.aws
    assert aws.refused() == []
    told = aws.permissions()
    names = told["roles"]
    unused = {
        (short(names.get(owner, owner)), action, resource)
        for owner, action, resource in told["unused"]
    }
    unexplained = {one for one in unused if one[:2] not in NOT_SHOWN}
    assert not unexplained, "\n".join(" ".join(one) for one in sorted(unexplained))
    # Each statement taken away in turn: something that was done would be refused.
    needless = [
        (short(names.get(one["owner"], one["owner"])), action)
        for one in told["needless"]
        for action in one["actions"]
    ]
    assert not set(needless) - set(NOT_SHOWN), sorted(set(needless) - set(NOT_SHOWN))


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
    a_training_that_is_resumed(debugger)


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
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": ["stoptraining"]}
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
        lambda: [one for one in run.statuses() if one.name == "later" and one.attached],
        what="the rule attached later",
    )
    debugger.wait("all", through=6)
    saver.end()
    debugger.finish("all")
    the_report_is_there(debugger, "all")
    aws.forward(301)  # the sweeper lists it no more
    aws.wait_until(
        lambda: run.run not in [one.run for one in aws.connect().runs(watched=True)],
        what="the run to be a past one",
    )
