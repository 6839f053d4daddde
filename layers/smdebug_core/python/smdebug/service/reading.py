"""What the records of a run tell a person: its state, its rules, its steps, what was found.

Values made from values: who reads the table is `smdebug.service.client`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from smdebug.service.items import RulesOfRun
from smdebug.service.records import (
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    StepRecord,
)
from smdebug.service.tables import Rows, cell, moment, plain

LANE = "lane-"


class Told:
    """A value that is also plain data."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: times as text, in UTC."""
        return {
            one.name: plain(getattr(self, one.name))
            for one in fields(self)  # type: ignore[arg-type]
            if one.repr
        }


# Runs


@dataclass(frozen=True)
class RunSummary(Told):
    """One run in a list of many."""

    columns: ClassVar = (
        *("run", "state", "first_seen", "job", "workers", "evaluated_through"),
        *("rules", "open_issues"),
    )

    run: str
    state: RunState
    first_seen: datetime | None
    ended_at: datetime | None
    job: str | None
    workers: int | None
    evaluated_through: int | None  # the step up to which all was looked at
    rules: Mapping[RuleStatus, int]  # how many have which status
    open_issues: int
    trouble: str


@dataclass(frozen=True)
class RuleStatusOf(Told):
    """How a rule stands on a run, and why."""

    columns: ClassVar = (
        *("name", "status", "reason", "issue_since", "last_found", "last_good"),
        *("evaluated_through", "changed_at"),
    )

    name: str
    rule: str  # the class
    status: RuleStatus
    reason: str = ""
    issue_since: int | None = None  # the step at which the open issue began; None: none is open
    last_found: int | None = None
    last_good: int | None = None
    evaluated_through: int | None = None
    catching_up: bool = False  # it is still at steps that came before it was attached
    attached: bool = True  # False: the run's rules no longer name it
    changed_at: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    group: str = ""

    @property
    def has_open_issue(self) -> bool:
        return self.issue_since is not None


@dataclass(frozen=True)
class RunSnapshot(Told):
    """A run as it was when the table was read: its state, and how each rule stands."""

    run: str
    state: RunState
    summary: RunSummary
    statuses: Rows[RuleStatusOf]
    record: RunRecord = field(repr=False)
    groups: tuple[GroupRecord, ...] = field(repr=False)
    configurations: tuple[RuleConfiguration, ...] = field(repr=False)

    @property
    def evaluated_through(self) -> int | None:
        return self.summary.evaluated_through

    @property
    def has_found_something(self) -> bool:
        return any(one.status is RuleStatus.ISSUES_FOUND for one in self.statuses)

    def __repr__(self) -> str:
        return f"{headline(self.summary)}\n{self.statuses!r}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(headline(self.summary))}</p>{self.statuses._repr_html_()}"


def snapshot(record: RunRecord, groups: Iterable[GroupRecord], rules: RulesOfRun) -> RunSnapshot:
    """What the records of one run say together."""
    of_this_attempt = tuple(groups)
    statuses = statuses_of(record, of_this_attempt, rules)
    cursors = [_cursor(record, one) for one in of_this_attempt if not _is_lane(one)]
    cursor = min(cursors, default=NOTHING_EVALUATED)
    summary = RunSummary(
        run=record.run,
        state=record.state,
        first_seen=moment(record.first_seen),
        ended_at=moment(record.ended_at),
        job=record.job,
        workers=record.num_workers,
        evaluated_through=None if cursor == NOTHING_EVALUATED else cursor,
        rules=dict(Counter(one.status for one in statuses if one.attached)),
        open_issues=sum(one.has_open_issue for one in statuses),
        trouble=record.trouble,
    )
    return RunSnapshot(
        run=record.run,
        state=record.state,
        summary=summary,
        statuses=statuses,
        record=record,
        groups=of_this_attempt,
        configurations=rules.wanted,
    )


