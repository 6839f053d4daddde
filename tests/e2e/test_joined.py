"""A stack that joins what others have: their bus, their topic, and the bus of a central account."""

from __future__ import annotations

from local_aws import LocalAws
from local_aws.deployment.assembly import synthesized
from smdebug.cli.main import main
from smdebug.sinks.records import IssueRecord, from_line
from smdebug.storage import open_storage
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.local_aws.edited import edited

TOPIC = "arn:aws:sns:us-east-1:123456789012:on-call"
CENTRAL = "arn:aws:events:eu-west-1:210987654321:event-bus/all-runs"
SETTINGS = {
    "event_bus": "platform",
    "alert_topic": TOPIC,
    "alert_emails": "me@example.org",
    "central_bus": CENTRAL,
    "default_rules": "ExplodingTensor",
}


def test_a_finding_reaches_the_topic_of_others_and_the_central_account():
    with LocalAws(SETTINGS) as aws:
        assert aws.outputs["FindingsBus"] == "platform"
        inbox = aws.inbox(topic=TOPIC)
        with aws.as_default():
            saver = Saver(open_storage(f"s3://{aws.bucket}/joined"), "worker_0").begin()
            saver.save(0, HEALTHY)
            saver.save(1, FAILING)
            saver.end()
        subjects = []

        def alerts():
            subjects.extend(message["subject"] for message in inbox.messages())
            return len(subjects) == 2

        aws.wait_until(alerts, what="two alerts on the topic of others")
        run = f"{aws.bucket}/joined"
        assert sorted(subjects) == [
            f"ExplodingTensor detected an issue at step 1 of {run}",
            f"Run {run} is Finished: issues found",
        ]
        aws.settle()
        aws.wait_until(lambda: sent(aws) == published(aws), what="every event in the central account")
        assert {event["account"] for event in aws.events(bus=CENTRAL)} == {"123456789012"}
        assert aws.refused() == []
        assert aws.dead_letters() == []


def test_an_event_that_no_role_may_send_on_is_a_dead_letter(tmp_path):
    def without_sending(resources):
        for resource in resources.values():
            if resource["Type"] == "AWS::IAM::Policy":
                for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                    if statement["Resource"] == CENTRAL:
                        statement["Action"] = "events:PutRule"

    with LocalAws(assembly=edited(synthesized(SETTINGS), tmp_path / "edited", without_sending)) as aws:
        event = {
            "Source": "smdebug",
            "DetailType": "Run State Change",
            "Detail": "{}",
            "EventBusName": "platform",
        }
        aws.client("events").put_events(Entries=[event])
        aws.wait_until(aws.dead_letters, what="a dead letter")
        (refusal,) = [text for text in aws.refused() if "events:PutEvents" in text]
        assert CENTRAL in refusal
        assert aws.events(bus=CENTRAL) == []


def test_a_finished_run_arrives_in_the_queue_from_which_its_tool_is_fed(tmp_path, capsys):
    with LocalAws({"export_queues": "mlflow,files", "default_rules": "ExplodingTensor"}) as aws:
        queues = dict(named.split("=", 1) for named in aws.outputs["ExportQueues"].split(","))
        assert set(queues) == {"mlflow", "files"}
        place = f"s3://{aws.bucket}/sent"
        with aws.as_default():
            saver = Saver(open_storage(place), "worker_0").begin()
            saver.save(0, HEALTHY)
            saver.save(1, FAILING)
            saver.end()
        aws.wait_until(lambda: "Finished" in states(aws), what="the end of the run")
        aws.settle()
        with aws.as_default():
            command = ["export", "jsonl", "--queue", queues["files"], "--once", "-o", str(tmp_path)]
            assert main(command) == 0
            assert f"sending {place}" in capsys.readouterr().err
            assert main(command) == 0
            assert "sending" not in capsys.readouterr().err
        (file,) = tmp_path.iterdir()
        records = [from_line(line) for line in file.read_text().splitlines()]
        (problem,) = [record for record in records if isinstance(record, IssueRecord)]
        assert (problem.issue.rules, problem.step) == (("ExplodingTensor",), 1)
        assert aws.refused() == []


def states(aws):
    return {event["detail"].get("state") for event in aws.events()}


def sent(aws):
    """Identities, since a bus may deliver an event again."""
    return {event["detail"]["id"] for event in aws.events(bus=CENTRAL)}


def published(aws):
    return {event["detail"]["id"] for event in aws.events() if event["source"] == "smdebug"}
