"""Events as Alertmanager takes them, whatever a run is called.

Those of OpenTelemetry are in tests/sinks/real/test_otlp_events.py.
"""

import json
import re
from datetime import datetime

import pytest
from jsonschema import Draft202012Validator

from functions.decisions.posting.posts import Form, body_of
from tests.functions.decisions import sample_events
from tests.functions.decisions.hostile_runs import HOSTILE, posted_of

TEXTS = {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}
POSTABLE_ALERTS = {  # `postableAlerts` of Alertmanager's openapi.yaml; an empty label counts as none
    "type": "array",
    "items": {
        "type": "object",
        "required": ["labels"],
        "additionalProperties": False,
        "properties": {
            "labels": {**TEXTS, "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}},
            "annotations": {**TEXTS, "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}},
            "startsAt": {"type": "string"},
            "endsAt": {"type": "string"},
            "generatorURL": {"type": "string"},
        },
    },
}
RFC_3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"


def alert_of(run, kind):
    body = json.loads(body_of(Form.ALERTMANAGER, posted_of(run, kind)))
    Draft202012Validator(POSTABLE_ALERTS).validate(body)
    (alert,) = body
    for name in ("startsAt", "endsAt"):
        assert re.fullmatch(RFC_3339, alert.get(name, "2026-11-21T12:00:00Z"))
    return alert


@pytest.mark.parametrize("run", HOSTILE)
def test_a_finding_is_an_alert_until_its_issue_is_resolved(run):
    opened, resolved = alert_of(run, "found"), alert_of(run, "resolved")
    assert opened["labels"] == resolved["labels"]
    assert opened["labels"]["run"] == run
    assert (opened["labels"]["alertname"], opened["labels"]["rule"]) == ("TrainingProblem", "fc-gradients")
    assert "3.1e-09" in opened["annotations"]["summary"]
    assert opened["annotations"]["advice"].startswith("Add residual connections")
    start, end = (datetime.fromisoformat(opened[name]) for name in ("startsAt", "endsAt"))
    assert (end - start).days == 1  # without an end it would be resolved after five minutes
    assert start < datetime.fromisoformat(resolved["endsAt"]) < end
    assert "startsAt" not in resolved


def test_problems_of_two_rules_are_two_alerts():
    event = posted_of(sample_events.RUN.run, "found")
    event["detail"]["configuration"]["name"] = "another"
    labels = json.loads(body_of(Form.ALERTMANAGER, event))[0]["labels"]
    assert labels != alert_of(sample_events.RUN.run, "found")["labels"]


@pytest.mark.parametrize("form", [Form.ALERTMANAGER, Form.OTLP])
def test_a_secret_in_a_text_is_not_posted(form):
    event = posted_of(sample_events.RUN.run, "found")
    event["detail"]["diagnosis"]["what"] = "loss of https://user:hunter2@example.org/x is NaN"
    assert b"hunter2" not in body_of(form, event)


@pytest.mark.parametrize("kind", ["found", "resolved", "error", "finished", "silent", "in trouble", "action"])
def test_every_kind_of_event_that_is_sent_has_a_name_in_the_log(kind):
    body = json.loads(body_of(Form.OTLP, posted_of(sample_events.RUN.run, kind)))
    (record,) = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert record["eventName"].startswith("smdebug.")
