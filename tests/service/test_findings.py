"""Findings as they were published, and the outcomes of their actions."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from functions.followup.action_outcomes import OutcomesInIndex
from smdebug.exceptions import (
    RuleUnknown,
)
from smdebug.service.findings import issues_in
from tests.service.stocked import BEGUN, LOSS, RUN, VANISHING, failing


def steps_of(findings):
    return [finding.step for finding in findings]


def test_findings_are_in_the_order_of_steps(stock):
    stock.begin()
    for step in (10, 2, 30):
        stock.found(VANISHING, step)
    found = stock.run().findings()
    assert steps_of(found) == [2, 10, 30]
    first = found[0]
    assert (first.name, first.rule, first.mode, first.count) == (
        "fc",
        "VanishingGradient",
        "TRAIN",
        3,
    )
    assert (first.tensor, first.statistic, first.value) == ("gradient/fc", "abs_mean", 1e-9)
    assert first.last_good == 1
    assert first.to_dict()["evidence"]["worst"][0]["threshold"] == 1e-7


def test_findings_are_selected_by_rule_step_and_number(stock):
    stock.begin()
    for step in range(20):
        stock.found(VANISHING if step % 2 else LOSS, step)
    run = stock.run()
    assert {finding.rule for finding in run.findings(rule="loss")} == {"LossNotDecreasing"}
    assert steps_of(run.findings(since_step=17)) == [17, 18, 19]
    assert steps_of(run.findings(limit=2)) == [18, 19]
    assert steps_of(run.findings(rule="fc", limit=2)) == [17, 19]
    assert steps_of(run.findings(rule=LOSS.id, since_step=17)) == [18]
    assert run.findings(limit=0) == []
    with pytest.raises(RuleUnknown):
        run.findings(rule="los")


@pytest.mark.parametrize("number", [199, 200, 201, 401])
def test_each_of_many_findings_is_returned_once(stock, number):
    stock.begin()
    for step in range(number):
        stock.found(VANISHING, step)
    assert steps_of(stock.run().findings()) == list(range(number))


def test_a_finding_with_few_details_can_be_shown(stock):
    stock.begin()
    stock.index.put_finding(RUN, 4, "a", {"step": 4})
    (found,) = stock.run().findings()
    assert (found.step, found.tensor, found.count, found.name) == (4, None, 0, "")
    assert "4" in repr(stock.run().findings())


def test_outcomes_of_actions_are_in_the_order_of_time(stock):
    stock.begin()
    stock.group(failing(VANISHING, 2), cursor=2)
    kept = OutcomesInIndex(stock.store)
    for number, finding in enumerate(["id-9", "id-2", "id-2"]):
        outcome = {
            "id": f"o{number}",
            "finding_id": finding,
            "action": {"name": "stoptraining"},
            "effect": "control",
            "done": number != 1,
            "settled": True,
            "message": f"message {number}",
            "at": BEGUN + number,
        }
        kept.record_action(RUN, "builtin", VANISHING.id, outcome, {})
    run = stock.run()
    assert [outcome.message for outcome in run.actions()] == ["message 0", "message 1", "message 2"]
    assert [outcome.done for outcome in run.actions("id-2")] == [False, True]
    first = run.actions()[0]
    assert (first.name, first.rule_id) == ("stoptraining", VANISHING.id)
    assert first.at == datetime.fromtimestamp(BEGUN, UTC)
    json.dumps(run.actions().to_dict())
    assert stock.begin("b/other")
    assert stock.run("b/other").actions() == []


def test_problems_of_many_findings_are_shown_once_with_their_symptoms(stock):
    stock.begin()
    cause = {
        "role": "cause",
        "cause": "learning rate",
        "what": "it rose",
        "since": 3,
        "rules": ["LR"],
    }
    symptom = {"cause": "spike", "what": "loss jumped", "since": 4}
    alone = {
        "role": "cause",
        "cause": "spike",
        "what": "loss jumped",
        "since": 4,
        "rules": ["Spike"],
    }
    for step, diagnosis in enumerate([cause, alone, {**cause, "symptoms": [symptom]}, None]):
        stock.index.put_finding(RUN, step, f"{step}", {"step": step, "diagnosis": diagnosis})
    found = stock.run().findings()
    assert [item.issue and item.issue.cause for item in found] == [
        "learning rate",
        "spike",
        "learning rate",
        None,
    ]
    (issue,) = issues_in(found)
    assert (issue.cause, [item.cause for item in issue.symptoms]) == ("learning rate", ["spike"])
