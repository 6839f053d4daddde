"""The alarms: what they watch, their recipients, and what they cost."""

from __future__ import annotations

import json
import re
from typing import Any

from bench.costs.idle import OWN_METRICS
from infra import names
from infra.packaging.assets import ROOT
from tests.infra.conftest import Stack, environment
from tests.support.looking import each

FUNCTIONS = ROOT / "functions"
RUNBOOK = ROOT / "docs" / "operations.md"


def alarms(stack: Stack) -> dict[str, dict[str, Any]]:
    """The alarms, by the name that the runbook uses."""
    return {
        re.sub(r"^DebuggerAlarms|[0-9A-F]{8}$", "", name): alarm
        for name, alarm in stack.of("AWS::CloudWatch::Alarm").items()
    }


def metrics(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """What the alarm watches: its metric, or those of its expression."""
    if "Metrics" not in alarm:
        return [alarm]
    return [part["MetricStat"]["Metric"] for part in alarm["Metrics"] if "MetricStat" in part]


def test_the_alarms_cover_what_stops_the_evaluation(stack: Stack):
    watched = {
        name: sorted({metric["MetricName"] for metric in metrics(alarm)})
        for name, alarm in alarms(stack).items()
    }
    assert watched == {
        "ArrivalsWait": ["ApproximateAgeOfOldestMessage"],
        "StepsWait": ["OldestUnevaluatedStep"],
        "DeadLetters": ["ApproximateNumberOfMessagesVisible"],
        "FunctionErrors": ["Errors"],
        "Throttles": ["Throttles"],
        "RecursiveCallsDropped": ["RecursiveInvocationsDropped"],
        "FailedExecutions": ["ExecutionThrottled", "ExecutionsFailed", "ExecutionsTimedOut"],
        "BudgetSpent": ["RulesOutOfBudget"],
    }


def test_a_run_that_cannot_be_swept_raises_the_alarm_of_steps_that_wait(stack: Stack):
    from functions.arrivals.missed_files import UNKNOWN

    alarm = alarms(stack)["StepsWait"]
    assert alarm["Threshold"] <= UNKNOWN
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["Statistic"] == "Maximum"
    assert alarm["EvaluationPeriods"] == 3  # one failed sweep is no reason to wake anybody


def test_an_execution_that_does_not_finish_raises_the_alarm_whatever_ends_it(stack: Stack):
    alarm = alarms(stack)["FailedExecutions"]
    (expression,) = [part["Expression"] for part in alarm["Metrics"] if "Expression" in part]
    # A metric without values would make the whole sum have none, and that counts as good.
    assert expression == "FILL(m0, 0) + FILL(m1, 0) + FILL(m2, 0)"
    assert alarm["Threshold"] == 1


def test_the_alarms_cost_no_more_than_the_page_says(stack: Stack):
    assert sum(len(metrics(alarm)) for alarm in alarms(stack).values()) == 10 + 3  # free of charge, and $0.30
    assert "$0.30" in RUNBOOK.read_text(encoding="utf-8").partition("## Alarms")[2].partition("\n## ")[0]


def test_the_functions_that_can_starve_or_fail_are_watched(stack: Stack):
    for name in ("FunctionErrors", "Throttles"):
        functions = [
            dimension["Value"]["Ref"]
            for metric in metrics(alarms(stack)[name])
            for dimension in metric["Dimensions"]
        ]
        assert [re.sub(r"Function.*", "", function) for function in functions] == [
            "DebuggerIngest",
            "DebuggerEvaluate",
        ]


def test_every_alarm_is_sent_to_the_topic_without_a_function_of_the_debugger(stack: Stack):
    (topic,) = [name for name in stack.of("AWS::SNS::Topic") if "AlarmsTopic" in name]
    for alarm in alarms(stack).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
    rules = stack.of("AWS::Events::Rule").values()
    assert not [r for r in rules if r.get("EventPattern", {}).get("source") == ["aws.cloudwatch"]]


def test_cloudwatch_may_publish_alarms_of_this_stack_only(default_stack: Stack):
    policies = default_stack.of("AWS::SNS::TopicPolicy")
    (policy,) = [policy for name, policy in policies.items() if "AlarmsTopic" in name]
    (allowed,) = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    source = default_stack.text(allowed["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source.endswith(":alarm:smdebug-*")


def test_cloudwatch_could_not_publish_to_a_topic_with_the_key_of_aws(stack: Stack):
    topics = stack.of("AWS::SNS::Topic")
    (topic,) = [topic for name, topic in topics.items() if "AlarmsTopic" in name]
    assert topic.get("KmsMasterKeyId", "") != "alias/aws/sns"


def test_recipients_of_alerts_receive_the_alarms(full_stack: Stack):
    found = full_stack.of("AWS::SNS::Subscription").items()
    subscriptions = [each for name, each in found if "AlarmsTopic" in name]
    assert [each["Endpoint"] for each in subscriptions] == [
        "me@example.org",
        "you@example.org",
        "+15551234567",
    ]
    assert not [each for each in subscriptions if "FilterPolicy" in each]


def test_a_missing_age_is_bad_and_every_other_missing_value_good(stack: Stack):
    bad = {name for name, a in alarms(stack).items() if a["TreatMissingData"] == "breaching"}
    assert bad == {"StepsWait"}
    good = {name for name, a in alarms(stack).items() if a["TreatMissingData"] == "notBreaching"}
    assert good == set(alarms(stack)) - bad


def test_the_metrics_of_two_stacks_are_apart(stack: Stack):
    (evaluation,) = {
        environment(function)[names.METRICS_OF]
        for function in stack.of("AWS::Lambda::Function").values()
        if environment(function) and function["Handler"] != "functions.handlers.run_custom_rule.handler"
    }
    ours = [
        metric
        for alarm in alarms(stack).values()
        for metric in metrics(alarm)
        if metric["Namespace"] == names.METRICS
    ]
    assert [metric["MetricName"] for metric in ours] == ["OldestUnevaluatedStep", "RulesOutOfBudget"]
    for metric in each(ours, at_least=2):
        assert metric["Dimensions"] == [{"Name": "service", "Value": evaluation}]


def test_a_metric_of_a_function_carries_the_name_of_its_deployment(capsys, monkeypatch):
    from functions.telemetry import metrics as emit

    monkeypatch.setenv(names.METRICS_OF, "smdebug-12345678")
    emit({"RuleErrors": (1, "Count")})
    line = json.loads(capsys.readouterr().out)
    assert line["service"] == "smdebug-12345678"
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == names.METRICS
    assert directive["Dimensions"] == [["service"]]


def test_the_metrics_of_the_alarms_are_emitted(stack: Stack):
    emitted = "".join(path.read_text(encoding="utf-8") for path in FUNCTIONS.rglob("*.py"))
    assert '"OldestUnevaluatedStep"' in emitted


def test_the_dashboard_shows_the_alarms_and_every_metric_that_they_watch(default_stack: Stack):
    board = default_stack.single("AWS::CloudWatch::Dashboard")["DashboardBody"]
    text = json.dumps(board)
    for name, alarm in each(alarms(default_stack).items(), at_least=7):
        assert f"DebuggerAlarms{name}" in text
        for metric in metrics(alarm):
            assert metric["MetricName"] in text, name


def test_the_dashboard_shows_every_metric_of_the_functions(default_stack: Stack):
    text = json.dumps(default_stack.single("AWS::CloudWatch::Dashboard")["DashboardBody"])
    source = "".join(path.read_text(encoding="utf-8") for path in FUNCTIONS.rglob("*.py"))
    emitted = set(re.findall(r'"(\w+)": \([^()]*(?:\([^()]*\))?[^()]*, "(?:Count|Seconds)"\)', source))
    assert len(emitted) == OWN_METRICS
    assert all(metric in text for metric in emitted)


def test_the_runbook_has_a_section_for_every_alarm_and_no_other(default_stack: Stack):
    page = RUNBOOK.read_text(encoding="utf-8").partition("## Runbook")[2].partition("\n## ")[0]
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == list(alarms(default_stack))
    for alarm in alarms(default_stack).values():
        assert "docs/operations.md" in alarm["AlarmDescription"]
