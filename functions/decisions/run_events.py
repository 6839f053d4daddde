"""The events about a run as a whole: its state, its summary, and SageMaker's own form of both."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from functions.decisions.detail_types import OLD_STATE_CHANGE, RUN_STATE_CHANGE
from functions.decisions.event_sizes import MAX_STATUS_DETAILS, MAX_TEXT, cut, fitted
from functions.decisions.outbox import OutboxEntry, entry_of, id_of, issue_of, when
from smdebug.service.records import (
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    RunVerdict,
)

SUMMARY_VERSION = 3
"""Of the summary's fields. Since 2 it has a verdict, and counts steps that were evaluated in part. Since 3
it counts rules that had nothing to check, and the verdict may be that none had."""


def run_entry(
    record: RunRecord, cause: str, now: float, *, summary: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, str]]:
    """Return an event about the run, as an entry of its outbox; the same `cause` gives the same id."""
    entry = run_state_changed(record, cause, now, summary=summary)
    return entry.id, entry.as_item()


def run_state_changed(
    record: RunRecord, cause: str, now: float, *, summary: Mapping[str, Any] | None = None
) -> OutboxEntry:
    """Return the event of a changed state, or of a problem with the run's files."""
    detail = {
        "id": id_of(record.run, record.training_run, "", None, f"run:{cause}"),
        "run": record.run,
        "location": record.location,
        "training_run": record.training_run,
        "run_id": record.run_id,
        "job": record.job,
        "state": record.state.value,
        "workers": record.num_workers,
        "trouble": cut(record.trouble, 4 * MAX_STATUS_DETAILS),
        "summary": summary,
        "times": {
            "first_seen": when(record.first_seen),
            "ended": when(record.ended_at),
            "changed": when(now),
            "published": None,
        },
    }
    return entry_of(RUN_STATE_CHANGE, detail)


def summary_of(
    rules: Iterable[tuple[RuleConfiguration, RuleRecord]],
    *,
    steps: int,
    last_step: int | None = None,
    not_evaluated: int = 0,
    partly_evaluated: int = 0,
    lost_steps: str = "",
    unread_steps: str = "",
    detached: Collection[str] = (),
) -> dict[str, Any]:
    """Return the summary of a run that has ended.

    `detached` are the ids of rules that do not judge it; `lost_steps` says which steps were never written,
    and `unread_steps` which files of steps could not be read.
    """
    rules = list(rules)
    summaries = [
        {
            "name": rule.name,
            "rule": configuration.rule,
            "status": rule.status.value,
            "reason": cut(rule.reason, MAX_TEXT),
            "issue": issue_of(rule),
            "last_found": rule.last_found,
            "last_good_step": rule.last_good,
        }
        for configuration, rule in rules
    ]
    counts = {status.value: 0 for status in RuleStatus}
    for summary in summaries:
        counts[str(summary["status"])] += 1
    judging = [rule for _, rule in rules if rule.id not in detached]
    unseen = not_evaluated + partly_evaluated + bool(lost_steps or unread_steps)
    verdict = verdict_of(judging, steps=steps, unseen=unseen)
    return {
        "version": SUMMARY_VERSION,
        "verdict": verdict.value,
        "steps": steps,
        "last_step": last_step,
        "not_evaluated": not_evaluated,
        "partly_evaluated": partly_evaluated,
        "not_checked": sum(rule.status is RuleStatus.NOT_CHECKED for rule in judging),
        "statuses": {status: count for status, count in counts.items() if count},
        "rules": summaries,
        **({"lost_steps": cut(lost_steps, MAX_TEXT)} if lost_steps else {}),
        **({"unread_steps": cut(unread_steps, MAX_TEXT)} if unread_steps else {}),
    }


def verdict_of(rules: Iterable[RuleRecord], *, steps: int, unseen: int) -> RunVerdict:
    """Return the verdict on a run.

    A good one only if all rules have evaluated all of its due steps, and not all without data for them.
    """
    statuses = {rule.status for rule in rules}
    if RuleStatus.ISSUES_FOUND in statuses:
        return RunVerdict.ISSUES_FOUND
    if RuleStatus.ERROR in statuses:
        return RunVerdict.ERROR
    if unseen or not steps or statuses - {RuleStatus.NO_ISSUES_FOUND, RuleStatus.NOT_CHECKED}:
        return RunVerdict.INCOMPLETE
    if RuleStatus.NO_ISSUES_FOUND not in statuses:
        return RunVerdict.NOT_CHECKED
    return RunVerdict.NO_ISSUES_FOUND


def old_state_change(
    record: RunRecord,
    rules: Iterable[RuleRecord],
    now: float,
    *,
    account: str = "",
    region: str = "",
) -> OutboxEntry:
    """Return the event in SageMaker's form, for functions that were written for it."""
    job = record.job or record.run.rpartition("/")[2]
    ended = record.state in (RunState.ENDED, RunState.FINISHED)
    statuses: list[dict[str, Any]] = [
        {
            "RuleConfigurationName": cut(rule.name, 256),
            "RuleEvaluationJobArn": cut(f"smdebug:{rule.id}", 256),
            "RuleEvaluationStatus": rule.status.of_sagemaker,
            "StatusDetails": cut(rule.reason, MAX_STATUS_DETAILS - 1) + "\n" if rule.reason else "",
            "LastModifiedTime": int(rule.changed_at * 1000),
        }
        for rule in rules
    ]
    digest = json.dumps(
        [[status["RuleConfigurationName"], status["RuleEvaluationStatus"]] for status in statuses]
    )
    latest = max((rule["LastModifiedTime"] for rule in statuses), default=int(now * 1000))
    kind = f"old:{digest}:{record.state}:{latest}"
    detail = {
        "id": id_of(record.run, record.training_run, "", None, kind),
        "TrainingJobName": job,
        "TrainingJobArn": f"arn:aws:sagemaker:{region}:{account}:training-job/{job}"
        if record.job and account
        else "",
        "TrainingJobStatus": "Completed" if ended else "InProgress",
        "SecondaryStatus": "Completed" if ended else "Training",
        "DebugHookConfig": {"S3OutputPath": record.location},
        "CreationTime": str(int(record.first_seen * 1000)),
        "LastModifiedTime": str(int(now * 1000)),
        "DebugRuleEvaluationStatuses": statuses,
    }
    return OutboxEntry(str(detail["id"]), OLD_STATE_CHANGE, fitted(detail))
