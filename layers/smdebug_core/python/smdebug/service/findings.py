"""Findings as they were published, and the outcomes of the actions that they requested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from smdebug.diagnosis.issues import Issue
from smdebug.service.records import NOTHING_EVALUATED
from smdebug.service.tables import PlainData, moment


@dataclass(frozen=True)
class FindingEvent(PlainData):
    """What a rule found at a step, as it was published."""

    columns: ClassVar = ("step", "mode", "name", "rule", "count", "tensor", "statistic", "value")

    id: str
    run: str
    name: str
    rule: str
    step: int
    mode: str | None
    reason: str
    count: int
    worst: tuple[Mapping[str, Any], ...]  # tensor, statistic, value, threshold, worker, message
    last_good: int | None
    detail: Mapping[str, Any] = field(repr=False)  # the whole event

    def to_dict(self) -> dict[str, Any]:
        return dict(self.detail)

    @property
    def tensor(self) -> str | None:
        """The tensor of the worst finding."""
        return self.worst[0].get("tensor") if self.worst else None

    @property
    def statistic(self) -> str | None:
        return self.worst[0].get("statistic") if self.worst else None

    @property
    def value(self) -> Any:
        return self.worst[0].get("value") if self.worst else None

    def is_of(self, rule: str) -> bool:
        """Whether `rule` is the name, the configuration's id or the class of its rule."""
        return rule in (self.name, self.rule, self._configuration.get("id"))

    @property
    def issue(self) -> Issue | None:
        """The problem that it belongs to, as the event says; None for events without one."""
        diagnosis = _mapping(self.detail.get("diagnosis"))
        return Issue.from_dict(diagnosis) if diagnosis else None

    @property
    def _configuration(self) -> Mapping[str, Any]:
        return _mapping(self.detail.get("configuration"))


def finding_event(detail: Mapping[str, Any]) -> FindingEvent:
    """The finding in an event's detail."""
    evidence = _mapping(detail.get("evidence"))
    worst = tuple(item for item in evidence.get("worst") or () if isinstance(item, Mapping))
    return FindingEvent(
        id=str(detail.get("id", "")),
        run=str(detail.get("run", "")),
        name=str(_mapping(detail.get("configuration")).get("name") or detail.get("rule", "")),
        rule=str(detail.get("rule", "")),
        step=int(detail.get("step", NOTHING_EVALUATED)),
        mode=detail.get("mode"),
        reason=str(detail.get("reason", "")),
        count=int(evidence.get("count") or len(worst)),
        worst=worst,
        last_good=detail.get("last_good_step"),
        detail=detail,
    )


@dataclass(frozen=True)
class ActionRecord(PlainData):
    """The outcome of an action that a finding requested."""

    columns: ClassVar = ("at", "name", "done", "message")

    finding_id: str
    name: str  # stoptraining, email, sms
    action: Mapping[str, Any]
    effect: str
    done: bool
    settled: bool  # False: it will be tried again
    message: str
    at: datetime | None
    rule_id: str = ""


def action_outcome(rule_id: str, body: Mapping[str, Any]) -> ActionRecord:
    """The outcome in a record of the step index."""
    action = _mapping(body.get("action"))
    return ActionRecord(
        finding_id=str(body.get("finding_id", "")),
        name=str(action.get("name", "")),
        action=dict(action),
        effect=str(body.get("effect", "")),
        done=bool(body.get("done")),
        settled=bool(body.get("settled")),
        message=str(body.get("message", "")),
        at=moment(body.get("at")),
        rule_id=rule_id,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def issues_in(findings: Iterable[FindingEvent]) -> list[Issue]:
    """Return the problems in these events, each once and with the most symptoms that an event names."""
    found: dict[str, Issue] = {}
    for finding in findings:
        issue = finding.issue
        if issue is None:
            continue
        key = issue.cause or ", ".join(issue.rules)
        known = found.get(key)
        if known is None or len(issue.symptoms) >= len(known.symptoms):
            found[key] = issue
    symptoms = {symptom.cause for issue in found.values() for symptom in issue.symptoms}
    return [issue for key, issue in found.items() if key not in symptoms]
