"""The status of each rule of a run, in our form and in SageMaker's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from smdebug.exceptions import (
    RuleUnknown,
)
from smdebug.service.records import RuleStatus
from tests.service.stocked import BEGUN, LOSS, OWN, VANISHING, failing, rule


def test_statuses_are_in_the_order_of_the_configurations_including_new_rules(stock):
    stock.begin(wanted=(VANISHING, OWN, LOSS))
    stock.group(rule(LOSS, last_good=7), failing(VANISHING, 3, last_good=2), cursor=7)
    fc, mine, loss = stock.run().statuses()
    assert [fc.name, mine.name, loss.name] == ["fc", "mine", "loss"]
    assert (fc.status, fc.issue_since, fc.last_good) == (RuleStatus.ISSUES_FOUND, 3, 2)
    assert fc.has_open_issue
    assert fc.reason.startswith("RuleEvaluationConditionMet")
    assert (mine.status, mine.evaluated_through, mine.group) == (RuleStatus.IN_PROGRESS, None, "")
    assert (loss.rule, loss.evaluated_through, loss.group) == ("LossNotDecreasing", 7, "builtin")
    assert fc.parameters == {"threshold": "1e-6"}


def test_a_detached_rule_comes_last_and_keeps_its_class(stock):
    stock.begin(wanted=(LOSS,), detached=(VANISHING,))
    stock.group(rule(VANISHING, status=RuleStatus.STOPPED, reason="detached"), rule(LOSS), cursor=1)
    loss, fc = stock.run().statuses()
    assert (loss.attached, fc.attached) == (True, False)
    assert (fc.rule, fc.status) == ("VanishingGradient", RuleStatus.STOPPED)
    assert stock.run().look().summary.rules == {RuleStatus.IN_PROGRESS: 1}


def test_a_rule_in_a_lane_is_reported_once_as_catching_up(stock):
    stock.begin(groups=("builtin", f"lane-{LOSS.id}"))
    stock.group(rule(VANISHING), rule(LOSS, last_good=9), cursor=50)
    stock.group(rule(LOSS, catch_up_through=50, last_good=2), group=f"lane-{LOSS.id}", cursor=2)
    fc, loss = stock.run().statuses()
    assert (fc.catching_up, fc.evaluated_through) == (False, 50)
    assert (loss.catching_up, loss.evaluated_through, loss.last_good) == (True, 2, 2)
    assert stock.run().look().evaluated_through == 50


def test_a_resumed_training_is_not_evaluated_until_its_rules_restart(stock):
    stock.begin(training_run=1)
    stock.group(rule(VANISHING), rule(LOSS), cursor=50, training_run=0)
    assert stock.run().look().evaluated_through is None


def test_a_rule_is_found_by_name_id_or_class(stock):
    stock.begin()
    run = stock.run()
    assert run.status("fc") == run.status(VANISHING.id) == run.status("VanishingGradient")


def test_a_class_shared_by_two_rules_finds_neither(stock):
    other = replace(VANISHING, name="conv", parameters={})
    stock.begin(wanted=(VANISHING, other))
    with pytest.raises(RuleUnknown, match="Its rules: fc, conv"):
        stock.run().status("VanishingGradient")


def test_an_unknown_rule_is_refused_with_the_nearest_name(stock):
    stock.begin()
    with pytest.raises(RuleUnknown, match=r"No rule los watches s3://.*Did you mean loss\?"):
        stock.run().status("los")


def test_the_statuses_have_the_fields_of_tornasoles_call(stock):
    stock.begin()
    stock.group(failing(VANISHING, 3), rule(LOSS), cursor=3)
    fc, loss = stock.run().describe_rule_execution_jobs()
    assert list(fc) == [
        "RuleName",
        "RuleStatus",
        "FailureReason",
        "RuleExecutionJobName",
        "RuleExecutionJobArn",
    ]
    assert (fc["RuleName"], fc["RuleStatus"]) == ("fc", "IssuesFound")
    assert "at step 3 resulted in the condition being met" in fc["FailureReason"]
    assert fc["RuleExecutionJobName"] == VANISHING.id
    assert loss["FailureReason"] == ""


def test_the_statuses_have_the_fields_of_sagemakers(stock):
    stock.begin()
    stock.group(failing(VANISHING, 3, changed_at=BEGUN + 5), cursor=3)
    fc, loss = stock.run().debug_rule_evaluation_statuses()
    assert fc["StatusDetails"].endswith("condition being met\n")
    assert len(fc["RuleEvaluationJobArn"]) <= 256
    assert fc["LastModifiedTime"] == datetime.fromtimestamp(BEGUN + 5, UTC)
    assert loss == {
        "RuleConfigurationName": "loss",
        "RuleEvaluationJobArn": f"smdebug:{LOSS.id}",
        "RuleEvaluationStatus": "InProgress",
        "LastModifiedTime": datetime.fromtimestamp(BEGUN, UTC),
    }
    assert stock.run().rule_job_summary() == [fc, loss]


def test_long_details_are_cut_to_sagemakers_limit(stock):
    stock.begin()
    stock.group(rule(VANISHING, status=RuleStatus.ERROR, reason="x" * 5000), cursor=3)
    fc, _ = stock.run().debug_rule_evaluation_statuses()
    assert len(fc["StatusDetails"]) == 1024
