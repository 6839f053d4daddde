"""Finishing a run: giving up rules that make no progress, and publishing the summary of all."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from functions.decisions.giving_up import Retry, progress_of, retry_of, unfinished_of
from functions.decisions.run_events import old_state_change, run_entry, summary_of
from functions.evaluation.attaching import reconcile
from functions.evaluation.committing import commit
from functions.evaluation.last_evaluations import give_up
from functions.evaluation.leased_group import LeasedGroup, current_record
from functions.run_record import LOST_STEPS, UNREAD_STEPS, change
from functions.workflow_reply import reply
from functions.workflow_start import leave_check
from functions.world import World
from smdebug.service.records import GroupRecord, RuleConfiguration, RunRecord, RunState


def finish_run(world: World, run: str) -> dict[str, Any]:
    """Publish the run's summary if every rule is done; otherwise leave a check."""
    record = world.index.run(run)
    if record is None:
        return reply(world, run, None, {})
    groups = world.index.groups.of_run(record)
    if _is_stuck(world, record, groups):
        for group in unfinished_of(record, groups):
            _give_up(world, record, group)
        groups = world.index.groups.of_run(record)
    if not record.has_ended:
        return reply(world, run, None, record.outbox)
    if unfinished_of(record, groups):
        leave_check(world, record, after=60)
        return reply(world, run, None, record.outbox)
    for group in groups:
        # The group's own function has failed to publish these events.
        if group.outbox and record.in_vain >= world.settings.checks_in_vain:
            return reply(world, run, group.group, group.outbox, more=True)
    record = _publish_summary(world, record, groups)
    return reply(world, run, None, record.outbox)


def _is_stuck(world: World, record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Whether an ended run has made no progress over the allowed number of checks."""
    has_not_moved = record.progress == progress_of(record, groups)
    retry = retry_of(record, world.settings.checks_in_vain)
    return record.has_ended and has_not_moved and retry is not Retry.CONTINUE


def _give_up(world: World, record: RunRecord, group: GroupRecord) -> None:
    """Set the rules that make no progress to Error, under a lease as for every change to rules."""
    now = world.clock.now()
    held = world.index.groups.lease(record.run, group.group, now=now, seconds=world.settings.lease)
    leased = LeasedGroup(world, current_record(world, record, held), held, begun=now)
    reconcile(leased, lanes=False)
    give_up(leased)
    commit(leased)


def _publish_summary(world: World, record: RunRecord, groups: list[GroupRecord]) -> RunRecord:
    """Publish the summary, once for each time that it changes."""
    configured = world.index.rules(record.run)
    known = {rule.id: rule for rule in (*configured.detached, *configured.wanted)}
    rules = [
        (known.get(rule.id) or RuleConfiguration(rule.name, rule.name), rule)
        for group in groups
        for rule in group.rules
    ]
    newest = world.index.steps(record.run, record.training_run, limit=1, newest_first=True)
    # The counts were committed together with the steps. The least complete group decides.
    summary = summary_of(
        rules,
        steps=min((group.evaluated for group in groups), default=0),
        last_step=newest[0].step if newest else None,
        not_evaluated=max((group.not_evaluated for group in groups), default=0),
        partly_evaluated=max((group.partly for group in groups), default=0),
        lost_steps=record.troubles.get(LOST_STEPS, ""),
        unread_steps=record.troubles.get(UNREAD_STEPS, ""),
        detached={rule.id for _, rule in rules} - {rule.id for rule in configured.wanted},
    )
    digest = sha256(json.dumps(summary, sort_keys=True).encode()).hexdigest()[:16]
    now = world.clock.now()

    def finished(known: RunRecord) -> RunRecord | None:
        if not known.has_ended or (known.state is RunState.FINISHED and known.summary == digest):
            return None
        after = replace(known, state=RunState.FINISHED, summary=digest, verdict=summary["verdict"])
        entries = [run_entry(after, f"finished-{digest}", now, summary=summary)]
        old = old_state_change(after, [rule for _, rule in rules], now)
        entries.append((old.id, old.as_item()))
        return replace(after, outbox={**known.outbox, **dict(entries)})

    return change(world, record, finished)
