"""Everything that the application does and needs a permission for, on a local stack."""

from __future__ import annotations

import json
from contextlib import ExitStack

import numpy as np

from smdebug.files.names import END_MARKER
from tests.e2e.patience import (
    TIMEOUT,
    PatientDebugger,
    failing_for_good,
    is_used,
    killing,
    wait_for_use,
    wait_until,
)
from tests.e2e.test_rules import COUNTING, custom
from tests.functions.saver import FAILING, HEALTHY, Saver

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


def remembering(debugger) -> dict:
    """A custom rule with a source that two runs share."""
    key = "rule-sources/Remembering.py"
    body = REMEMBERING.encode()
    debugger.aws.client("s3").put_object(Bucket=debugger.bucket, Key=key, Body=body)
    source = f"s3://{debugger.bucket}/{key}"
    return {"rule": "Remembering", "name": "Remembering", "source": source}


# What the application does


def run_everything(debugger) -> None:
    a_whole_run(debugger)
    a_run_at_the_root_of_the_bucket(PatientDebugger(debugger.aws))
    a_run_named_after_the_job_of_another(debugger)
    a_finished_run_that_resumes_unnoticed(debugger)
    rules_that_ask_for_missing_objects(debugger)
    a_custom_rule_that_waits_alone(debugger)
    a_claim_whose_next_step_waits(debugger)
    a_run_that_ends_while_its_rule_waits(debugger)
    a_run_of_which_only_the_end_is_reported(debugger)
    functions_that_fail_in_every_attempt(debugger)


def a_whole_run(debugger) -> None:
    aws = debugger.aws
    actions = [{"name": "stoptraining", "training_job_prefix": "nobody"}, "email", "zoomin"]
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": actions}
    debugger.attach("all", [stop, custom(debugger, "Counting", COUNTING), remembering(debugger)])
    saver = Saver(debugger.storage("all")).begin()
    for step in range(4):
        saver.save(step, HEALTHY if step < 3 else {**HEALTHY, **MANY})
    run = debugger.wait("all", through=3)
    end_a_training_job(aws)
    wait_until(aws, lambda: has_taken(run, "stoptraining", "email", "zoomin"), "the actions")
    with aws.losing_notifications():
        saver.save(4)
    aws.forward(361)  # the sweeper finds step 4
    debugger.wait("all", through=4)
    aws.forward(1801)  # the run is silent
    wait_until(aws, lambda: str(run.look().state) == "Silent", "the silence")
    saver.save(5, FAILING)
    debugger.wait("all", through=5)
    run.attach({"name": "later", "rule": "VanishingGradient"})
    saver.save(6)
    wait_until(
        aws,
        lambda: [rule for rule in run.statuses() if rule.name == "later" and rule.attached],
        "the rule attached later",
    )
    debugger.wait("all", through=6)
    merge_lanes(debugger, run, saver)
    saver.end()
    debugger.finish("all")
    wait_for_report(debugger, "all")
    aws.forward(301)  # the sweeper removes the run from the list of watched runs
    wait_until(
        aws,
        lambda: run.run not in [watched.run for watched in aws.connect().runs(watched=True)],
        "the run to be a past one",
    )


def has_taken(run, *names: str) -> bool:
    """Return whether actions of these names have an outcome."""
    return set(names) <= {outcome.name for outcome in run.actions()}


def merge_lanes(debugger, run, saver) -> None:
    """Evaluate lanes while nothing else is evaluated, so that they find the other rules level.

    A lane has to publish nothing at that step, hence further steps.
    """

    def lanes() -> list[str]:
        return [group for group in run.look().record.groups if group.startswith("lane-")]

    for step in range(7, 40):
        saver.save(step)
        debugger.wait("all", through=step)
        for lane in lanes():
            request = {"run": run.run, "group": lane, "step": step}
            debugger.aws.invoke("evaluate", request, seconds=TIMEOUT)
        if not lanes():
            return
    raise AssertionError("a lane has never joined the other rules")


def end_a_training_job(aws) -> None:
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


def a_run_at_the_root_of_the_bucket(debugger) -> None:
    """It is refused, and nothing is read or written there."""
    Saver(debugger.storage("")).begin().save(0, FAILING)
    run = debugger.run("")
    wait_until(debugger.aws, lambda: run.look().record.is_refused, "the refusal")


