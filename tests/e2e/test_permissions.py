"""Every permission in the template is needed by something that the application does, or has its reason."""

from __future__ import annotations

import re
from pathlib import Path

from local_aws import LocalAws
from tests.e2e.everything import run_everything
from tests.e2e.patience import PatientDebugger, short

ROOT = Path(__file__).parents[2]

# Permissions that the test does not use, and why the template has them all the same.
NOT_SHOWN = {
    "UndeliveredQueue sqs:SendMessage": "EventBridge itself sends undeliverable events there; on this "
    "machine every function can be reached.",
    "AlarmsTopic sns:Publish": "CloudWatch publishes the stack's alarms there; moto raises none.",
    "Act sagemaker:StopTrainingJob": "It stops the job of a run; moto does not support this call.",
}
# Permissions that are used or not by how functions happen to meet, so that neither is a defect.
BY_CHANCE = {
    "Watch scheduler:UpdateSchedule": "A run has a schedule already only if another function set one at the "
    "same moment: moto removes a schedule that has fired at once, and AWS may not.",
}


def test_every_permission_is_needed_and_none_is_missing():
    # A separate stack: other tests cause refusals, and calls that are not needed.
    with LocalAws({"alert_emails": "me@example.org"}) as aws:
        run_everything(PatientDebugger(aws))
        assert aws.refused() == []
        report = aws.permissions()
    names = report["roles"]
    unused = {f"{short(names.get(owner, owner))} {action}" for owner, action, _ in report["unused"]}
    # Without one of these statements, every call would still have been allowed.
    needless = {
        f"{short(names.get(statement['owner'], statement['owner']))} {action}"
        for statement in report["needless"]
        for action in statement["actions"]
    }
    assert sorted((unused | needless) - set(NOT_SHOWN) - set(BY_CHANCE)) == []
    assert sorted(set(NOT_SHOWN) - unused - needless) == [], "it is used, so remove it from NOT_SHOWN"


def test_the_docs_list_the_permissions_that_are_not_used_and_why():
    page = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
    rows = re.findall(r"\| (\w+) \| `(\w+:\w+)` \| ([^|]+) \|", page.split("never asked for there")[1])
    assert {f"{role} {action}": why for role, action, why in rows} == {**NOT_SHOWN, **BY_CHANCE}
