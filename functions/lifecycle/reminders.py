"""Checking, when a reminder comes back, that everything that was started for a run has happened."""

from __future__ import annotations

from dataclasses import replace

from functions.arrivals.steps import unseen_steps
from functions.decisions.giving_up import (
    Retry,
    counted_check,
    progress_of,
    retry_of,
    unfinished_of,
)
from functions.decisions.settling import never_came
from functions.run_record import change, in_trouble
from functions.telemetry import log, metrics
from functions.workflow_start import leave_check, start_evaluation
from functions.world import World
from smdebug.service.records import GroupRecord, RunRecord, RunState, StepRecord


def check(world: World, run: str, attempt: str) -> bool:
    """Start an evaluation if a complete step was not evaluated or an event not published.

    The mark of this check is removed first, so that whatever becomes complete from here on leaves a new
    check. If the mark is of a later check, that one will do: otherwise each check would leave two.
    """
    record = world.index.run(run)
    if record is None:
        return False
    if record.check_until > world.clock.now() + world.settings.early:
        return False
    world.index.note_no_check(run)
    record = replace(record, check_until=0.0)
    steps = unseen_steps(world, record)
    record = _report_missing_files(world, record, steps)
    groups = world.index.groups.of_run(record)
    _measure(world, record, steps)
    complete = (step.step for step in steps if record.is_whole(step))
    newest = max(complete, default=None)
    unfinished = record.has_ended and bool(unfinished_of(record, groups))
    if (
        newest is not None
        or unfinished
        or record.outbox
        or record.state is RunState.ENDED
        or _is_behind(record, groups)
    ):
        return _start_again(world, record, groups, newest or 0, attempt)
    if steps and not record.has_ended:  # the missing workers may still write
        leave_check(world, record, after=900)
    return False


def _report_missing_files(world: World, record: RunRecord, steps: list[StepRecord]) -> RunRecord:
    problem = never_came(
        steps,
        record.num_workers,
        timeout=world.settings.incomplete_step_timeout,
        now=world.clock.now(),
        chief=record.chief,
    )
    if not problem and record.has_ended:  # what was missing at the end stays missing
        return record
    return in_trouble(world, record, "missing files", problem)


def _start_again(
    world: World, record: RunRecord, groups: list[GroupRecord], newest: int, attempt: str
) -> bool:
    """Start an evaluation again; of a run that has ended, only so often without progress."""
    retry = Retry.CONTINUE
    if record.has_ended and not _waits_for_live_run(world, record, groups):
        progress = progress_of(record, groups)
        record = change(world, record, lambda known: counted_check(known, progress))
        retry = retry_of(record, world.settings.checks_in_vain)
    if retry is Retry.GIVEN_UP:
        log("What is left of the run is not tried again", level="ERROR", run=record.run)
        return False
    only = None if retry is Retry.CONTINUE else ()
    start_evaluation(world, record.run, newest, attempt=attempt, only=only)
    return True


def _waits_for_live_run(world: World, record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Whether a rule waits for another run that has not ended; it will, if only by silence."""
    left = {rule.id for group in unfinished_of(record, groups) for rule in group.rules}
    others = {
        other.removeprefix("s3://").strip("/")
        for rule in world.index.rules(record.run).wanted
        if rule.id in left
        for other in rule.other_trials
    }
    known = (world.index.run(other) for other in others)
    return any(other is not None and not other.has_ended for other in known)


def _is_behind(record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Whether a group has events to publish, or steps to evaluate that another group has evaluated."""
    furthest = max((group.cursor for group in groups), default=-1)
    return any(
        group.outbox or group.cursor < furthest or group.training_run != record.training_run
        for group in groups
    )


def _measure(world: World, record: RunRecord, steps: list[StepRecord]) -> None:
    waiting = [step.indexed for step in steps if record.is_whole(step)]
    age = world.clock.now() - min(waiting) if waiting else 0.0
    metrics({"OldestUnevaluatedStep": (round(age, 1), "Seconds")})
