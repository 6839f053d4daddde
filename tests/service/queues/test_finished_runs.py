"""Only the end of a run that all rules have judged names a run to send."""

import json

import pytest

from smdebug.diagnosis.issues import Issue
from smdebug.exceptions import UnreadableMessage
from smdebug.service.queues.finished_runs import finished_run


def message(kind="Run State Change", **detail):
    detail = {"run": "runs/a", "state": "Finished", **detail}
    return json.dumps({"detail-type": kind, "detail": detail})


def test_a_finished_run_is_named_by_its_address():
    assert finished_run(message()).location == "s3://runs/a"


def test_an_event_that_is_delivered_twice_is_known_again_and_another_one_is_not():
    first, again = (finished_run(message(id="1", text=text)).event for text in "ab")
    others = [finished_run(message(id="2")), finished_run(message(id="1", run="runs/b"))]
    assert first == again
    assert len({first, *(other.event for other in others)}) == 3
    assert finished_run(message()).event == finished_run(message()).event


def test_what_the_deployed_rules_found_comes_with_the_run():
    found = {"name": "mine", "status": "IssuesFound", "reason": "too large", "last_found": 9}
    rules = [
        {**found, "issue": {"id": "cause", "since": 4}},
        {**found, "name": "late", "issue": None},
        {**found, "name": "calm", "status": "NoIssuesFound"},
    ]
    run = finished_run(message(summary={"rules": rules}))
    assert run.issues == (
        Issue("cause", "too large", 4, 9, rules=("mine",)),
        Issue("", "too large", 9, 9, rules=("late",)),
    )


@pytest.mark.parametrize(
    "text", [message(state="Ended"), message(kind="Rule Evaluation Condition Met"), '{"detail-type": "x"}']
)
def test_another_event_names_no_run(text):
    assert finished_run(text) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps({"detail-type": "Run State Change"}), "it names no run"),
        (json.dumps({"detail-type": "Run State Change", "detail": "Finished"}), "it names no run"),
        (message(run=5), "it names no run"),
        (message(summary={"rules": [{"name": "mine"}]}), "s3://runs/a.* no 'status'"),
        (
            message(summary={"rules": [{"status": "IssuesFound", "last_found": "x"}]}),
            "s3://runs/a.*another form",
        ),
        (message(summary="2 issues"), "s3://runs/a.*another form"),
        (message(summary={"rules": 7}), "s3://runs/a.*another form"),
        (json.dumps(["Finished"]), "no event"),
        ("not an event", "no JSON"),
    ],
)
def test_a_message_that_cannot_be_read_is_an_error_that_names_the_run(text, problem):
    with pytest.raises(UnreadableMessage, match=problem):
        finished_run(text)
