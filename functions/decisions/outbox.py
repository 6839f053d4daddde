"""Events on their way to the bus: the moment they report, their ids, and how the outbox keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from functions.decisions import alerts
from functions.decisions.event_sizes import as_json, fitted
from smdebug.exceptions import NewerRecord
from smdebug.files.notes.checkpoints import Checkpoint
from smdebug.rules.findings import plain
from smdebug.service.records import BUILT_IN, RuleRecord, RunRecord

EVENT_VERSION = 1
"""Of the details of all events. It rises only with a change that readers of earlier events would misread."""


@dataclass(frozen=True)
class Moment:
    """The evaluation of one step of a run: its place, its times in seconds, its circumstances."""

    run: str
    step: int
    training_run: int = 0
    run_id: str | None = None
    job: str | None = None
    group: str = BUILT_IN
    mode: str | None = None
    mode_step: int | None = None
    saved: float | None = None
    uploaded: float | None = None
    indexed: float | None = None
    evaluated: float = 0.0
    catch_up: bool = False  # the step is older than the rule
    late: bool = False  # a later step was evaluated before
    occasion: str = ""  # "at end" or "in silence", where it is not the step itself
    checkpoints: tuple[Checkpoint, ...] = ()  # of the run, if the finding may open an issue

    @classmethod
    def of(cls, run: RunRecord, step: int, *, evaluated: float, **more: Any) -> Moment:
        """Return the moment of a run at that step."""
        of_run = {"training_run": run.training_run, "run_id": run.run_id, "job": run.job}
        return cls(run=run.run, step=step, evaluated=evaluated, **{**of_run, **more})


@dataclass(frozen=True)
class Overflow:
    """More findings than an event can hold: the caller writes them before it publishes."""

    key: str  # below the run
    findings: tuple[Mapping[str, Any], ...]
    count: int  # how many there were

    @property
    def body(self) -> bytes:
        """Return the object, as JSON."""
        return as_json(plain({"count": self.count, "findings": self.findings})).encode()


@dataclass(frozen=True)
class OutboxEntry:
    """An event that is to be published, at least once."""

    id: str
    detail_type: str
    detail: Mapping[str, Any]
    overflow: Overflow | None = None

    def as_item(self) -> dict[str, str]:
        """Return the entry as stored: the detail as text, so that its size is known and no number changes."""
        return {"detail_type": self.detail_type, "detail": as_json(self.detail)}


def id_of(run: str, training_run: int, configuration: str, step: int | None, kind: str) -> str:
    """Return the id of an event: the same each time for the same cause."""
    cause = json.dumps([run, training_run, configuration, step, kind])
    return sha256(cause.encode()).hexdigest()[:32]


def when(seconds: float | None) -> str | None:
    """Return a time as in events, such as `2026-11-21T06:38:36.120Z`; None if it is unknown."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def entry_of(detail_type: str, detail: Mapping[str, Any], overflow: Overflow | None = None) -> OutboxEntry:
    whole = fitted(detail)
    whole["text"] = alerts.line(detail_type, whole)
    whole["version"] = EVENT_VERSION
    return OutboxEntry(str(detail["id"]), detail_type, whole, overflow)


def readable(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the detail of an event; `NewerRecord` for one that this release would misread."""
    version = detail.get("version", 1)
    if not isinstance(version, int) or version > EVENT_VERSION:
        raise NewerRecord(f"The event {detail.get('id')}", f"version {version}", f"{EVENT_VERSION}")
    return detail


def issue_of(rule: RuleRecord) -> dict[str, Any]:
    return {
        "id": rule.issue_id or None,
        "role": rule.issue_role or None,
        "since": rule.issue_since,
        "last_found": rule.last_found,
        "open": rule.has_open_issue,
    }
