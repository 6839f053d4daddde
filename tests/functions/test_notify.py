"""What is worth a message becomes one that a person can read."""

import json

import pytest

from functions import notify, wiring
from functions.decisions.alerts import is_worth_a_message
from tests.functions.decisions.told import every_kind

KINDS = every_kind()
ALARM = {
    "source": "aws.cloudwatch",
    "detail-type": "CloudWatch Alarm State Change",
    "detail": {
        "alarmName": "smdebug-DeadLetters",
        "configuration": {"description": "Messages that nobody could handle"},
        "state": {"value": "ALARM", "reason": "Threshold Crossed: 1 datapoint [2.0]"},
    },
}


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
    wiring.topic.cache_clear()

    def read():
        answer = deployed.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    yield read
    wiring.topic.cache_clear()


def event(kind):
    entry = KINDS[kind]
    return {"source": "smdebug", "detail-type": entry.detail_type, "detail": dict(entry.detail)}


@pytest.mark.parametrize(
    ("kind", "worth"),
    [
        ("found", True),
        ("resolved", True),
        ("issues found", False),  # the finding has been told
        ("no issues found", False),
        ("error", True),
        ("silent", True),
        ("in trouble", True),
        ("finished", True),  # with an issue
        ("action", False),  # it was done
        ("old", False),
    ],
)
def test_what_somebody_wants_to_know_is_told(kind, worth):
    entry = KINDS[kind]
    assert is_worth_a_message(entry.detail_type, entry.detail) is worth


def test_an_action_that_was_not_done_and_a_run_that_went_well():
    action, finished = KINDS["action"], KINDS["finished"]
    assert is_worth_a_message(action.detail_type, {**action.detail, "done": False})
    well = {**finished.detail, "summary": {"statuses": {"NoIssuesFound": 3}}}
    assert not is_worth_a_message(finished.detail_type, well)


def test_a_finding_becomes_an_e_mail_with_its_evidence(inbox):
    notify.handler(event("found"), None)
    (message,) = inbox()
    assert message["Subject"] == (
        "fc-gradients (VanishingGradient) found something at step 400 of my-bucket/mnist-1"
    )
    assert "  gradient/fc2_weight: the mean of |gradient| is 3.1e-09" in message["Message"]


def test_what_is_not_worth_a_message_is_none(inbox):
    notify.handler(event("issues found"), None)
    assert inbox() == []


def test_an_alarm_of_the_stack_itself_is_told(inbox):
    notify.handler(ALARM, None)
    (message,) = inbox()
    assert message["Subject"] == "Alarm of the debugger: smdebug-DeadLetters"
    assert "Meaning:    Messages that nobody could handle" in message["Message"]
    assert "Threshold Crossed" in message["Message"]


def test_a_message_for_one_is_seen_by_that_one_alone(inbox):
    topic = wiring.topic()
    topic.publish(subject="a", email="for another", sms="b", to="you@example.org")
    assert inbox() == []
    topic.publish(subject="a", email="for me", sms="b", to="me@example.org")
    assert [message["Message"] for message in inbox()] == ["for me"]
