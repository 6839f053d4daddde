"""Events in the forms of other tools: alerts of Prometheus' Alertmanager, and events of OpenTelemetry's log.

The text of a run is data in both: whatever it is, it stays inside its own string.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from functions.decisions import detail_types
from functions.decisions.alerts import is_worth_a_message
from smdebug.sinks import otlp_json

ALERT = "TrainingProblem"
"""The name of the alert, as docs/integrations/prometheus.md has it for the sink's gauges."""
STAYS = timedelta(days=1)
"""Without an end, Alertmanager takes an alert that is not repeated for resolved after five minutes."""
_NAMES = {
    detail_types.CONDITION_MET: "smdebug.problem.opened",
    detail_types.ISSUE_RESOLVED: "smdebug.problem.resolved",
    detail_types.STATUS_CHANGE: "smdebug.rule.status",
    detail_types.RUN_STATE_CHANGE: "smdebug.run.state",
    detail_types.ACTION_OUTCOME: "smdebug.action",
}

Detail = Mapping[str, Any]


def alerts(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a finding, or the end of its issue, as Alertmanager's `POST /api/v2/alerts` takes it.

    Labels tell alerts apart, so those of the end are those of the finding.
    """
    detail = event["detail"]
    evaluated = _moment(detail, "evaluated")
    is_open = event["detail-type"] == detail_types.CONDITION_MET
    times = (
        {"startsAt": evaluated.isoformat(), "endsAt": (evaluated + STAYS).isoformat()}
        if is_open
        else {"endsAt": evaluated.isoformat()}
    )
    problem = _problem(detail)
    annotations = {
        "summary": problem["smdebug.what"] or str(detail.get("reason") or ""),
        "description": str(detail.get("text") or ""),
        "step": str(detail.get("step")),
        "advice": problem["smdebug.advice"],
    }
    labels = {
        "alertname": ALERT,
        "run": str(detail["run"]),
        "rule": _rule(detail),
        "issue": str((detail.get("issue") or {}).get("id") or ""),
    }
    return [{"labels": _filled(labels), "annotations": _filled(annotations), **times}]


def log_request(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as OTLP's `POST /v1/logs` takes it: with the names that the sink has for the same."""
    kind, detail = event["detail-type"], event["detail"]
    is_good_news = kind == detail_types.ISSUE_RESOLVED
    is_bad = kind == detail_types.CONDITION_MET or (not is_good_news and is_worth_a_message(kind, detail))
    known = {
        **_problem(detail),
        "smdebug.step": detail.get("step", ""),
        "smdebug.rules": _rule(detail),
        "smdebug.issue": (detail.get("issue") or {}).get("id") or "",
        "smdebug.status": detail.get("status", ""),
        "smdebug.state": detail.get("state", ""),
        "smdebug.verdict": (detail.get("summary") or {}).get("verdict", ""),
        "smdebug.action": (detail.get("action") or {}).get("name", ""),
        "smdebug.event": detail.get("id", ""),
    }
    record = otlp_json.event(
        int(1e3 * _moment(detail, "published").timestamp()) * 1_000_000,
        _NAMES[kind],
        otlp_json.WARN if is_bad else otlp_json.INFO,
        str(detail.get("text") or ""),
        known,
    )
    resource = {"service.name": "smdebug", "smdebug.run": detail["run"], "smdebug.path": detail["location"]}
    return otlp_json.logs({"attributes": otlp_json.attributes(resource)}, {"name": "smdebug"}, [record])


def _problem(detail: Detail) -> dict[str, str]:
    found = detail.get("diagnosis") or {}
    return {
        "smdebug.problem": str(found.get("cause") or ""),
        "smdebug.what": str(found.get("what") or ""),
        "smdebug.advice": str(next(iter(found.get("try") or ()), "")),
    }


def _rule(detail: Detail) -> str:
    return str((detail.get("configuration") or {}).get("name") or detail.get("rule") or "")


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _moment(detail: Detail, name: str) -> datetime:
    times = detail["times"]
    return datetime.fromisoformat(times.get(name) or times["published"])
