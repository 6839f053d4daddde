"""The last thing that is said of a run: what all its rules have come to."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from functions.decisions.events import old_state_change, run_entry, summary_of
from functions.decisions.giving_up import Patience, patience_with, progress_of, unfinished_of
from functions.evaluation.built_in import Evaluation, as_new_as
from functions.run_record import change
from functions.workflow_reply import answer
from functions.workflow_start import leave_check
from functions.world import World
from smdebug.service.records import GroupRecord, RuleConfiguration, RunRecord, RunState


def finish_run(world: World, run: str) -> dict[str, Any]:
    """Publish the summary if every rule is done; otherwise somebody will look again."""
    record = world.index.run(run)
    if record is None:
        return answer(world, run, None, {})
    groups = world.index.groups_of(record)
    if _has_no_patience(world, record, groups):
        for group in unfinished_of(record, groups):
            _give_up(world, record, group)
        groups = world.index.groups_of(record)
    if not record.has_ended:
        return answer(world, run, None, record.outbox)
    if unfinished_of(record, groups):
        leave_check(world, record, after=60)
        return answer(world, run, None, record.outbox)
    for group in groups:
        # Its own function cannot have it published, or it would have.
        if group.outbox and record.in_vain >= world.settings.checks_in_vain:
            return answer(world, run, group.group, group.outbox, more=True)
    record = _sum_up(world, record, groups)
    return answer(world, run, None, record.outbox)


def _has_no_patience(world: World, record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Was the run checked so often in vain, and is everything still where it was then?"""
    is_so_far = record.progress == progress_of(record, groups)
    patience = patience_with(record, world.settings.checks_in_vain)
    return record.has_ended and is_so_far and patience is not Patience.HAS_LEFT


def _give_up(world: World, record: RunRecord, group: GroupRecord) -> None:
    """The rules that come no further become Error, under a lease like all that changes them."""
    now = world.clock.now()
    held = world.index.lease(record.run, group.group, now=now, seconds=world.settings.lease)
    work = Evaluation(world, as_new_as(world, record, held), held, begun=now)
    work.reconcile(lanes=False)
    work.give_up()
    work.commit()


def _sum_up(world: World, record: RunRecord, groups: list[GroupRecord]) -> RunRecord:
    """What the run has come to is told, and told again whenever that has changed."""
    rules = world.index.rules(record.run)
    known = {one.id: one for one in (*rules.detached, *rules.wanted)}
    told = [
        (known.get(rule.id) or RuleConfiguration(rule.name, rule.name), rule)
        for group in groups
        for rule in group.rules
    ]
    steps = world.index.steps(record.run, record.training_run)
    complete = sum(step.is_complete(record.num_workers) for step in steps)
    summary = summary_of(
        told,
        steps=complete,
        last_step=steps[-1].step if steps else None,
        not_evaluated=len(steps) - complete,
    )
    digest = sha256(json.dumps(summary, sort_keys=True).encode()).hexdigest()[:16]
    now = world.clock.now()

    def finished(known: RunRecord) -> RunRecord | None:
        if not known.has_ended or (known.state is RunState.FINISHED and known.summary == digest):
            return None
        after = replace(known, state=RunState.FINISHED, summary=digest)
        entries = [run_entry(after, f"finished-{digest}", now, summary=summary)]
        old = old_state_change(after, [rule for _, rule in told], now)
        entries.append((old.id, old.as_item()))
        return replace(after, outbox={**known.outbox, **dict(entries)})

    return change(world, record, finished)
