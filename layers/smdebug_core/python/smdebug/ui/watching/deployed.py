"""The runs of a deployed debugger, with the verdicts and the rules' statuses in its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from smdebug.plain_text import escaped
from smdebug.service.client import Debugger, WatchedRun
from smdebug.service.records import RequestedRule, RuleStatus
from smdebug.service.run_status import RuleStatusOf, RunSnapshot
from smdebug.storage.base import S3_SCHEME
from smdebug.ui.answer_types import DeployedAnswer, DeployedRunAnswer, StatusAnswer
from smdebug.ui.finding.glance import Glance
from smdebug.ui.finding.places import FoundRun

EVERY = 5.0
"""Seconds between two readings of the list of runs while a page shows it."""


class Deployed:
    """The runs in the table of a debugger. Finished ones are read once."""

    is_remote = True
    every = EVERY

    def __init__(self, debugger: Debugger):
        self.path = repr(debugger)
        self._debugger = debugger
        self._snapshots: dict[str, RunSnapshot] = {}
        self._watched: frozenset[str] = frozenset()
        self._newest: dict[str, int | None] = {}

    def find(self) -> list[FoundRun]:
        """Read the list of runs, and those that have not finished."""
        watched = frozenset(self._debugger.run_names(watched=True))
        names = self._debugger.run_names()
        due = [
            name for name in names if name in watched or name in self._watched or name not in self._snapshots
        ]
        found = {run.run: run for run in self._debugger.snapshots(due)}
        self._snapshots = {
            name: found.get(name) or self._snapshots[name]
            for name in names
            if name in found or name in self._snapshots
        }
        self._watched = watched
        own = f"{self._debugger.bucket}/"
        return [
            FoundRun(f"{S3_SCHEME}{name}", escaped(name.removeprefix(own)), True, True)
            for name in self._snapshots
        ]

    def snapshot(self, path: str) -> RunSnapshot | None:
        """Return the run as it was read last."""
        return self._snapshots.get(path.removeprefix(S3_SCHEME))

    def look(self, path: str) -> bool:
        """Read a run; return whether the table has news of it."""
        name = path.removeprefix(S3_SCHEME)
        known = self._snapshots.get(name)
        for run in self._debugger.snapshots([name]):
            self._snapshots[name] = run
            newest = self.run(path).newest_step(run.record.training_run)
            is_news = newest != self._newest.get(name, newest if known is None else None)
            self._newest[name] = newest
            return is_news or known is None or known.to_dict() != run.to_dict()
        return False

    def run(self, path: str) -> WatchedRun:
        """Return the run, to act on it."""
        return self._debugger.watched(path.removeprefix(S3_SCHEME))

    def rules(self, path: str) -> Sequence[RequestedRule] | None:
        """Return the rules that can be evaluated here, too; None if there are none."""
        snapshot = self.snapshot(path)
        known = () if snapshot is None else snapshot.configurations
        return [rule for rule in known if rule.source is None] or None


def with_verdict(glance: Glance, run: RunSnapshot) -> Glance:
    """Return the summary of a run's files with the state and the verdict in the table."""
    found = found_by(run.statuses)
    first = found[0] if found else None
    checked = run.evaluated_through is not None
    state = "ended" if run.record.has_ended else "training"
    return replace(
        glance,
        state=glance.state if glance.state == "gone" else state,
        issues=len(found) if checked or found else None,
        issue="" if first is None else escaped(in_words(first)),
        passed=None,
        since=None if first is None else first.issue_since,
        workers=glance.workers or run.summary.workers or 0,
    )


def found_by(statuses: Iterable[RuleStatusOf]) -> list[RuleStatusOf]:
    """Return the attached rules that have found something, the earliest first."""
    found = [
        status
        for status in statuses
        if status.attached and (status.has_open_issue or status.status is RuleStatus.ISSUES_FOUND)
    ]
    return sorted(found, key=lambda rule: (rule.issue_since is None, rule.issue_since or 0))


def in_words(rule: RuleStatusOf) -> str:
    """Return what a rule has found, in a line."""
    name = rule.name if rule.name == rule.rule else f"{rule.name} ({rule.rule})"
    if rule.issue_since is not None:
        return f"{name}, since step {rule.issue_since}"
    return f"{name}: {rule.reason or 'issues found'}"


def in_list(run: RunSnapshot) -> DeployedAnswer:
    """Return what the list shows of the table."""
    summary = run.summary
    return {
        "state": summary.state.value,
        "verdict": None if summary.verdict is None else summary.verdict.value,
        "evaluated_through": summary.evaluated_through,
        "open_issues": summary.open_issues,
        "rules": {status.value: count for status, count in summary.rules.items()},
        "job": None if summary.job is None else escaped(summary.job),
        "trouble": escaped(summary.trouble),
    }


def in_full(run: RunSnapshot) -> DeployedRunAnswer:
    """Return what the page of the run shows of the table."""
    return {**in_list(run), "statuses": [_status(status) for status in run.statuses]}


def _status(status: RuleStatusOf) -> StatusAnswer:
    return {
        "name": escaped(status.name),
        "rule": escaped(status.rule),
        "status": status.status.value,
        "reason": escaped(status.reason),
        "issue_since": status.issue_since,
        "last_found": status.last_found,
        "last_good": status.last_good,
        "evaluated_through": status.evaluated_through,
        "catching_up": status.catching_up,
        "attached": status.attached,
        "parameters": {escaped(name): escaped(str(value)) for name, value in status.parameters.items()},
    }
