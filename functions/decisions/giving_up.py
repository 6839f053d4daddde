"""Deciding how often to check an ended run again whose rules make no progress."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from hashlib import sha256

from smdebug.service.records import GroupRecord, RuleConfiguration, RunRecord


class Retry(Enum):
    """The next action for a run that has ended and is not finished."""

    CONTINUE = "evaluate again"
    GIVE_UP = "give up the rules that made no progress"
    GIVEN_UP = "nothing: they were given up before"


def unfinished_of(record: RunRecord, groups: Iterable[GroupRecord]) -> list[GroupRecord]:
    """Return the groups whose rules do not have their last status yet."""
    return [group for group in groups if not group.finished or group.training_run != record.training_run]


def progress_of(record: RunRecord, groups: Iterable[GroupRecord]) -> str:
    """Return a digest of how far all rules are: the same as long as nothing moves."""
    positions = [
        [
            group.group,
            group.training_run,
            group.cursor,
            group.finished,
            sorted(group.late_done),
            sorted(group.outbox),
            [[rule.id, rule.status] for rule in group.rules],
        ]
        for group in groups
    ]
    plain = json.dumps([record.training_run, record.state, sorted(record.outbox), positions])
    return sha256(plain.encode()).hexdigest()[:16]


def counted_check(record: RunRecord, progress: str) -> RunRecord:
    """Return the run after one more check, which counts as in vain if nothing has moved."""
    in_vain = record.in_vain + 1 if progress == record.progress else 0
    return replace(record, progress=progress, in_vain=in_vain)


def retry_of(record: RunRecord, most: int) -> Retry:
    """Return what to do after the checks so far: after `most` in vain, rules are given up once."""
    if record.in_vain < most:
        return Retry.CONTINUE
    return Retry.GIVE_UP if record.in_vain == most else Retry.GIVEN_UP


def why_given_up(group: GroupRecord, rule: RuleConfiguration, most: int) -> str:
    """Return the reason for giving up a rule that has not evaluated all steps of an ended run."""
    names = " or ".join(rule.other_trials)
    others = f", or {names} has no more steps" if names else ""
    seen = f"the last was step {group.cursor}" if group.cursor >= 0 else "it has evaluated none"
    return (
        f"{most} checks after the run had ended, the rule had still not evaluated all of its steps "
        f"({seen}): its function fails{others}. See the function's log."
    )
