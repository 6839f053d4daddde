"""Deliberate breakages: each has to be caught, or the simulation proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import functions.arrivals.batch
import functions.arrivals.collections_file
import functions.arrivals.missed_files
import functions.arrivals.steps
import functions.decisions.rule_events
import functions.decisions.settling
import functions.evaluation.attaching
import functions.evaluation.built_in
import functions.evaluation.last_evaluations
import functions.evaluation.reading_shards
import functions.evaluation.rule_bench
import functions.evaluation.stepping
import functions.handlers.commit
import functions.handlers.evaluate
import functions.handlers.ingest
import functions.handlers.notify
import functions.lifecycle.reminders
import functions.lifecycle.summary
from functions.decisions.rule_lifecycle import Transition
from functions.evaluation.leased_group import LeasedGroup
from functions.evaluation.reading_shards import ShardReader
from functions.evaluation.stepping import StepWalk
from functions.followup.action_outcomes import OutcomesInIndex
from functions.rule_groups import RuleGroups
from smdebug.rules.rule import Rule
from smdebug.service.records import StepRecord


@dataclass(frozen=True)
class Mutant:
    """One breakage: its place, and the replacement."""

    name: str
    place: Any
    attribute: str
    instead: Callable[..., Any]
    scenario: str = ""  # in which it can show; any, if none is named

    @contextmanager
    def at_work(self) -> Iterator[None]:
        original = getattr(self.place, self.attribute)
        setattr(self.place, self.attribute, self.instead(original))
        try:
            yield
        finally:
            setattr(self.place, self.attribute, original)


# Plain tests hold what the simulation hides by trying again: fencing (`edits.py`, test_index_guards.py), a
# storage that is unavailable for a moment (test_unreadable_collections.py), and checks that are left for
# later, for which the sweeper makes up (promises/test_recovery.py).
MUTANTS: list[Mutant] = []


def mutant(
    name: str, place: Any, attribute: str, scenario: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(instead: Callable[..., Any]) -> Callable[..., Any]:
        MUTANTS.append(Mutant(name, place, attribute, instead, scenario))
        return instead

    return add


@mutant("no lease: two evaluate the same steps at once", RuleGroups, "lease")
def _(lease: Any) -> Any:
    return lambda self, run, group, *, now, seconds: lease(
        self, run, group, now=now + 1000, seconds=seconds - 1000
    )


@mutant("published without an outbox", RuleGroups, "commit")
def _(commit: Any) -> Any:
    return lambda self, run, record, outbox: commit(self, run, record, {})


@mutant("what an outbox still holds is not published again", functions.evaluation.built_in, "reply")
def _(original: Any) -> Any:
    def without_old(world: Any, run: str, group: Any, outbox: Mapping[str, Any], **more: Any) -> Any:
        held = world.index.groups.get(run, group) if group else None
        newest = f"batch-{held.token}" if held else ""
        new = {name: entry for name, entry in outbox.items() if name == newest or not held}
        return original(world, run, group, new, **more)

    return without_old


@mutant("the id of a finding holds the time", functions.decisions.rule_events, "_rule_event_id")
def _(original: Any) -> Any:
    import itertools

    count = itertools.count()
    return lambda *arguments: f"{original(*arguments)}-{next(count)}"


@mutant("a step counts as complete by its event files alone", StepRecord, "is_complete")
def _(original: Any) -> Any:
    return lambda self, workers: workers is not None and len(self.with_event) >= workers


@mutant("a step counts as complete when one worker is", StepRecord, "is_complete")
def _(original: Any) -> Any:
    return lambda self, workers: workers is not None and bool(self.complete_workers)


@mutant("messages are deleted before they are handled", functions.arrivals.batch.Batch, "answer")
def _(original: Any) -> Any:
    return lambda self: {"batchItemFailures": []}


@mutant("a rule begins anew in each invocation", functions.evaluation.rule_bench, "restore_state")
def _(original: Any) -> Any:
    return lambda rule, state: None


@mutant(
    "a large state overwrites the one before",
    functions.evaluation.rule_bench,
    "state_key",
    scenario="a large memory",
)
def _(original: Any) -> Any:
    return lambda group, rule, token: original(group, rule, 1)


@mutant("the cursor moves where nothing was evaluated", StepWalk, "ask_rules")
def _(original: Any) -> Any:
    def skip(self: StepWalk, step: StepRecord, *, late: bool) -> bool:
        if self.leased.deaths:  # an earlier holder died here: skip it
            return True
        return bool(original(self, step, late=late))

    return skip


@mutant("order is the order of completion", functions.decisions.settling, "_between")
def _(original: Any) -> Any:
    return lambda *arguments: (frozenset(), frozenset())


@mutant("late steps are not remembered as done", functions.evaluation.stepping, "advance")
def _(original: Any) -> Any:
    def forget(leased: LeasedGroup, *rest: Any) -> None:
        original(leased, *rest)
        leased.group = replace(leased.group, late_done=frozenset())

    return forget


@mutant(
    "the sweeper unlists a run that is just being noted",
    functions.arrivals.missed_files,
    "_NEVER_NOTED",
    scenario="one worker, goes on",
)
def _(original: Any) -> Any:
    return -1.0


@mutant("a rule remembers the end of a run that may go on", Rule, "invoke_end")
def _(original: Any) -> Any:
    def remember(self: Rule, step: int) -> None:
        try:
            original(self, step)
        finally:
            self.invoke_at_end(step)

    return remember


@mutant(
    "a good verdict does not need all steps",
    functions.evaluation.last_evaluations,
    "finish",
    "one dies, and nothing is found",
)
def _(original: Any) -> Any:
    return lambda *arguments, **more: original(*arguments, evaluated=1, unseen=0)


@mutant(
    "a run ends at once although a worker has not closed",
    functions.evaluation.last_evaluations,
    "has_everything",
    "nobody closes",
)
def _(original: Any) -> Any:
    return lambda *arguments, **more: True


@mutant(
    "a closing note counts although its step is missing",
    functions.evaluation.last_evaluations,
    "has_everything",
    "two workers, end",
)
def _(original: Any) -> Any:
    return lambda rest, group, notes, previous, *, num_workers, chief: len(notes) >= num_workers


@mutant("a late step is not counted", functions.evaluation.stepping, "with_late_done")
def _(original: Any) -> Any:
    return lambda group, step: replace(original(group, step), evaluated=group.evaluated - 1)


# Files that other functions read


@mutant(
    "a file that no other function has read counts as empty",
    ShardReader,
    "__call__",
    "two workers, read in shards",
)
def _(original: Any) -> Any:
    def as_empty(self: ShardReader, files: Any) -> Any:
        found = original(self, files)
        return {key: found.get(key, b"") for key, _ in files} if found else found

    return as_empty


@mutant(
    "the answers of two shards are taken for each other",
    functions.evaluation.reading_shards,
    "merged",
    "two workers, read in shards",
)
def _(original: Any) -> Any:
    def exchanged(parts: Any) -> Any:
        found = original(parts)
        return dict(zip(found, reversed(found.values()), strict=True))

    return exchanged


# Custom rules


@mutant(
    "an answer counts although its lease is over",
    functions.handlers.commit,
    "commit_answer",
    "custom rules to the end",
)
def _(commit: Any) -> Any:
    def anyway(world: Any, run: str, group: str, claim: Any, ran: Any) -> Any:
        now = world.index.groups.get(run, group)
        if now.lease_until == 0:
            now = world.index.groups.lease(run, group, now=world.clock.now(), seconds=60)
        return commit(world, run, group, {**claim, "token": now.token}, ran)

    return anyway


# Attempts


@mutant(
    "files of an earlier attempt count for the resumed one",
    functions.arrivals.steps,
    "by_attempt",
    "resumed",
)
def _(original: Any) -> Any:
    return lambda world, record, written: ([*written], [])


@mutant("a rule remembers the attempt before", functions.evaluation.attaching, "begin_again", "resumed")
def _(original: Any) -> Any:
    return lambda rule, configuration, moment: Transition(rule)


@mutant(
    "a resumed training goes on where the first one was",
    functions.evaluation.attaching,
    "_begin_anew",
    "resumed",
)
def _(original: Any) -> Any:
    def goes_on(leased: LeasedGroup) -> None:
        leased.group = replace(leased.group, training_run=leased.record.training_run)

    return goes_on


# Rules that come and go


@mutant("a rule that was detached goes on", functions.evaluation.attaching, "stop", "rules come and go")
def _(original: Any) -> Any:
    return lambda rule, *arguments: Transition(rule)


@mutant(
    "a rule that comes back stays stopped",
    functions.evaluation.attaching,
    "_attach_again",
    "a rule comes back",
)
def _(original: Any) -> Any:
    return lambda *arguments, **named: None


@mutant(
    "a rule that comes late begins where the others are",
    functions.evaluation.attaching,
    "move_to_lane",
    "rules come and go",
)
def _(original: Any) -> Any:
    return lambda leased, rule, cursor: original(leased, rule, leased.group.cursor)


@mutant(
    "the sweeper does not look for changed rules",
    functions.arrivals.missed_files,
    "rules_were_missed",
    "rules come and go",
)
def _(original: Any) -> Any:
    return lambda world, run: False


# Those who listen


@mutant(
    "every receiver of a finding performs its actions",
    OutcomesInIndex,
    "claim",
    "actions and alerts",
)
def _(original: Any) -> Any:
    return lambda self, *arguments, **more: True


@mutant(
    "each event that says the same is a letter of its own",
    functions.handlers.notify,
    "notify_once",
    "actions and alerts",
)
def _(original: Any) -> Any:
    return lambda writer, delivery, *arguments: original(writer, "", *arguments)
