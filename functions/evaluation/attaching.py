"""Attaching and detaching rules: bringing a group into line with the rules that its run asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from functions.decisions.configuration import custom_group, group_of, without_oldest
from functions.decisions.rule_lifecycle import attach_again, begin_again, stop
from functions.evaluation.lanes import lane_of, move_to_lane
from functions.evaluation.leased_group import LeasedGroup
from smdebug.service.records import (
    BUILT_IN,
    LANE,
    NOTHING_EVALUATED,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
)


def reconcile(leased: LeasedGroup, *, lanes: bool = True) -> None:
    """Add the rules that were attached and stop those that were detached.

    Rules that are behind the others move to lanes, unless `lanes` is False.
    """
    rules = leased.world.index.rules(leased.record.run)
    leased.configurations = {rule.id: rule for rule in (*rules.detached, *rules.wanted)}
    wanted = {rule.id for rule in rules.wanted}
    if leased.group.group == BUILT_IN:
        _read_lanes(leased, rules.wanted)
    if leased.group.training_run < leased.record.training_run:
        _begin_anew(leased)
    for rule in leased.group.rules:
        if rule.id not in wanted:
            reason = "The rule was detached from the run, or its configuration was changed."
            leased.apply(stop(rule, leased.configuration(rule), reason, leased.moment()))
    leased.group = replace(leased.group, rules=without_oldest(leased.group.rules, wanted))
    for configuration in rules.wanted:
        if _group_for(leased, configuration) == leased.group.group:
            _attach(leased, configuration, lanes=lanes)
    for rule in leased.group.rules if lanes else ():
        # A rule may have been given a lane while this group's record still lists it.
        own = _group_for(leased, leased.configuration(rule))
        if rule.id in wanted and own != leased.group.group:
            move_to_lane(leased, rule, leased.group.cursor)


def _read_lanes(leased: LeasedGroup, wanted: Iterable[RuleConfiguration]) -> None:
    """Read the run's record again if a rule may move to a lane, or may have come back from one.

    It was read before the lease was taken. Under the lease no lane joins this group, and no other begins.
    """
    is_behind = leased.group.cursor != NOTHING_EVALUATED and any(
        leased.rule(rule.id) is None and _group_for(leased, rule) == BUILT_IN for rule in wanted
    )
    if is_behind or any(group.startswith(LANE) for group in leased.record.groups):
        leased.keep(leased.world.index.run(leased.record.run) or leased.record)


def _attach(leased: LeasedGroup, configuration: RuleConfiguration, *, lanes: bool) -> None:
    known = leased.rule(configuration.id)
    if known is not None:
        if known.status is RuleStatus.STOPPED and known.is_over and not known.out_of_budget:
            _attach_again(leased, known, configuration, lanes=lanes)
        return
    rule = RuleRecord(
        configuration.id,
        configuration.name,
        changed_at=leased.begun,
        catch_up_through=leased.group.cursor,
    )
    if leased.group.group == BUILT_IN and leased.group.cursor != NOTHING_EVALUATED and lanes:
        move_to_lane(leased, rule, NOTHING_EVALUATED)
        return
    if leased.group.group != BUILT_IN:  # its own group, which went on without it
        _restart(leased)
    leased.group = replace(leased.group, rules=(*leased.group.rules, rule), finished=False)


def _attach_again(
    leased: LeasedGroup, known: RuleRecord, configuration: RuleConfiguration, *, lanes: bool
) -> None:
    through = leased.group.cursor
    leased.apply(attach_again(known, configuration, through, leased.moment()))
    if leased.group.group != BUILT_IN:
        _restart(leased)
    elif through != NOTHING_EVALUATED and lanes:
        move_to_lane(leased, leased.group.rule(known.id), NOTHING_EVALUATED)


def _group_for(leased: LeasedGroup, configuration: RuleConfiguration) -> str:
    """Return the group that evaluates the rule: one that the run already has, or the default."""
    own = lane_of(configuration.id), custom_group(configuration.id)
    known = next((group for group in own if group in leased.record.groups), None)
    return known or group_of(configuration, leased.world.settings.custom_functions)


def _begin_anew(leased: LeasedGroup) -> None:
    """Begin again for a resumed training, which rewrites its steps from the checkpoint on."""
    moment = leased.moment()
    for rule in leased.group.rules:
        leased.apply(begin_again(rule, leased.configuration(rule), moment))
    _restart(leased)


def _restart(leased: LeasedGroup) -> None:
    """Forget which steps were evaluated."""
    leased.group = replace(
        leased.group,
        training_run=leased.record.training_run,
        cursor=NOTHING_EVALUATED,
        passed=frozenset(),
        gaps=(),
        late_done=frozenset(),
        lost=frozenset(),
        forgotten=0,
        evaluated=0,
        partly=0,
        checked=NOTHING_EVALUATED,
        finished=False,
    )
