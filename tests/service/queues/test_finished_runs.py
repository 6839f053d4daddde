"""Only the end of a run that all rules have judged names a run to send."""

import json

import pytest

from smdebug.diagnosis.issues import Issue
from smdebug.service.queues.finished_runs import FinishedRun, finished_run


def message(kind="Run State Change", **detail):
    detail = {"run": "runs/a", "state": "Finished", **detail}
    return json.dumps({"detail-type": kind, "detail": detail})


def test_a_finished_run_is_named_by_its_address():
    assert finished_run(message()) == FinishedRun("s3://runs/a")


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
    "text",
    [
        message(state="Ended"),
        message(kind="Rule Evaluation Condition Met"),
        json.dumps({"detail-type": "Run State Change"}),
        json.dumps({"detail-type": "Run State Change", "detail": "Finished"}),
        json.dumps(["Finished"]),
        "not an event",
    ],
)
def test_nothing_else_names_a_run(text):
    assert finished_run(text) is None
