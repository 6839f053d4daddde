"""Alerts, webhooks and reports: who is notified of what."""

from __future__ import annotations

from typing import Any

from infra import names
from infra.packaging.assets import ROOT
from smdebug.service.records import RunState
from tests.infra.conftest import Stack, environment
from tests.support.looking import each

FUNCTIONS = ROOT / "functions"


def alerts(stack: Stack) -> list[dict[str, Any]]:
    """The subscriptions of the topic of the alerts."""
    found = stack.of("AWS::SNS::Subscription").items()
    return [each for name, each in found if name.startswith(("DebuggerAlertsEmail", "DebuggerAlertsSms"))]


def test_configured_endpoints_are_subscribed(full_stack: Stack):
    subscriptions = [
        (subscription["Protocol"], subscription["Endpoint"]) for subscription in alerts(full_stack)
    ]
    assert subscriptions == [
        ("email", "me@example.org"),
        ("email", "you@example.org"),
        ("sms", "+15551234567"),
    ]


def test_a_message_to_one_endpoint_reaches_no_other(full_stack: Stack):
    for subscription in each(alerts(full_stack), at_least=3):
        assert subscription["FilterPolicy"] == {"to": [subscription["Endpoint"], "everybody"]}


def test_act_knows_the_allowed_recipients(full_stack: Stack):
    variables = environment(full_stack.function("Act"))
    assert variables[names.ALERT_EMAILS] == "me@example.org,you@example.org"
    assert variables[names.ALERT_PHONE_NUMBERS] == "+15551234567"


def test_webhooks_get_their_events_in_their_form(full_stack: Stack):
    for name, form, kinds in (
        ("Slack", "slack", 2),
        ("Webhook", "event", 5),
        ("Alertmanager", "alertmanager", 2),
        ("Otlp", "otlp", 5),
    ):
        rule = full_stack.single("AWS::Events::Rule", f"DebuggerFindings{name}")
        (target,) = rule["Targets"]
        assert f"PostTo{name}" in full_stack.text(target["Arn"])
        assert "DeadLetterConfig" in target
        assert len(rule["EventPattern"]["detail-type"]) == kinds
        function = full_stack.function(f"PostTo{name}")
        assert environment(function)[names.WEBHOOK_FORM] == form
        assert "DeadLetterConfig" in function


def test_only_findings_with_actions_start_act(default_stack: Stack):
    pattern = default_stack.single("AWS::Events::Rule", "DebuggerFindingsAct")["EventPattern"]
    assert pattern["detail-type"] == ["Rule Evaluation Condition Met"]
    assert pattern["detail"] == {"has_actions": [True]}


def test_a_report_is_written_when_a_run_is_finished(default_stack: Stack):
    pattern = default_stack.single("AWS::Events::Rule", "DebuggerFindingsWriteReport")["EventPattern"]
    assert pattern["detail-type"] == ["Run State Change"]
    assert pattern["detail"] == {"state": [str(RunState.FINISHED)]}
    function = default_stack.function("WriteReport")
    assert (function["Timeout"], function["MemorySize"]) == (300, 1024)
