"""The rules that a run asks for in its `rules.json`, and the groups in which they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from functions.decisions.configuration import custom_group, group_of, read_rules, what_changed
from functions.decisions.messages import (
    Arrival,
    bucket_and_prefix,
    comparable,
    is_older,
    version_of_listing,
)
from functions.decisions.silence import watches_silence
from functions.lifecycle.silence import wake_in_time
from functions.run_record import change, in_trouble
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.exceptions import ObjectMissing, RulesFileError
from smdebug.service.items import RulesOfRun
from smdebug.service.records import (
    BUILT_IN,
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RunRecord,
)

RULES_FILE = "rules.json"


def take_rules(world: World, record: RunRecord, arrival: Arrival) -> RunRecord:
    """The rules of the run are told or changed; those that evaluate them will find out by themselves."""
    if is_older(arrival.sequencer, record.rules_version):
        return record
    known_version = record.rules_version
    if not arrival.sequencer:  # a listing has shown it
        known_version = max(known_version, world.index.rules_version(record.run))
    version = comparable(arrival.sequencer or version_of_listing(known_version))

    def with_version(known: RunRecord) -> RunRecord:
        return replace(known, rules_version=max(version, comparable(known.rules_version)))

    rules, trouble = rules_told(world, record.run)
    record = in_trouble(world, record, RULES_FILE, trouble)
    if rules is None:  # those that watch go on
        return change(world, record, with_version)
    before = world.index.rules(record.run)
    detached = what_changed((*before.wanted, *before.detached), rules).stopped
    if not world.index.put_rules(record.run, RulesOfRun(rules, detached), version):
        rules = world.index.rules(record.run).wanted  # told again: the file may have changed since
    groups = groups_of(world, rules)
    if any(watches_silence(rule) for rule in rules):
        wake_in_time(world, record.run)
    for begun in _begun(world, record, rules, groups):
        world.index.begin_group(record.run, begun)
    record = change(
        world,
        record,
        lambda known: replace(
            with_version(known),
            groups=(*known.groups, *(one for one in groups if one not in known.groups)),
        ),
    )
    start_evaluation(world, record.run, 0, attempt=f"rules-{version}")
    return record


def rules_were_missed(world: World, record: RunRecord) -> bool:
    """Does the run's own file ask for other rules than are known, or in other groups?"""
    told, _ = rules_told(world, record.run)
    if told is None:
        return False
    known = world.index.rules(record.run).wanted
    others = {one.id for one in told} != {one.id for one in known}
    return others or not set(record.groups).issuperset(groups_of(world, told))


def rules_told(world: World, run: str) -> tuple[tuple[RuleConfiguration, ...] | None, str]:
    """The rules in the run's own file, None if it has none or makes no sense; and what is wrong with it."""
    bucket, prefix = bucket_and_prefix(run)
    try:
        data = world.objects.read(bucket, f"{prefix}rules.json")
        read = read_rules(data, file=f"s3://{bucket}/{prefix}rules.json")
    except ObjectMissing:
        return None, ""
    except RulesFileError as problem:
        return None, str(problem)
    return read.rules, read.trouble


def groups_of(world: World, rules: Iterable[RuleConfiguration]) -> tuple[str, ...]:
    deployed = world.settings.custom_functions
    return tuple(dict.fromkeys([BUILT_IN, *(group_of(rule, deployed) for rule in rules)]))


def _begun(
    world: World, record: RunRecord, rules: Iterable[RuleConfiguration], groups: Iterable[str]
) -> Iterator[GroupRecord]:
    """The groups that are new to the run. What others have evaluated already is past for a custom rule."""
    new = [group for group in groups if group not in record.groups]
    known = world.index.group(record.run, BUILT_IN) if new else None
    is_current = known is not None and known.training_run == record.training_run
    level = known.cursor if known is not None and is_current else NOTHING_EVALUATED
    custom = {custom_group(rule.id): rule for rule in rules}
    for group in new:
        rule = custom.get(group)
        begun = GroupRecord(group, training_run=record.training_run)
        if rule is not None:
            past = RuleRecord(
                rule.id, rule.name, changed_at=world.clock.now(), catch_up_through=level
            )
            begun = replace(begun, rules=(past,))
        yield begun