def headline(summary: RunSummary) -> str:
    """A run in one sentence."""
    workers = "an unknown number of workers"
    if summary.workers is not None:
        workers = f"{summary.workers} worker{'s' * (summary.workers != 1)}"
    through = summary.evaluated_through
    looked = "no step evaluated yet" if through is None else f"evaluated through step {through}"
    told = f"s3://{summary.run}: {summary.state.value}, {workers}, {looked}"
    return f"{told}. {summary.trouble}" if summary.trouble else told


def statuses_of(
    record: RunRecord, groups: Collection[GroupRecord], rules: RulesOfRun
) -> Rows[RuleStatusOf]:
    """Each rule: those that are wanted in their order, then those that no longer are."""
    records = _newest_records(groups)
    known = {one.id: one for one in rules.detached}
    told = []
    for configuration in rules.wanted:
        not_begun = RuleRecord(configuration.id, configuration.name, changed_at=record.first_seen)
        rule, group = records.pop(configuration.id, (not_begun, None))
        told.append(_status(record, configuration, rule, group, attached=True))
    for rule, group in records.values():
        told.append(_status(record, known.get(rule.id), rule, group, attached=False))
    return Rows(told, RuleStatusOf.columns, "No rule watches this run.")


def _newest_records(
    groups: Collection[GroupRecord],
) -> dict[str, tuple[RuleRecord, GroupRecord | None]]:
    """The record of each rule; of one on its way between two groups, the one that is in a lane."""
    found: dict[str, tuple[RuleRecord, GroupRecord | None]] = {}
    for group in sorted(groups, key=_is_lane):
        found |= {rule.id: (rule, group) for rule in group.rules}
    return found


def _status(
    record: RunRecord,
    configuration: RuleConfiguration | None,
    rule: RuleRecord,
    group: GroupRecord | None,
    *,
    attached: bool,
) -> RuleStatusOf:
    cursor = NOTHING_EVALUATED if group is None else _cursor(record, group)
    return RuleStatusOf(
        name=rule.name,
        rule=configuration.rule if configuration else rule.name,
        status=rule.status,
        reason=rule.reason,
        issue_since=rule.issue_since,
        last_found=rule.last_found,
        last_good=rule.last_good,
        evaluated_through=None if cursor == NOTHING_EVALUATED else cursor,
        catching_up=not rule.status.is_final and cursor < rule.catch_up_through,
        attached=attached,
        changed_at=moment(rule.changed_at),
        parameters=dict(configuration.parameters) if configuration else {},
        id=rule.id,
        group=group.group if group else "",
    )


def _is_lane(group: GroupRecord) -> bool:
    return group.group.startswith(LANE)


def _cursor(record: RunRecord, group: GroupRecord) -> int:
    """How far the group has come in this attempt of the training."""
    return group.cursor if group.training_run == record.training_run else NOTHING_EVALUATED


# News


@dataclass(frozen=True)
class News(Told):
    """Something that was not so when one looked last."""

    what: str  # "state", "status", "issue", "evaluated" or "trouble"
    text: str
    rule: str | None = None

    def __str__(self) -> str:
        return cell(self.text)


def news(before: RunSnapshot | None, after: RunSnapshot) -> list[News]:
    """What is new since one looked last; everything, if one has not."""
    told = []
    if before is None or before.state is not after.state:
        told.append(News("state", headline(after.summary)))
    elif after.evaluated_through != before.evaluated_through:
        told.append(News("evaluated", f"evaluated through step {after.evaluated_through}"))
    if after.summary.trouble and (not before or before.summary.trouble != after.summary.trouble):
        told.append(News("trouble", after.summary.trouble))
    known = {one.id: one for one in before.statuses} if before else {}
    for one in after.statuses:
        told += _news_of_rule(known.get(one.id), one)
    return told


