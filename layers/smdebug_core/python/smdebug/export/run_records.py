"""A run as records for sinks: its numbers, its problems as they come and go, its diagnosis, its report."""

from __future__ import annotations

from collections.abc import Iterable

import smdebug
from smdebug.runs.evaluation.following import ChangeKind, Following, IssueChange
from smdebug.runs.origins import readable_origin
from smdebug.sinks.records import DiagnosisRecord, IssueRecord, RunRecord
from smdebug.trials import Trial


def run_record(trial: Trial) -> RunRecord:
    """Return which run it is."""
    origin = readable_origin(trial)
    return RunRecord(
        trial.name, trial.path, () if origin is None else tuple(origin.tags), smdebug.__version__
    )


def issue_records(changes: Iterable[IssueChange]) -> list[IssueRecord]:
    """Return the problems that were opened, with their first step, and those that were resolved."""
    return [
        IssueRecord("opened", change.issue.since, change.issue)
        if change.kind is ChangeKind.OPENED
        else IssueRecord("resolved", change.step, change.issue)
        for change in changes
    ]


def diagnosis_record(following: Following) -> DiagnosisRecord:
    """Return the diagnosis up to the last step that was evaluated."""
    results = following.results
    return DiagnosisRecord(
        following.last_step,
        following.issues,
        len(following.open_issues),
        passed=tuple(
            item.name for item in results if item.has_seen and not item.has_found and not item.error
        ),
        not_checked=tuple(item.name for item in results if item.not_checked),
        failed=following.failed,
    )
