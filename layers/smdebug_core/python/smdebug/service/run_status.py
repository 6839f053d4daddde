"""The state of a run and the status of its rules, made from the records of the step index.

Values made from values: `smdebug.service.client` reads the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from smdebug.amounts import counted
from smdebug.service.records import (
    LANE,
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    RunVerdict,
)
from smdebug.service.step_index.items import RulesOfRun
from smdebug.service.tables import PlainData, Rows, moment


@dataclass(frozen=True)
class RunSummary(PlainData):
    """One run in a list of many."""

    columns: ClassVar = (
        "run",
        "state",
        "verdict",
        "first_seen",
        "job",
        "workers",
        "evaluated_through",
        "rules",
        "open_issues",
    )

    run: str
    state: RunState
    first_seen: datetime | None
    ended_at: datetime | None
    job: str | None
    workers: int | None
    evaluated_through: int | None  # the last step that every rule has evaluated
    rules: Mapping[RuleStatus, int]  # the number of rules with each status
    open_issues: int
    trouble: str
    verdict: RunVerdict | None = None  # once the run is finished


@dataclass(frozen=True)
class RuleStatusOf(PlainData):
    """The status of one rule on a run, and its reason."""

    columns: ClassVar = (
        "name",
        "status",
        "reason",
        "issue_since",
        "last_found",
        "last_good",
        "evaluated_through",
        "changed_at",
    )

    name: str
    rule: str  # the class
    status: RuleStatus
    reason: str = ""
    issue_since: int | None = None  # the step at which the open issue began; None: none is open
    last_found: int | None = None
    last_good: int | None = None
    evaluated_through: int | None = None
    catching_up: bool = False  # still evaluating steps from before it was attached
    attached: bool = True  # False: the run's rules no longer include it
    changed_at: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    group: str = ""

    @property
    def has_open_issue(self) -> bool:
        return self.issue_since is not None


@dataclass(frozen=True)
class RunSnapshot(PlainData):
    """The state of a run and the status of its rules at the time the table was read."""

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
        return any(rule.status is RuleStatus.ISSUES_FOUND for rule in self.statuses)

    def __repr__(self) -> str:
        return f"{headline(self.summary)}\n{self.statuses!r}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(headline(self.summary))}</p>{self.statuses._repr_html_()}"


def snapshot(record: RunRecord, groups: Iterable[GroupRecord], rules: RulesOfRun) -> RunSnapshot:
    """Combine the records of one run."""
    of_this_attempt = tuple(groups)
    statuses = statuses_of(record, of_this_attempt, rules)
    cursors = [cursor_of(record, group) for group in of_this_attempt if not is_lane(group)]
    cursor = min(cursors, default=NOTHING_EVALUATED)
    summary = RunSummary(
        run=record.run,
        state=record.state,
        first_seen=moment(record.first_seen),
        ended_at=moment(record.ended_at),
        job=record.job,
        workers=record.num_workers,
        evaluated_through=None if cursor == NOTHING_EVALUATED else cursor,
        rules=dict(Counter(rule.status for rule in statuses if rule.attached)),
        open_issues=sum(rule.has_open_issue for rule in statuses),
        trouble=record.trouble,
        verdict=verdict_of(record),
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


def verdict_of(record: RunRecord) -> RunVerdict | None:
    """The verdict on a finished run; None while it may still change."""
    is_known = record.state is RunState.FINISHED and record.verdict
    return RunVerdict(record.verdict) if is_known else None


def headline(summary: RunSummary) -> str:
    """A run in one sentence."""
    workers = "an unknown number of workers"
    if summary.workers is not None:
        workers = counted(summary.workers, "worker")
    through = summary.evaluated_through
    progress = "no step evaluated yet" if through is None else f"evaluated through step {through}"
    verdict = f" ({summary.verdict.value})" if summary.verdict else ""
    sentence = f"s3://{summary.run}: {summary.state.value}{verdict}, {workers}, {progress}"
    return f"{sentence}. {summary.trouble}" if summary.trouble else sentence


def statuses_of(record: RunRecord, groups: Collection[GroupRecord], rules: RulesOfRun) -> Rows[RuleStatusOf]:
    """The status of each rule: attached ones in the order of their configurations, then detached ones."""
    records = _newest_records(groups)
    known = {configuration.id: configuration for configuration in rules.detached}
    statuses = []
    for configuration in rules.wanted:
        not_begun = RuleRecord(configuration.id, configuration.name, changed_at=record.first_seen)
        rule, group = records.pop(configuration.id, (not_begun, None))
        statuses.append(_status(record, configuration, rule, group, attached=True))
    for rule, group in records.values():
        statuses.append(_status(record, known.get(rule.id), rule, group, attached=False))
    return Rows(statuses, RuleStatusOf.columns, "No rule watches this run.")


def _newest_records(
    groups: Collection[GroupRecord],
) -> dict[str, tuple[RuleRecord, GroupRecord | None]]:
    """The record of each rule; the one in a lane if the rule is on its way between two groups."""
    found: dict[str, tuple[RuleRecord, GroupRecord | None]] = {}
    for group in sorted(groups, key=is_lane):
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
    cursor = NOTHING_EVALUATED if group is None else cursor_of(record, group)
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


def is_lane(group: GroupRecord) -> bool:
    """Whether the group is the lane in which a rule attached later catches up."""
    return group.group.startswith(LANE)


def cursor_of(record: RunRecord, group: GroupRecord) -> int:
    """The last step that the group has evaluated in the current attempt of the training."""
    return group.cursor if group.training_run == record.training_run else NOTHING_EVALUATED