def a_run_named_after_the_job_of_another(debugger) -> None:
    """The job's description does not name the run, so the job is not stopped."""
    create_training_job(debugger.aws, "victim-2026")
    name = "x/victim-2026/debug-output"
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": ["stoptraining"]}
    debugger.attach(name, [stop])
    Saver(debugger.storage(name)).begin().save(0, FAILING)
    run = debugger.wait(name, through=0)

    def was_refused() -> bool:
        return any("does not say that it trains" in outcome.message for outcome in run.actions())

    wait_until(debugger.aws, was_refused, "the refusal to stop a stranger's job")


def create_training_job(aws, name: str) -> None:
    aws.client("sagemaker").create_training_job(
        TrainingJobName=name,
        AlgorithmSpecification={"TrainingInputMode": "File", "TrainingImage": "image"},
        RoleArn="arn:aws:iam::123456789012:role/training",
        OutputDataConfig={"S3OutputPath": "s3://elsewhere/out"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )


def wait_for_report(debugger, name: str) -> None:
    storage = debugger.storage(name)
    wait_until(debugger.aws, lambda: storage.exists("report/report.html"), "the report")


def a_finished_run_that_resumes_unnoticed(debugger) -> None:
    """Only the sweeper notices it, before it moves the run to the past ones, and changes its schedule.

    On a busy machine, the wait for the end of the run moves the clock, and its schedule may fire: then there
    is none to change, and another run does the same.
    """
    for attempt in range(5):
        resume_unnoticed(debugger, f"again-{attempt}")
        if is_used(debugger.aws, "Sweep", "scheduler:UpdateSchedule"):
            return
    raise AssertionError("the sweeper never changed the schedule of a run")


def resume_unnoticed(debugger, name: str) -> None:
    aws = debugger.aws
    debugger.attach(name, ["ExplodingTensor"])
    saver = Saver(debugger.storage(name)).begin()
    saver.save(0)
    saver.end()
    with ExitStack() as stack:
        with killing(aws, "sweep", "dynamodb:Query"):
            debugger.finish(name)
            stack.enter_context(killing(aws, "ingest", "dynamodb:GetItem"))
            with aws.losing_notifications():
                resumed = Saver(debugger.storage(name), run_id="run-2", training_run=1).begin()
                debugger.attach(name, ["ExplodingTensor", "VanishingGradient"])
                resumed.save(1)
            aws.forward(361)  # a sweep would leave younger files to their notification
        aws.forward(301)  # until the next sweep
        run = debugger.run(name)
        wait_until(aws, lambda: str(run.look().state) != "Finished", "the sweeper to notice it")
    debugger.wait(name, through=1)


def rules_that_ask_for_missing_objects(debugger) -> None:
    """A source that was never uploaded, and a run to compare with that does not exist."""
    elsewhere = debugger.path("unknown")
    missing = f"s3://{debugger.bucket}/rule-sources/no.py"
    debugger.attach(
        "asking",
        [
            {"rule": "Nowhere", "name": "n", "source": missing},
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
    wait_until(debugger.aws, lambda: str(run.status("n").status) == "Error", "the error")
    for role in ("Claim", "Evaluate", "CustomRulesAccess"):
        wait_for_use(debugger.aws, role, "s3:ListBucket")


def a_custom_rule_that_waits_alone(debugger) -> None:
    """No other function records what its step holds, or sends a reminder for it."""
    aws = debugger.aws
    Saver(debugger.storage("slow")).begin().save(0)
    debugger.wait("slow", through=0)
    waiting = custom(debugger, "Waiting", WAITING)
    debugger.attach("alone", [{**waiting, "other_trials": [debugger.path("slow")]}])
    with killing(aws, "evaluate", "dynamodb:PutItem"):
        Saver(debugger.storage("alone")).begin().save(1)
        wait_for_use(aws, "Claim", "dynamodb:PutItem")
        wait_for_use(aws, "Commit", "sqs:SendMessage")


def a_claim_whose_next_step_waits(debugger) -> None:
    """The earlier reminder of the run is due, and not handled yet, when the claim is made.

    Which reminder that is depends on the order of the functions: if the built-in rules have left theirs after
    ingest, it is as late as the one that the claim needs. Then the next lost step is tried.
    """
    aws = debugger.aws
    debugger.attach("gap", [custom(debugger, "Counting", COUNTING)])
    saver = Saver(debugger.storage("gap")).begin()
    saver.save(0)
    run = debugger.wait("gap", through=0)
    (group,) = [name for name in run.look().record.groups if name.startswith("custom-")]
    for lost in range(1, 100, 2):
        with aws.losing_notifications():
            saver.save(lost)
        saver.save(lost + 1)
        wait_for_record(aws, run, lost + 1)
        aws.settle(run.run, seconds=TIMEOUT)
        with (
            killing(aws, "ingest", "dynamodb:GetItem"),
            killing(aws, "sweep", "dynamodb:Query"),
        ):
            aws.forward(301)
            request = {"run": run.run, "group": group, "step": lost + 1}
            aws.invoke("claim", request, seconds=TIMEOUT)
            if is_used(aws, "Claim", "sqs:SendMessage"):
                return
        aws.forward(901)  # the next evaluation gives the lost step up
    raise AssertionError("a claim has never sent a reminder")


def wait_for_record(aws, run, number: int) -> None:
    wait_until(aws, lambda: number in [step.step for step in run.steps()], f"step {number}")


def a_run_that_ends_while_its_rule_waits(debugger) -> None:
    """The reminder of the rule is due, and not handled yet, when the run is to be finished."""
    aws = debugger.aws
    waiting = custom(debugger, "Waiting", WAITING)
    debugger.attach("ending", [{**waiting, "other_trials": [debugger.path("slow")]}])
    saver = Saver(debugger.storage("ending")).begin()
    saver.save(1)
    saver.end()
    run = debugger.end("ending")

    def has_sent_a_reminder() -> bool:
        aws.forward(61)
        aws.invoke("finish_run", {"run": run.run}, seconds=TIMEOUT)
        return is_used(aws, "FinishRun", "sqs:SendMessage")

    with killing(aws, "ingest", "dynamodb:GetItem"):
        wait_until(aws, has_sent_a_reminder, "FinishRun to send a reminder")


def a_run_of_which_only_the_end_is_reported(debugger) -> None:
    """Watch finds the collections of its attempt, and the steps."""
    aws = debugger.aws
    debugger.attach("unreported", ["ExplodingTensor"])
    storage = debugger.storage("unreported")
    with aws.losing_notifications():
        saver = Saver(storage, training_run=1).begin()
        saver.save(0)
    with killing(aws, "sweep", "dynamodb:Query"):
        storage.write(END_MARKER, b"")
        debugger.finish("unreported")
    for action in ("dynamodb:PutItem", "dynamodb:DeleteItem", "s3:ListBucket"):
        wait_for_use(aws, "Watch", action)


def functions_that_fail_in_every_attempt(debugger) -> None:
    """Their events become dead letters, or the workflow sends a reminder to evaluate again."""
    aws = debugger.aws
    stop = {"rule": "ExplodingTensor", "name": "x", "actions": ["stoptraining"]}
    debugger.attach("failing", [stop])
    saver = Saver(debugger.storage("failing")).begin()
    with (
        failing_for_good(aws, "Act", "dynamodb:UpdateItem"),
        failing_for_good(aws, "Notify", "dynamodb:UpdateItem"),
    ):
        saver.save(0, FAILING)
    debugger.wait("failing", through=0)
    with failing_for_good(aws, "Sweep", "dynamodb:Query"):
        aws.forward(301)
    with failing_for_good(aws, "MarkPublished", "dynamodb:UpdateItem", sender="Evaluation"):
        saver.save(1, HEALTHY)
    debugger.wait("failing", through=1)
    with failing_for_good(aws, "Watch", "dynamodb:GetItem"):
        aws.forward(1801)
    saver.save(2, HEALTHY)
    debugger.wait("failing", through=2)
    saver.end()
    with failing_for_good(aws, "WriteReport", "dynamodb:Query"):
        debugger.finish("failing")