def _news_of_rule(before: RuleStatusOf | None, after: RuleStatusOf) -> list[News]:
    told = []
    if before is None or before.status is not after.status:
        reason = f": {after.reason}" if after.reason else ""
        told.append(News("status", f"{after.name} is {after.status.value}{reason}", after.name))
    was_open = before is not None and before.has_open_issue
    if after.has_open_issue and not was_open and not told:
        text = f"{after.name} has an open issue since step {after.issue_since}"
        told.append(News("issue", text, after.name))
    if was_open and not after.has_open_issue:
        text = f"{after.name} found nothing any more at step {after.last_good}"
        told.append(News("issue", text, after.name))
    return told


# Steps


class StepState(StrEnum):
    """How much of a step is there."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    GIVEN_UP = "given up"  # the rules have gone on without what is missing
    UNKNOWN = "unknown"  # nobody has said yet how many workers there are


@dataclass(frozen=True)
class StepStatus(Told):
    """Who has written what of a step, and whether the rules have looked at it."""

    columns: ClassVar = ("step", "state", "mode", "mode_step", "evaluated", "missing", "uploaded")

    step: int
    state: StepState
    evaluated: bool
    workers: tuple[str, ...] = ()  # whose event and index file are there
    missing: tuple[str, ...] = ()
    half_written: tuple[str, ...] = ()  # those of the missing that have written one of their files
    mode: str | None = None  # known once the step was evaluated
    mode_step: int | None = None
    uploaded: datetime | None = None
    indexed: datetime | None = None
    training_run: int = 0


def step_statuses(run: RunSnapshot, steps: Collection[StepRecord]) -> Rows[StepStatus]:
    """The steps of a run as they stand."""
    seen = frozenset().union(*(step.with_event | step.with_index for step in steps))
    workers = _all_workers(run.record.num_workers, seen)
    told = (_step_status(run, step, workers) for step in steps)
    return Rows(told, StepStatus.columns, "Nothing of this run has arrived yet.")


def _step_status(run: RunSnapshot, step: StepRecord, workers: Collection[str]) -> StepStatus:
    num_workers = run.record.num_workers
    complete = step.complete_workers
    missing = [one for one in workers if one not in complete]
    gone_by = any(_cursor(run.record, one) >= step.step for one in run.groups if not _is_lane(one))
    if num_workers is None:
        state, missing = StepState.UNKNOWN, []
    elif step.is_complete(num_workers):
        state, missing = StepState.COMPLETE, []
    elif gone_by or run.record.has_ended:
        state = StepState.GIVEN_UP
    else:
        state = StepState.INCOMPLETE
    groups = [one for one in run.groups if not _is_lane(one)]
    return StepStatus(
        step=step.step,
        state=state,
        evaluated=bool(groups)
        and state is StepState.COMPLETE
        and all(_has_evaluated(run.record, one, step) for one in groups),
        workers=tuple(sorted(complete, key=_by_number)),
        missing=tuple(missing),
        half_written=tuple(one for one in missing if one in step.with_event | step.with_index),
        mode=step.mode,
        mode_step=step.mode_step,
        uploaded=moment(step.uploaded),
        indexed=moment(step.indexed),
        training_run=step.training_run,
    )


def _has_evaluated(record: RunRecord, group: GroupRecord, step: StepRecord) -> bool:
    if group.training_run != record.training_run:
        return False
    if step.step in group.late_done:
        return True
    if record.tells_previous_steps:
        return step.step <= group.cursor and not group.gave_up(step.step)
    # There steps may come in any order: each says itself who has looked at it.
    return group.group in step.evaluated_by


def _all_workers(num_workers: int | None, seen: Collection[str]) -> list[str]:
    """The names of all workers: those that were seen, else the usual ones."""
    usual = [f"worker_{number}" for number in range(num_workers or 0)]
    return usual if set(seen) <= set(usual) else sorted(seen, key=_by_number)


def _by_number(worker: str) -> tuple[str, int, str]:
    stem = worker.rstrip("0123456789")
    number = worker[len(stem) :]
    return stem, int(number) if number.isascii() and number else -1, worker


# Findings


@dataclass(frozen=True)
class FindingEvent(Told):
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
    worst: tuple[
        Mapping[str, Any], ...
    ]  # each: tensor, statistic, value, threshold, worker, message
    last_good: int | None
    detail: Mapping[str, Any] = field(repr=False)  # everything, as the event has it

    def to_dict(self) -> dict[str, Any]:
        return dict(self.detail)

    @property
    def tensor(self) -> str | None:
        """Of the worst."""
        return self.worst[0].get("tensor") if self.worst else None

    @property
    def statistic(self) -> str | None:
        return self.worst[0].get("statistic") if self.worst else None

    @property
    def value(self) -> Any:
        return self.worst[0].get("value") if self.worst else None

    def is_of(self, rule: str) -> bool:
        """Is it of the rule of that name, configuration or class?"""
        return rule in (self.name, self.rule, self._configuration.get("id"))

    @property
    def _configuration(self) -> Mapping[str, Any]:
        return _map(self.detail.get("configuration"))


def finding_event(detail: Mapping[str, Any]) -> FindingEvent:
    """The finding that an event's detail tells."""
    evidence = _map(detail.get("evidence"))
    worst = tuple(one for one in evidence.get("worst") or () if isinstance(one, Mapping))
    return FindingEvent(
        id=str(detail.get("id", "")),
        run=str(detail.get("run", "")),
        name=str(_map(detail.get("configuration")).get("name") or detail.get("rule", "")),
        rule=str(detail.get("rule", "")),
        step=int(detail.get("step", NOTHING_EVALUATED)),
        mode=detail.get("mode"),
        reason=str(detail.get("reason", "")),
        count=int(evidence.get("count") or len(worst)),
        worst=worst,
        last_good=detail.get("last_good_step"),
        detail=detail,
    )


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# Actions


