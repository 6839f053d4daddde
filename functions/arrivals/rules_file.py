"""Recording the rules that a run requests in its `rules.json`, and the groups that evaluate them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from functions.decisions.configuration import (
    MOST_DETACHED,
    custom_group,
    default_rules,
    group_of,
    is_custom,
    read_rules,
    what_changed,
    within_share,
)
from functions.decisions.messages import (
    Arrival,
    bucket_and_prefix,
    comparable,
    is_older,
    version_of_listing,
)
from functions.decisions.silence import watches_silence
from functions.lifecycle.silence import wake_in_time
from functions.run_record import change, in_trouble, list_again
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.exceptions import DamagedFile, ObjectMissing, RulesFileError
from smdebug.service.records import (
    BUILT_IN,
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RunRecord,
)
from smdebug.service.rules_file import RULES_FILE
from smdebug.service.step_index.items import RulesOfRun


def record_rules(world: World, record: RunRecord, arrival: Arrival) -> RunRecord:
    """Record the run's rules and start an evaluation, which attaches and detaches them."""
    if is_older(arrival.sequencer, record.rules_version):
        return record
    known_version = record.rules_version
    if not arrival.sequencer:  # found by listing
        known_version = max(known_version, world.index.rules_version(record.run))
    version = comparable(arrival.sequencer or version_of_listing(known_version))

    def with_version(known: RunRecord) -> RunRecord:
        return replace(known, rules_version=max(version, comparable(known.rules_version)))

    rules, trouble = requested_rules(world, record.run)
    record = in_trouble(world, record, RULES_FILE, trouble)
    if rules is None:  # the present rules continue
        return change(world, record, with_version)
    before = world.index.rules(record.run)
    # The newest come first.
    detached = what_changed((*before.wanted, *before.detached), rules).stopped[:MOST_DETACHED]
    if not world.index.put_rules(record.run, RulesOfRun(rules, detached), version):
        rules = world.index.rules(record.run).wanted  # a repeat: the file may have changed since
    groups = groups_of(world, rules)
    if any(watches_silence(rule) for rule in rules):
        wake_in_time(world, record.run)
    for group in _new_groups(world, record, rules, groups):
        world.index.groups.begin(record.run, group)
    over = _groups_to_forget(world, record, groups)

    def with_groups(known: RunRecord) -> RunRecord:
        new = (group for group in groups if group not in known.groups)
        kept = (group for group in known.groups if group not in over)
        return replace(with_version(known), groups=(*kept, *new))

    record = change(world, record, with_groups)
    for name in over:  # only now: a group exists as long as the record names it
        world.index.groups.forget(record.run, over[name])
    if record.expires is not None:  # it has been finished, and has items again that must expire
        list_again(world, record)
    start_evaluation(world, record.run, 0, attempt=f"rules-{version}")
    return record


def _groups_to_forget(world: World, record: RunRecord, wanted: Collection[str]) -> dict[str, GroupRecord]:
    """Return the groups of custom rules that were detached before the last `MOST_DETACHED`, and are done."""
    unwanted = [name for name in record.groups if is_custom(name) and name not in wanted]
    if len(unwanted) <= MOST_DETACHED:
        return {}
    known = {group.group: group for group in world.index.groups.all_of(record.run)}
    oldest = [known[name] for name in unwanted[:-MOST_DETACHED] if name in known]
    return {
        group.group: group
        for group in oldest
        if all(rule.is_over for rule in group.rules)
        and not (group.outbox or group.lease_until or group.deaths)
    }


def rules_were_missed(world: World, record: RunRecord) -> bool:
    """Whether the run's file requests other rules, or other groups, than the index has."""
    requested, _ = requested_rules(world, record.run)
    if requested is None:
        return False
    known = world.index.rules(record.run).wanted
    differ = {rule.id for rule in requested} != {rule.id for rule in known}
    return differ or not set(record.groups).issuperset(groups_of(world, requested))


def requested_rules(world: World, run: str) -> tuple[tuple[RuleConfiguration, ...] | None, str]:
    """Return the rules that judge a run with a valid file, None without one; and what is wrong with it."""
    bucket, prefix = bucket_and_prefix(run)
    key = f"{prefix}{RULES_FILE}"
    try:
        read = read_rules(world.objects.read(bucket, key), file=f"s3://{bucket}/{key}")
    except ObjectMissing:
        return None, ""
    except (RulesFileError, DamagedFile) as problem:
        return None, str(problem)
    rules = read.with_default(lambda: default_rules(world.settings.default_rules))
    kept, too_many = within_share(
        rules, world.settings.custom_functions, most=world.settings.custom_rules_per_run
    )
    return kept, "\n".join(filter(None, (read.trouble, too_many)))


def groups_of(world: World, rules: Iterable[RuleConfiguration]) -> tuple[str, ...]:
    """Return the groups that evaluate these rules, the built-in one first."""
    deployed = world.settings.custom_functions
    return tuple(dict.fromkeys([BUILT_IN, *(group_of(rule, deployed) for rule in rules)]))


def _new_groups(
    world: World, record: RunRecord, rules: Iterable[RuleConfiguration], groups: Iterable[str]
) -> Iterator[GroupRecord]:
    """Yield the groups that are new to the run; a custom rule catches up with what others evaluated."""
    new = [group for group in groups if group not in record.groups]
    known = world.index.groups.get(record.run, BUILT_IN) if new else None
    is_current = known is not None and known.training_run == record.training_run
    through = known.cursor if known is not None and is_current else NOTHING_EVALUATED
    custom = {custom_group(rule.id): rule for rule in rules}
    for name in new:
        rule = custom.get(name)
        group = GroupRecord(name, training_run=record.training_run)
        if rule is not None:
            catching_up = RuleRecord(
                rule.id, rule.name, changed_at=world.clock.now(), catch_up_through=through
            )
            group = replace(group, rules=(catching_up,))
        yield group
