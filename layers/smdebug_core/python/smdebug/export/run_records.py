"""A run as records for sinks: its numbers, its problems as they come and go, its diagnosis, its report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import smdebug
from smdebug.diagnosis.issues import Issue
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


def unknown_to(issues: Iterable[Issue], others: Iterable[Issue]) -> list[Issue]:
    """Return the others that have neither the cause nor a rule of one of the issues."""
    known = {name for issue in issues for name in (issue.cause, *issue.all_rules) if name}
    return [issue for issue in others if known.isdisjoint((issue.cause, *issue.rules))]


def diagnosis_record(following: Following, others: Sequence[Issue] = ()) -> DiagnosisRecord:
    """Return the diagnosis up to the last step that was evaluated, and what others have found."""
    results = following.results
    return DiagnosisRecord(
        following.last_step,
        (*following.issues, *others),
        len(following.open_issues) + len(others),
        passed=tuple(
            item.name for item in results if item.has_seen and not item.has_found and not item.error
        ),
        not_checked=tuple(item.name for item in results if item.not_checked),
        failed=following.failed,
    )
