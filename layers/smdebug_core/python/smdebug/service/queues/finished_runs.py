"""Which run a message says has finished, and what the deployed rules have found in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from smdebug.diagnosis.issues import Issue
from smdebug.exceptions import UnreadableMessage
from smdebug.service.queues.messages import event_in, run_named_in
from smdebug.service.records import RuleStatus, RunState

_RUN_STATE_CHANGE = "Run State Change"
_ENOUGH = 32  # hexadecimal digits


@dataclass(frozen=True)
class FinishedRun:
    """A run whose rules all have their final status."""

    location: str  # s3://…
    event: str
    """Hexadecimal digits, the same each time that the event is delivered."""
    issues: tuple[Issue, ...] = ()
    """One for each rule that has found something."""


def finished_run(message: str) -> FinishedRun | None:
    """Return the run that a message says has finished; None for other events.

    Raise `UnreadableMessage` for what is no event, and for a finished run in a form that is unknown here.
    """
    event = event_in(message)
    if event["detail-type"] != _RUN_STATE_CHANGE:
        return None
    location = f"s3://{run_named_in(event)}"
    detail = event["detail"]
    if detail.get("state") != RunState.FINISHED:
        return None
    try:
        issues = tuple(_issues(detail.get("summary") or {}))
    except KeyError as error:
        raise UnreadableMessage(location, f"a rule of its summary has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise UnreadableMessage(location, f"its summary has another form ({error})") from error
    identity = f"{location} {detail.get('id') or event.get('id') or message}"
    return FinishedRun(location, sha256(identity.encode()).hexdigest()[:_ENOUGH], issues)


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
