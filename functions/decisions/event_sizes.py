"""Keeping events within the sizes that EventBridge and SageMaker allow."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from smdebug.rules.findings import Finding, plain

WORST = 20  # findings in the event itself
MOST_KEPT = 10_000  # and in the object that it refers to
MAX_DETAIL = 100_000  # bytes of one detail
MAX_STATUS_DETAILS = 1024  # of SageMaker's StatusDetails
MAX_TEXT = 512
_MAX_DETAILS = 1000
_MOST_SENTENCES = 3  # of what convinces, and of what to try
_FINDING_FIELDS = tuple(field.name for field in fields(Finding) if field.name != "details")


def worst(findings: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return the findings farthest beyond their limits first; those that cannot be compared are last."""
    return sorted(findings, key=_badness, reverse=True)[:most]


def bounded_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding that fits in an event: long texts are cut and end in an ellipsis."""
    bounded = {key: _small(plain(finding[key])) for key in _FINDING_FIELDS if finding.get(key) is not None}
    for key in ("why", "advice"):
        if finding.get(key):
            bounded[key] = [cut(str(text), MAX_TEXT) for text in finding[key][:_MOST_SENTENCES]]
    details = plain(finding.get("details") or {})
    if details:
        size = len(as_json(details))
        bounded["details"] = details if size <= _MAX_DETAILS else {"left_out": f"{size} bytes"}
    return bounded


def fitted(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detail, without its largest parts if it is too large; `cut` names those."""
    whole = {key: plain(value) for key, value in detail.items()}
    cut: list[str] = []
    for shorten in (
        _fewer_parameters,
        _fewer_findings,
        _fewer_rules,
        _fewer_statuses,
        _fewer_texts,
    ):
        if len(as_json(whole).encode()) <= MAX_DETAIL:
            break
        if what := shorten(whole):
            cut.append(what)
            whole["cut"] = cut
    return whole


def _badness(finding: Mapping[str, Any]) -> float:
    value, limit = _number(finding.get("value")), _number(finding.get("threshold"))
    if value is None:
        return 0.0
    if not math.isfinite(value):
        return math.inf
    if limit is None or not math.isfinite(limit):
        return 0.0
    # How many times as large, or as small, as the limit allows.
    return abs(math.log(abs(value) + 1e-300) - math.log(abs(limit) + 1e-300))


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _fewer_parameters(detail: dict[str, Any]) -> str:
    if not detail.get("configuration", {}).get("parameters"):
        return ""
    detail["configuration"] = {**detail["configuration"], "parameters": {}}
    return "configuration.parameters"


def _fewer_findings(detail: dict[str, Any]) -> str:
    if not detail.get("evidence", {}).get("worst"):
        return ""
    detail["evidence"] = {**detail["evidence"], "worst": detail["evidence"]["worst"][:3]}
    return "evidence.worst"


def _fewer_rules(detail: dict[str, Any]) -> str:
    if not (detail.get("summary") or {}).get("rules"):
        return ""
    detail["summary"] = {**detail["summary"], "rules": detail["summary"]["rules"][:20]}
    return "summary.rules"


def _fewer_statuses(detail: dict[str, Any]) -> str:
    statuses = "DebugRuleEvaluationStatuses"
    if statuses not in detail:
        return ""
    detail[statuses] = detail[statuses][:20]
    return statuses


_TEXTS = ("reason", "trouble", "message")


def _fewer_texts(detail: dict[str, Any]) -> str:
    detail.update({key: cut(detail[key], 256) for key in _TEXTS if detail.get(key)})
    return "texts"


def _small(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, MAX_TEXT)
    if isinstance(value, int) and value.bit_length() > 1024:
        return f"about {'-' if value < 0 else ''}2**{value.bit_length()}"
    if isinstance(value, list | dict) and len(as_json(value)) > MAX_TEXT:
        return cut(as_json(value), MAX_TEXT)
    return value


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def as_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
