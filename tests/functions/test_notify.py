"""Events that are worth a message become a readable one."""

import json
from types import SimpleNamespace

import pytest

from functions import wiring
from functions.adapters.in_memory import HandClock, MemoryItems
from functions.decisions.alerts import is_worth_a_message
from functions.followup.notifications import NotificationPorts, notify_once
from functions.handlers import notify
from functions.ports import TooMuch
from tests.functions.decisions.sample_events import every_kind

KINDS = every_kind()


@pytest.fixture
def inbox(deployed, monkeypatch):
    import boto3

    sns = boto3.client("sns")
    topic = sns.create_topic(Name="alerts")["TopicArn"]
    queue = deployed.sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = deployed.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    subscription = {"TopicArn": topic, "Protocol": "sqs"}
    policy = json.dumps({"to": ["everybody", "me@example.org"]})
    sns.subscribe(
        **subscription,
        Endpoint=arn["Attributes"]["QueueArn"],
        Attributes={"FilterPolicy": policy},
    )
    monkeypatch.setenv("SMDEBUG_ALERTS_TOPIC", topic)
    forget()

    def read():
        answer = deployed.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    yield read
    forget()


def forget():
    for made in (wiring.notification_ports,):
        made.cache_clear()


def event(kind, delivery="first"):
    entry, envelope = KINDS[kind], {"source": "smdebug", "id": delivery}
    return {**envelope, "detail-type": entry.detail_type, "detail": dict(entry.detail)}


class Letters:
    """A topic that stores its messages, or fails."""

    def __init__(self):
        self.sent = []
        self.trouble = None

    def publish(self, *, subject, email, sms, to=None):
        if self.trouble:
            raise self.trouble
        self.sent.append(subject)


@pytest.fixture
def writer():
    return NotificationPorts(Letters(), MemoryItems(), HandClock())


def tell(writer, kind, delivery):
    return notify_once(writer, delivery, KINDS[kind].detail_type, KINDS[kind].detail)


@pytest.mark.parametrize(
    ("kind", "worth"),
    [
        ("found", True),
        ("resolved", True),
        ("issues found", False),  # the finding was reported
        ("no issues found", False),
        ("error", True),
        ("silent", True),
        ("in trouble", True),
        ("finished", True),  # with an issue
        ("action", False),  # it was done
        ("old", False),
    ],
)
def test_events_that_deserve_an_alert_are_sent(kind, worth):
    entry = KINDS[kind]
    assert is_worth_a_message(entry.detail_type, entry.detail) is worth


def test_an_action_that_was_not_done_and_a_run_that_went_well():
    action, finished = KINDS["action"], KINDS["finished"]
    assert is_worth_a_message(action.detail_type, {**action.detail, "done": False})

    def is_reported(verdict):
        detail = {**finished.detail, "summary": {"verdict": verdict}}
        return is_worth_a_message(finished.detail_type, detail)

    assert not is_reported("NoIssuesFound")
    assert all(map(is_reported, ("IssuesFound", "Error", "Incomplete", "NotChecked")))


def test_a_finding_becomes_an_e_mail_with_its_evidence(inbox):
    notify.handler(event("found"), None)
    (message,) = inbox()
    assert message["Subject"] == (
        "fc-gradients (VanishingGradient) detected an issue at step 400 of my-bucket/mnist-1"
    )
    assert "  gradient/fc2_weight: the mean of |gradient| is 3.1e-09" in message["Message"]


def test_an_event_not_worth_a_message_sends_none(inbox):
    notify.handler(event("issues found"), None)
    assert inbox() == []


def test_an_event_that_was_published_twice_is_one_message(inbox):
    for delivery in ("first", "second", "third"):
        notify.handler(event("found", delivery), None)
    assert len(inbox()) == 1


def test_an_event_that_the_bus_delivers_twice_is_one_message(inbox):
    for invocation in ("first", "second"):
        notify.handler(event("found"), SimpleNamespace(aws_request_id=invocation))
    assert len(inbox()) == 1


def test_another_event_of_the_same_rule_is_another_message(writer):
    assert tell(writer, "found", "first")
    assert tell(writer, "resolved", "second")
    assert len(writer.topic.sent) == 2


def test_a_failed_delivery_is_sent_with_the_redelivered_event(writer):
    writer.topic.trouble = TooMuch("slow down")
    with pytest.raises(TooMuch):
        tell(writer, "found", "first")
    writer.topic.trouble = None
    assert not tell(writer, "found", "second")
    assert tell(writer, "found", "first")
    assert len(writer.topic.sent) == 1


def test_sent_marks_expire_after_the_last_possible_delivery(writer):
    tell(writer, "found", "first")
    (note,) = writer.store.query(f"SENT#{KINDS['found'].detail['issue']['id']}")
    assert note["expires"] == int(writer.clock.now()) + 14 * 24 * 3600  # a queue keeps an event so long


def test_rules_that_find_the_same_cause_are_one_message(writer):
    kind, detail = KINDS["found"].detail_type, KINDS["found"].detail
    other = {**detail, "id": "of-another-rule", "rule": "AnotherRule"}
    assert notify_once(writer, "first", kind, detail)
    assert not notify_once(writer, "second", kind, other)
    resolved = KINDS["resolved"].detail
    assert resolved["issue"]["id"] == detail["issue"]["id"]
    assert notify_once(writer, "third", KINDS["resolved"].detail_type, resolved)


def test_a_new_issue_of_the_same_rule_is_another_message(writer):
    kind, detail = KINDS["found"].detail_type, KINDS["found"].detail
    later = {**detail, "id": "later", "issue": {**detail["issue"], "id": "another issue"}}
    assert notify_once(writer, "first", kind, detail)
    assert notify_once(writer, "second", kind, later)


def test_a_symptom_is_in_the_message_of_its_cause_alone():
    for kind in ("found", "resolved"):
        entry = KINDS[kind]
        issue = {**entry.detail["issue"], "role": "symptom"}
        assert is_worth_a_message(entry.detail_type, entry.detail)
        assert not is_worth_a_message(entry.detail_type, {**entry.detail, "issue": issue})


def test_what_has_no_id_is_sent_each_time(writer):
    for delivery in ("first", "second"):
        assert notify_once(writer, delivery, "Run State Change", {"state": "Silent"})


def test_a_message_for_one_is_seen_by_that_one_alone(inbox):
    topic = wiring.notification_ports().topic
    topic.publish(subject="a", email="for another", sms="b", to="you@example.org")
    assert inbox() == []
    topic.publish(subject="a", email="for me", sms="b", to="me@example.org")
    assert [message["Message"] for message in inbox()] == ["for me"]
