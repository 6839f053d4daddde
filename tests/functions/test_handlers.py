"""The handlers over the real adapters, on an AWS in this process."""

from __future__ import annotations

import json
import subprocess
import sys

from functions import wiring
from functions.environment import ClaimEnvironment, IngestEnvironment
from functions.handlers import claim, evaluate, finish_run, ingest, mark_published, sweep, watch
from smdebug.storage import open_storage
from tests.functions.decisions.test_messages import notification
from tests.functions.saver import FAILING, HEALTHY, Saver


def notifications_of(s3, run: str) -> dict:
    """Return notifications of all files of a run, in one batch."""
    objects = s3.list_objects_v2(Bucket="runs", Prefix=run)["Contents"]
    return {
        "Records": [
            {
                "messageId": str(number),
                "body": notification("runs", listed["Key"], at=listed["LastModified"].isoformat()),
                "attributes": {"ApproximateReceiveCount": "1"},
            }
            for number, listed in enumerate(objects)
        ]
    }


def started(deployed) -> list[dict]:
    client, arn = deployed.stepfunctions, deployed.environment["SMDEBUG_WORKFLOW"]
    found = client.list_executions(stateMachineArn=arn)["executions"]
    return [
        json.loads(client.describe_execution(executionArn=execution["executionArn"])["input"])
        for execution in found
    ]


def test_a_batch_of_s3_events_becomes_a_finding(deployed):
    worker = Saver(open_storage("s3://runs/mnist")).begin()
    worker.save(0, HEALTHY)
    worker.save(1, FAILING)
    answer = ingest.handler(notifications_of(deployed.s3, "mnist"), None)
    assert answer == {"batchItemFailures": []}
    (request,) = started(deployed)
    assert request["run"] == "runs/mnist"
    groups = [group["group"] for group in request["groups"]]
    assert groups == ["builtin", "run"]

    reply = evaluate.handler({"run": request["run"], "step": request["step"], "group": "builtin"}, None)
    types = [entry["DetailType"] for entry in reply["outbox"]]
    assert "Rule Evaluation Condition Met" in types
    assert not reply["more"]
    mark_published.handler(reply["mark"], None)
    assert wiring.world(IngestEnvironment).index.groups.get("runs/mnist", "builtin").outbox == {}

    reply = evaluate.handler({"run": request["run"], "step": request["step"], "group": "run"}, None)
    mark_published.handler(reply["mark"], None)
    assert wiring.world(IngestEnvironment).index.run("runs/mnist").outbox == {}


def test_the_end_of_a_run_is_a_reminder_and_then_a_summary(deployed):
    worker = Saver(open_storage("s3://runs/mnist")).begin()
    worker.save(0, HEALTHY)
    worker.end()
    ingest.handler(notifications_of(deployed.s3, "mnist"), None)
    reminder = {
        "messageId": "r",
        "body": '{"finish": "runs/mnist"}',
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    assert ingest.handler({"Records": [reminder]}, None) == {"batchItemFailures": []}
    scheduled = [schedule["Name"] for schedule in deployed.scheduler.list_schedules()["Schedules"]]
    assert len([name for name in scheduled if "-finish-" in name]) == 2, "announced, and passed on"
    assert any(request["finish"] for request in started(deployed))
    evaluate.handler({"run": "runs/mnist", "step": 0, "group": "builtin"}, None)
    reply = finish_run.handler({"run": "runs/mnist"}, None)
    details = [json.loads(entry["Detail"]) for entry in reply["outbox"]]
    assert any(detail.get("state") == "Finished" for detail in details)


def test_a_silent_run_is_woken_up_for_and_a_lost_file_swept_up(deployed, monkeypatch):
    worker = Saver(open_storage("s3://runs/mnist")).begin()
    worker.save(0, HEALTHY)
    ingest.handler(notifications_of(deployed.s3, "mnist"), None)
    evaluate.handler({"run": "runs/mnist", "step": 0, "group": "builtin"}, None)
    worker.save(1, FAILING)
    now = wiring.world(IngestEnvironment).clock.now()
    monkeypatch.setattr(type(wiring.world(IngestEnvironment).clock), "now", lambda self: now + 2000)
    assert sweep.handler({}, None) == {"missed": 2}
    reply = evaluate.handler({"run": "runs/mnist", "step": 1, "group": "builtin"}, None)
    assert "Rule Evaluation Condition Met" in [entry["DetailType"] for entry in reply["outbox"]]
    monkeypatch.setattr(type(wiring.world(IngestEnvironment).clock), "now", lambda self: now + 9000)
    watch.handler({"run": "runs/mnist"}, None)
    assert wiring.world(IngestEnvironment).index.run("runs/mnist").state.value == "Silent"


def test_a_claim_whose_next_step_waits_leaves_a_check(deployed, monkeypatch):
    monkeypatch.setenv("SMDEBUG_CUSTOM_RULE_SANDBOX", "sandbox")
    monkeypatch.setenv("SMDEBUG_RULE_SOURCES", "[]")
    monkeypatch.setenv("SMDEBUG_RULE_ROLE", "arn:aws:iam::123456789012:role/rules")
    storage = open_storage("s3://runs/mnist")
    rule = {"name": "mine", "rule": "Mine", "source": "s3://runs/rule-sources/rule.py"}
    storage.write("rules.json", json.dumps({"version": 1, "default_rules": False, "rules": [rule]}).encode())
    worker = Saver(storage).begin()
    worker.save(0, HEALTHY)
    worker.save(1, HEALTHY)
    event = notifications_of(deployed.s3, "mnist")
    event["Records"] = [
        record for record in event["Records"] if "000000000000_worker_0" not in record["body"]
    ]
    assert ingest.handler(event, None) == {"batchItemFailures": []}
    (group,) = {
        known["group"]
        for request in started(deployed)
        for known in request["groups"]
        if known["kind"] == "custom"
    }

    # The check that ingest left is due and was not handled yet.
    clock = wiring.world(ClaimEnvironment).clock
    now = clock.now() + 310
    monkeypatch.setattr(type(clock), "now", lambda self: now)
    answer = claim.handler({"run": "runs/mnist", "group": group, "step": 1}, None)
    assert not answer["more"]
    assert "job" not in answer
    check_until = wiring.world(IngestEnvironment).index.run("runs/mnist").check_until
    assert now + 580 < check_until <= now + 590  # when step 0 is given up


def test_only_the_poisoned_message_is_redelivered(deployed):
    Saver(open_storage("s3://runs/mnist")).begin().save(0, HEALTHY)
    event = notifications_of(deployed.s3, "mnist")
    poison = {"messageId": "poison", "body": "{", "attributes": {}}
    event["Records"].insert(1, poison)
    answer = ingest.handler(event, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "poison"}]}
    assert wiring.world(IngestEnvironment).index.run("runs/mnist").num_workers == 1


def test_importing_a_handler_touches_nothing_and_loads_no_client():
    script = (
        "import sys\n"
        "from functions.handlers import evaluate, ingest, sweep, watch\n"
        "print([name for name in ('boto3', 'google.protobuf') if name in sys.modules])\n"
    )
    output = subprocess.check_output(
        [sys.executable, "-c", script], text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert output.splitlines() == ["[]"]
