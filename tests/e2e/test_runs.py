"""Runs on the deployed template with the real handlers, from their files to the alerts."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

import numpy as np
import pytest

from local_aws.errors import WaitedTooLong
from smdebug.service.records import RunState
from smdebug.storage import open_storage
from tests.functions.saver import FAILING, HEALTHY, Saver

FOUND = "Rule Evaluation Condition Met"
EXPLODING = ["ExplodingTensor"]


def test_a_finding_becomes_an_event_and_an_alert(local_debugger):
    inbox = local_debugger.aws.inbox("alerts-of-a-finding")
    local_debugger.attach("mnist", EXPLODING)
    saver = Saver(local_debugger.storage("mnist")).begin()
    for step, tensors in enumerate([HEALTHY, FAILING, HEALTHY]):
        saver.save(step, tensors)
    local_debugger.wait("mnist", through=2)

    (finding,) = local_debugger.findings("mnist")
    assert (finding.step, finding.rule) == (1, "ExplodingTensor")
    assert finding.worst[0]["tensor"] == "gradient/fc"
    event = local_debugger.events("mnist", FOUND)[0]  # published at least once
    assert event["source"] == "smdebug"
    assert event["detail"]["step"] == 1

    def alerts():
        messages = [
            message for message in inbox.messages() if local_debugger.key("mnist") in message["message"]
        ]
        return [message for message in messages if "gradient/fc" in message["message"]]

    message = local_debugger.aws.wait_until(alerts, what="the alert")[0]
    assert "ExplodingTensor" in message["message"]


def test_no_call_is_refused(local_debugger):
    saver = Saver(local_debugger.storage("plain")).begin()
    saver.save(0)
    local_debugger.wait("plain", through=0)
    assert local_debugger.aws.refused() == []


def test_a_step_is_evaluated_once_all_of_its_workers_have_written_it(local_debugger):
    place = local_debugger.storage("wide")
    local_debugger.attach("wide", EXPLODING)
    workers = [Saver(place, f"worker_{rank}", num_workers=4) for rank in range(4)]
    for worker in workers:
        worker.begin()
    for worker in workers[:3]:
        worker.save(0, FAILING)
    run = local_debugger.run("wide")
    local_debugger.aws.wait_until(
        lambda: run.steps() and len(run.steps()[0].workers) == 3, what="three workers"
    )
    assert not run.findings()
    workers[3].save(0, FAILING)
    local_debugger.wait("wide", through=0)
    assert [finding.step for finding in run.findings()] == [0]


def test_order_and_repetition_of_notifications_do_not_matter(local_debugger, tmp_path):
    saver = Saver(open_storage(str(tmp_path))).begin()
    for step in range(6):
        saver.save(step, FAILING if step in (2, 5) else HEALTHY)
    files = [file for file in sorted(tmp_path.rglob("*")) if file.is_file()]
    place = local_debugger.storage("shuffled")
    local_debugger.attach("shuffled", [{"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}])
    for file in [*reversed(files), *files]:
        place.write(file.relative_to(tmp_path).as_posix(), file.read_bytes())
    local_debugger.wait("shuffled", through=5)
    assert [finding.step for finding in local_debugger.findings("shuffled")] == [2, 5]


def test_a_dead_worker_is_not_waited_for_when_the_run_ends(local_debugger):
    place = local_debugger.storage("halved")
    local_debugger.attach("halved", EXPLODING)
    alive, dying = (Saver(place, f"worker_{rank}", num_workers=2).begin() for rank in (0, 1))
    for saver in (alive, dying):
        saver.save(0)
    for step in (1, 2):
        alive.save(step)
    alive.end()
    run = local_debugger.finish("halved")
    status = run.status("ExplodingTensor")
    assert status.evaluated_through == 2  # as far as the other worker has saved it
    assert run.state is RunState.FINISHED
    assert str(status.status) == "Stopped"
    assert "2 due steps were not evaluated as a whole" in status.reason
    assert str(run.look().summary.verdict) == "Incomplete"


def test_every_rule_has_a_last_status_when_the_run_ends(local_debugger):
    local_debugger.attach("ended", ["ExplodingTensor", "VanishingGradient"])
    saver = Saver(local_debugger.storage("ended")).begin()
    saver.save(0, FAILING)
    saver.end()
    run = local_debugger.finish("ended")
    statuses = {status.rule: str(status.status) for status in run.statuses()}
    assert (statuses["ExplodingTensor"], statuses["VanishingGradient"]) == ("IssuesFound", "NoIssuesFound")
    assert statuses["DeadUnits"] == "NotChecked", "a default rule, of a run without observations"
    events = local_debugger.events("ended", "Run State Change")
    assert [event["detail"]["state"] for event in events][-1] == "Finished"


def test_waiting_for_rules_waits_for_their_events(local_debugger, monkeypatch):
    aws = local_debugger.aws
    client = aws.client("stepfunctions")
    deployed = client.describe_state_machine(stateMachineArn=aws.outputs["Workflow"])
    slow = {"StartAt": "Put", "States": {"Put": {"Type": "Wait", "Seconds": 2, "End": True}}}
    arn = client.create_state_machine(name="slow", definition=json.dumps(slow), roleArn=deployed["roleArn"])[
        "stateMachineArn"
    ]
    monkeypatch.setitem(aws.outputs, "Workflow", arn)
    saver = Saver(local_debugger.storage("told")).begin()
    local_debugger.attach("told", ["ExplodingTensor"])
    saver.save(0, FAILING)
    run = local_debugger.run("told").run

    def start(name, run):
        request = json.dumps({"run": run})
        return client.start_execution(stateMachineArn=arn, name=name, input=request)["executionArn"]

    executions = [start("one", run), start("another", "bucket/another")]
    local_debugger.wait("told", through=0)
    assert client.describe_execution(executionArn=executions[0])["status"] == "SUCCEEDED"
    start("long", run)
    aws.settle("bucket/nobody", seconds=0)
    with pytest.raises(WaitedTooLong, match="evaluations to end"):
        aws.settle(run, seconds=0.1)
    aws.settle()
    assert client.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"] == []


def test_an_execution_that_has_no_time_left_is_continued_by_another_one(local_debugger):
    aws = local_debugger.aws
    local_debugger.attach("long", EXPLODING)
    Saver(local_debugger.storage("long")).begin().save(0, FAILING)
    run = local_debugger.wait("long", through=0).run
    client, arn = aws.client("stepfunctions"), aws.outputs["Workflow"]

    def statuses():
        found = client.list_executions(stateMachineArn=arn)["executions"]
        return {execution["executionArn"]: execution["status"] for execution in found}

    def starts_another(name):
        """Whether another execution follows. None does while an earlier one holds the rules: it goes on."""
        aws.settle()
        before = statuses()
        request = {
            "run": run,
            "step": 0,
            "groups": [{"group": "builtin", "kind": "builtin"}],
            "finish": False,
            "until": "2000-01-01T00:00:00Z",
        }
        handled = len(aws.invocations("ingest"))
        late = client.start_execution(stateMachineArn=arn, name=name, input=json.dumps(request))
        aws.wait_until(lambda: len(aws.invocations("ingest")) > handled, what="its message to be handled")
        aws.settle()
        history = client.get_execution_history(executionArn=late["executionArn"])["events"]
        entered = [
            event["stateEnteredEventDetails"]["name"]
            for event in history
            if "stateEnteredEventDetails" in event
        ]
        assert "LeaveContinuation" in entered
        assert "Evaluate" not in entered
        after = statuses()
        assert after[late["executionArn"]] == "SUCCEEDED"
        new = after.keys() - before.keys()
        assert {after[execution] for execution in new} <= {"SUCCEEDED", "RUNNING"}
        return len(new) > 1

    # On a busy machine a check of the run may have started one that holds the rules at that moment.
    assert any(starts_another(f"late-{attempt}") for attempt in range(5))


def test_rules_attached_to_a_live_run_start_at_its_first_step(local_debugger):
    local_debugger.attach("live", ["VanishingGradient"])
    saver = Saver(local_debugger.storage("live")).begin()
    for step in range(3):
        saver.save(step, FAILING)
    run = local_debugger.wait("live", through=2)
    assert not run.findings()
    run.attach("ExplodingTensor")
    local_debugger.aws.wait_until(
        lambda: {status.rule for status in run.statuses()} >= {"ExplodingTensor"},
        what="the new rule",
    )
    saver.save(3, FAILING)
    local_debugger.wait("live", through=3)
    found = [(finding.step, finding.rule, finding.detail["catch_up"]) for finding in run.findings()]
    # The issue is published again at the first new step, because actions may now follow.
    assert found == [(0, "ExplodingTensor", True), (3, "ExplodingTensor", False)]


def test_rules_attached_to_an_ended_run_evaluate_all_of_it(local_debugger):
    local_debugger.attach("past", ["VanishingGradient"])
    saver = Saver(local_debugger.storage("past")).begin()
    for step in range(3):
        saver.save(step, FAILING if step == 1 else HEALTHY)
    saver.end()
    run = local_debugger.finish("past")
    run.attach("ExplodingTensor")
    local_debugger.aws.wait_until(lambda: run.findings(), what="the finding of the new rule")
    assert [(finding.step, finding.rule) for finding in run.findings()] == [(1, "ExplodingTensor")]


def test_none_of_five_hundred_files_is_lost(local_debugger):
    local_debugger.attach("many", [{"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}])
    place = local_debugger.storage("many")
    workers = [Saver(place, f"worker_{rank}", num_workers=5).begin() for rank in range(5)]
    failing = {7: 0, 30: 4, 49: 2}
    for step in range(50):  # five workers, two files each
        for rank, worker in enumerate(workers):
            worker.save(step, FAILING if failing.get(step) == rank else HEALTHY)
    run = local_debugger.wait("many", through=49)
    assert {finding.step: finding.worst[0]["worker"] for finding in run.findings()} == {
        step: f"worker_{rank}" for step, rank in failing.items()
    }
    assert all(step.evaluated and len(step.workers) == 5 for step in run.steps())


@pytest.mark.parametrize("kind", ["index", "rules"])
def test_a_malformed_file_does_not_stop_the_others(local_debugger, kind):
    place = local_debugger.storage("good")
    local_debugger.attach("good", EXPLODING)
    saver = Saver(place).begin()
    saver.save(0)
    if kind == "index":
        place.write("index/000000000/000000000001_worker_0.json", b"\x00 not json")
        place.write("events/000000000001/000000000001_worker_0.tfevents", b"neither")
    else:
        local_debugger.wait("good", through=0)  # the rules that continue have been read
        place.write("rules.json", b"{")
    saver.save(2, FAILING)
    local_debugger.aws.wait_until(
        lambda: [finding.step for finding in local_debugger.findings("good")] == [2],
        what="the finding after the broken file",
    )


def test_a_malformed_message_becomes_a_dead_letter(local_debugger):
    aws = local_debugger.aws
    sqs = aws.client("sqs")
    (queue,) = [
        url for url in sqs.list_queues()["QueueUrls"] if "ArrivalsQueue" in url and "DeadLetters" not in url
    ]
    poison = json.dumps({"poison": local_debugger.key("x")})
    with receiving_at_most(sqs, queue, 5):  # of the stack's many
        sqs.send_message(QueueUrl=queue, MessageBody=poison)
        saver = Saver(local_debugger.storage("beside")).begin()
        saver.save(0)
        local_debugger.wait("beside", through=0)

        def is_dead():
            aws.forward(31)
            return poison in aws.dead_letters()

        aws.wait_until(is_dead, what="the dead letter", pause=0.5)


@contextmanager
def receiving_at_most(sqs, queue, times):
    """Have messages of a queue become dead letters after so many attempts."""
    known = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])
    policy = known["Attributes"]["RedrivePolicy"]
    fewer = json.dumps({**json.loads(policy), "maxReceiveCount": times})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": fewer})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})


def test_a_handler_that_is_killed_during_an_evaluation_is_retried(local_debugger):
    aws = local_debugger.aws
    local_debugger.attach("killed", EXPLODING)
    saver = Saver(local_debugger.storage("killed")).begin()
    saver.save(0)
    local_debugger.wait("killed", through=0)
    aws.kill_when("evaluate", "dynamodb:PutItem")  # when it is about to commit a finding
    before = len(aws.invocations())
    saver.save(1, FAILING)
    aws.wait_until(
        lambda: (
            "Runtime.ExitError" in [invocation.error for invocation in aws.invocations("evaluate", before)]
        ),
        what="the death of the handler",
    )
    aws.forward(131)  # its lease has expired
    local_debugger.wait("killed", through=1)
    assert [finding.step for finding in local_debugger.findings("killed")] == [1]
    events = aws.wait_until(lambda: local_debugger.events("killed", FOUND), what="the event")
    assert {(event["detail"]["id"], event["detail"]["step"]) for event in events} == {
        (finding.id, 1) for finding in local_debugger.findings("killed")
    }


def test_a_hook_saves_to_the_local_bucket_and_stops_on_request(local_debugger):
    import smdebug
    from smdebug.exceptions import TrainingStopped

    rule = {"name": "nan", "rule": "ExplodingTensor", "actions": ["stoptraining"]}
    path = local_debugger.path("stopped")
    hook = smdebug.Hook(
        path,
        include_collections=["gradients"],
        save_config=smdebug.SaveConfig(save_interval=1),
        rules=[rule],
        look_for_stop=0.0,
    )
    with pytest.raises(TrainingStopped) as stopped, hook:
        for step in range(1000):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("gradient/fc", np.array([np.nan if step == 2 else 1.0]))
            time.sleep(0.05 if step < 20 else 0.3)  # the duration of a step
    (finding,) = local_debugger.findings("stopped")
    assert stopped.value.finding_id == finding.id
    assert "gradient/fc" in stopped.value.reason


def test_a_finished_run_gets_a_report(local_debugger):
    local_debugger.attach("told", EXPLODING)
    place = local_debugger.storage("told")
    saver = Saver(place).begin()
    for step, tensors in enumerate([HEALTHY, FAILING, HEALTHY]):
        saver.save(step, tensors)
    saver.end()
    local_debugger.finish("told")
    aws = local_debugger.aws
    aws.wait_until(lambda: place.exists("report/report.html"), what="the report")
    page = place.read("report/report.html").decode()
    assert "ExplodingTensor detected a problem at step 1." in page
    assert "gradient/fc" in page
    assert aws.refused() == []
    # The report itself has triggered nothing: no step, no rule and no run.
    run = local_debugger.run("told")
    assert [step.step for step in run.steps()] == [0, 1, 2]
    assert run.state is RunState.FINISHED
