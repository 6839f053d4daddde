"""Evaluating a group of built-in rules on a run: lease, due steps in order, one commit.

Nothing counts before the commit, and a commit counts only while the lease is held. So every
due step has exactly one effect on every rule, however often this is started, killed or run twice at once.
"""

from __future__ import annotations

from typing import Any

from functions.evaluation.attaching import reconcile
from functions.evaluation.committing import commit
from functions.evaluation.lanes import join_level_lanes
from functions.evaluation.last_evaluations import (
    ask_at_end,
    ask_in_silence,
    end_if_all_has_arrived,
    finish_if_ended,
)
from functions.evaluation.leased_group import LeasedGroup, current_record
from functions.evaluation.stepping import StepWalk
from functions.rule_groups import GroupGone
from functions.workflow_reply import reply
from functions.workflow_start import RUN_ITSELF
from functions.world import World


def evaluate(world: World, run: str, group: str, hinted_step: int) -> dict[str, Any]:
    """Evaluate the rules of a group at every step that is due; return what to publish."""
    record = world.index.run(run)
    if record is None:
        return reply(world, run, group, {})
    if group == RUN_ITSELF:
        return reply(world, run, None, record.outbox)
    now = world.clock.now()
    try:
        held = world.index.groups.lease(run, group, now=now, seconds=world.settings.lease)
    except GroupGone:
        return reply(world, run, group, {})
    leased = LeasedGroup(world, current_record(world, record, held), held, begun=now)
    reconcile(leased)
    more = StepWalk(leased).run(hinted_step)
    if not more:
        end_if_all_has_arrived(leased)
    if not more and not leased.waits:
        ask_in_silence(leased)
        if ask_at_end(leased):
            finish_if_ended(leased)
    commit(leased)
    if not more:
        join_level_lanes(leased)
    return reply(world, run, group, leased.group.outbox, more=more)