@dataclass(frozen=True)
class ActionOutcome(Told):
    """What became of something that a finding asked for."""

    columns: ClassVar = ("at", "name", "done", "message")

    finding_id: str
    name: str  # stoptraining, email, sms
    action: Mapping[str, Any]
    effect: str
    done: bool
    settled: bool  # False: it is tried again
    message: str
    at: datetime | None
    rule_id: str = ""


def action_outcome(rule_id: str, told: Mapping[str, Any]) -> ActionOutcome:
    """The outcome as the functions have kept it."""
    action = _map(told.get("action"))
    return ActionOutcome(
        finding_id=str(told.get("finding_id", "")),
        name=str(action.get("name", "")),
        action=dict(action),
        effect=str(told.get("effect", "")),
        done=bool(told.get("done")),
        settled=bool(told.get("settled")),
        message=str(told.get("message", "")),
        at=moment(told.get("at")),
        rule_id=rule_id,
    )


# Log lines


@dataclass(frozen=True)
class LogLine(Told):
    """What a rule's function said."""

    columns: ClassVar = ("time", "level", "step", "message")

    time: datetime | None
    message: str
    level: str = ""
    step: int | None = None
    rule: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)  # everything that the line says


def log_line(fields: Mapping[str, Any], milliseconds: float) -> LogLine:
    """The line whose JSON this is."""
    step = fields.get("step")
    return LogLine(
        time=moment(milliseconds / 1000),
        message=str(fields.get("message", "")),
        level=str(fields.get("level", "")),
        step=step if isinstance(step, int) and not isinstance(step, bool) else None,
        rule=str(fields.get("rule", "")),
        fields=dict(fields),
    )


__all__ = [
    "ActionOutcome",
    "FindingEvent",
    "LogLine",
    "News",
    "RuleStatusOf",
    "RunSnapshot",
    "RunSummary",
    "StepState",
    "StepStatus",
    "action_outcome",
    "finding_event",
    "headline",
    "log_line",
    "news",
    "snapshot",
    "statuses_of",
    "step_statuses",
]
