"""Lanes: groups of their own for built-in rules that are behind the others.

A rule that was attached to a live run, or that waits for another run, gets a lane. Once it has caught
up it joins the other built-in rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functions.evaluation.leased_group import LeasedGroup
from functions.run_record import change
from functions.workflow_start import leave_check
from smdebug.service.records import BUILT_IN, LANE, GroupRecord, RuleRecord, RunRecord

_NOT_HELD: dict[str, Any] = {"token": 0, "lease_until": 0.0, "deaths": 0}


def lane_of(rule_id: str) -> str:
    """Return the name of the rule's lane."""
    return f"{LANE}{rule_id}"


def move_to_lane(leased: LeasedGroup, rule: RuleRecord, cursor: int) -> None:
    """Move the rule to a lane of its own that begins after `cursor`."""
    lane = lane_of(rule.id)

    def with_lane(known: RunRecord) -> RunRecord:
        return replace(known, groups=tuple(dict.fromkeys([*known.groups, lane])))

    begun = GroupRecord(lane, training_run=leased.record.training_run, cursor=cursor, rules=(rule,))
    if cursor == leased.group.cursor:  # it has seen what the others have
        begun = replace(
            leased.group,
            group=lane,
            rules=(rule,),
            finished=False,
            outbox={},
            alone=(),
            **_NOT_HELD,
        )
    # The lane is written before the run names it: a crash in between leaves one that is not evaluated.
    leased.world.index.groups.begin_lane(leased.record.run, begun)
    leased.keep(change(leased.world, leased.record, with_lane))
    others = tuple(other for other in leased.group.rules if other.id != rule.id)
    leased.group = replace(leased.group, rules=others)
    leave_check(leased.world, leased.record, after=1)


def join_level_lanes(leased: LeasedGroup) -> None:
    """Merge lanes that have caught up into the built-in group.

    Lane and built-in group are evaluated at the same time, so whichever ends last finds them level.
    """
    index, run, own = leased.world.index, leased.record.run, leased.group.group
    for name in (own,) if own != BUILT_IN else leased.record.groups:
        lane = index.groups.get(run, name) if name.startswith(LANE) else None
        built_in = index.groups.get(run, BUILT_IN) if lane else None
        if lane is None or built_in is None or not _are_level(leased, built_in, lane):
            continue
        merged = replace(
            built_in,
            rules=(*built_in.rules, *lane.rules),
            finished=built_in.finished and lane.finished,
        )
        if index.groups.merge(leased.record, lane, built_in, merged):
            leased.keep(index.run(run) or leased.record)


def _are_level(leased: LeasedGroup, built_in: GroupRecord, lane: GroupRecord) -> bool:
    """Whether both have evaluated the same steps, neither is leased, and the lane has published all."""
    return (
        (built_in.cursor, built_in.training_run) == (lane.cursor, lane.training_run)
        and leased.record.records_previous_steps  # otherwise late steps are recorded by group
        and built_in.passed - built_in.late_done == lane.passed - lane.late_done
        and built_in.gaps == lane.gaps
        and not (built_in.lease_until or lane.lease_until or lane.outbox)
        and not any(leased.configuration(rule).other_trials for rule in lane.rules)
    )
