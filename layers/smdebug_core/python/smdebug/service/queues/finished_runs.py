"""Which run a message says has finished, and what the deployed rules have found in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from smdebug.diagnosis.issues import Issue
from smdebug.service.records import RuleStatus, RunState

_RUN_STATE_CHANGE = "Run State Change"


@dataclass(frozen=True)
class FinishedRun:
    """A run whose rules all have their final status."""

    location: str  # s3://…
    issues: tuple[Issue, ...] = ()
    """One for each rule that has found something."""


def finished_run(message: str) -> FinishedRun | None:
    """Return the run that a message says has finished; None for other messages."""
    try:
        event = json.loads(message)
        detail = event["detail"]
        if event["detail-type"] != _RUN_STATE_CHANGE or detail["state"] != RunState.FINISHED:
            return None
        return FinishedRun(f"s3://{detail['run']}", tuple(_issues(detail.get("summary") or {})))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _issues(summary: Mapping[str, Any]) -> Iterator[Issue]:
    for rule in summary.get("rules") or ():
        if rule["status"] == RuleStatus.ISSUES_FOUND:
            last = int(rule["last_found"] or 0)
            known = rule.get("issue") or {}
            since = known.get("since")
            yield Issue(
                str(known.get("id") or ""),
                str(rule["reason"]),
                last if since is None else int(since),
                last,
                rules=(str(rule["name"]),),
            )
