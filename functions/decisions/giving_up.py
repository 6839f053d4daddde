"""How often a run that has ended is looked at again, if its rules come no further."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from hashlib import sha256

from smdebug.service.records import GroupRecord, RuleConfiguration, RunRecord


class Patience(Enum):
    """With a run that has ended, and that is not finished."""

    HAS_LEFT = "the next time may be better"
    IS_OVER = "give up the rules that came no further"
    IS_GONE = "they were given up; nothing else can be done"


def unfinished_of(record: RunRecord, groups: Iterable[GroupRecord]) -> list[GroupRecord]:
    """The groups of rules whose last status is yet to come."""
    return [
        group for group in groups if not group.finished or group.training_run != record.training_run
    ]


def progress_of(record: RunRecord, groups: Iterable[GroupRecord]) -> str:
    """How far everything is: the same text as long as nothing has moved."""
    told = [
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
    plain = json.dumps([record.training_run, record.state, sorted(record.outbox), told])
    return sha256(plain.encode()).hexdigest()[:16]


def looked_again(record: RunRecord, progress: str) -> RunRecord:
    """The run after one more check, at which everything was so far."""
    in_vain = record.in_vain + 1 if progress == record.progress else 0
    return replace(record, progress=progress, in_vain=in_vain)


def patience_with(record: RunRecord, most: int) -> Patience:
    """Is it worth trying again? Rules are given up after so many checks in vain, and once."""
    if record.in_vain < most:
        return Patience.HAS_LEFT
    return Patience.IS_OVER if record.in_vain == most else Patience.IS_GONE


def why_given_up(group: GroupRecord, rule: RuleConfiguration, most: int) -> str:
    """What is said of a rule that could not look at all steps of a run that has ended."""
    names = " or ".join(rule.other_trials)
    others = f", or {names} has come no further" if names else ""
    seen = f"step {group.cursor} was the last" if group.cursor >= 0 else "it has seen none"
    return (
        f"The run has ended, and {most} checks later the rule had still not looked at all of its steps "
        f"({seen}): its function fails{others}. The function's log says why."
    )
