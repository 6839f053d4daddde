"""Looking after runs: checking that what was started happened, ending them, waking up for the silent ones."""

from __future__ import annotations

from dataclasses import replace

from functions.arrivals.attempts import by_attempt, is_end_of
from functions.arrivals.recording import announce_end, list_run, take_in, unseen_steps
from functions.arrivals.rules_file import rules_were_missed
from functions.decisions.events import run_entry
from functions.decisions.giving_up import (
    Patience,
    looked_again,
    patience_with,
    progress_of,
    unfinished_of,
)
from functions.decisions.messages import (
    Arrival,
    Kind,
    Reminder,
    arrival_of,
    bucket_and_prefix,
)
from functions.decisions.settling import never_came
from functions.lifecycle.silence import marks_of
from functions.run_record import change, in_trouble
from functions.telemetry import log, metrics
from functions.workflow_start import leave_check, start_evaluation
from functions.world import World
from smdebug.files.names import collections_key, index_key
from smdebug.service.records import BUILT_IN, GroupRecord, RunRecord, RunState, StepRecord

_NEVER_NOTED = 86_400.0  # seconds after which whoever was at it has died
_NEVER_FINISHED = 600.0
_EARLY = 5.0  # seconds that a message may come before its time, by the clocks of two machines


def remind(world: World, reminder: Reminder, attempt: str) -> None:
    """A message that we left ourselves has come back."""
    if reminder.finish:
        finish(world, reminder.run, attempt)
    else:
        check(world, reminder.run, attempt, at_once=reminder.at_once)


def check(world: World, run: str, attempt: str, *, at_once: bool = False) -> bool:
    """Was every complete step of the run evaluated, and everything found published? If not, start again.

    The mark of this check is taken away first: what becomes complete from here on leaves a new one. If
    the mark is of another check that is yet to come, that one will do: otherwise each would leave two.
    """
    record = world.index.run(run)
    if record is None:
        return False
    if record.check_until <= world.clock.now() + _EARLY:
        world.index.note_check(run, 0)
        record = replace(record, check_until=0.0)
    elif not at_once:
        return False
    steps = unseen_steps(world, record)
    record = _tell_what_never_came(world, record, steps)
    groups = world.index.groups_of(record)
    _measure(world, record, steps)
    newest = max((one.step for one in steps if one.is_complete(record.num_workers)), default=None)
    unfinished = record.has_ended and bool(unfinished_of(record, groups))
    if (
        newest is not None
        or unfinished
        or record.outbox
        or record.state is RunState.ENDED
        or _is_behind(record, groups)
    ):
        return _start_again(world, record, groups, newest or 0, attempt)
    if steps and not record.has_ended:  # some workers are missing: time may settle that
        leave_check(world, record, after=900)
    return False


def _tell_what_never_came(world: World, record: RunRecord, steps: list[StepRecord]) -> RunRecord:
    settings = world.settings
    problem = never_came(
        steps,
        record.num_workers,
        timeout=settings.incomplete_step_timeout,
        now=world.clock.now(),
    )
    if not problem and record.has_ended:  # nothing more will come: what was missing then is so now
        return record
    return in_trouble(world, record, "missing files", problem)


def _start_again(
    world: World, record: RunRecord, groups: list[GroupRecord], newest: int, attempt: str
) -> bool:
    """What was not done is started again; of a run that has ended not for ever."""
    patience = Patience.HAS_LEFT
    if record.has_ended and not _waits_for_a_live_run(world, record, groups):
        progress = progress_of(record, groups)
        record = change(world, record, lambda known: looked_again(known, progress))
        patience = patience_with(record, world.settings.checks_in_vain)
    if patience is Patience.IS_GONE:
        log("What is left of the run is not tried again", level="ERROR", run=record.run)
        return False
    evaluate = patience is Patience.HAS_LEFT
    start_evaluation(world, record.run, newest, attempt=attempt, evaluate=evaluate)
    return True


def _waits_for_a_live_run(world: World, record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Is a rule waiting for another run that goes on? That one ends at some time, if only by silence."""
    left = {rule.id for group in unfinished_of(record, groups) for rule in group.rules}
    others = {
        other.removeprefix("s3://").strip("/")
        for rule in world.index.rules(record.run).wanted
        if rule.id in left
        for other in rule.other_trials
    }
    known = (world.index.run(other) for other in others)
    return any(one is not None and not one.has_ended for one in known)


def finish(world: World, run: str, attempt: str) -> None:
    """The grace period after a run's end is over: see what is there, and settle the rest."""
    record = world.index.run(run)
    if record is None or record.state not in (RunState.ENDING, RunState.ENDED):
        return  # ENDED: whoever was here before has died on the way
    list_run(world, record)
    change(
        world,
        record,
        lambda known: (
            replace(known, state=RunState.ENDED) if known.state is RunState.ENDING else None
        ),
    )
    start_evaluation(world, run, 0, attempt=f"finish-{attempt}")


def watch(world: World, run: str) -> None:
    """The wake-up of a run: is it silent, and since when? Then sleep again until it could be."""
    record = world.index.run(run)
    if record is None or record.has_ended:
        return
    now = world.clock.now()
    newest = world.index.steps(run, record.training_run, limit=1, newest_first=True)
    last = max([record.first_seen, *(step.indexed for step in newest)])
    settings = world.settings
    silent_for = now - last
    if silent_for >= settings.silence_timeout:
        announce_end(world, run, f"nothing has come for {silent_for:.0f} s")
        return
    marks = marks_of(world, run)
    following = last + min(mark for mark in marks if mark > silent_for)
    if marks[0] < settings.stall_timeout:  # the run may go on, and fall silent again
        following = min(following, now + marks[0])
    world.schedules.wake(run, at=following)
    if record.state is RunState.RUNNING and silent_for >= settings.stall_timeout:
        change(world, record, lambda known: _silent(known, last, now))
    passed = [mark for mark in marks if mark <= silent_for]
    if passed:
        start_evaluation(world, run, 0, attempt=f"silent-{last:.0f}-{max(passed):.0f}")


def sweep(world: World) -> int:
    """Find what S3 never told of, for every run that is being watched; how many files that were."""
    missed = 0
    for watched in world.index.watched_runs():
        record = world.index.run(watched.run)
        if record is None:  # being noted right now, or never: whoever did so has died on the way
            if world.clock.now() - watched.since > _NEVER_NOTED:
                world.index.unlist_run(watched)
            continue
        missed += _sweep_run(world, record)
        waits = world.clock.now() - (record.ended_at or 0.0)
        if record.state is RunState.ENDING and waits > _NEVER_FINISHED:
            world.checks.leave({"finish": record.run}, after_seconds=0)
        if record.state is RunState.FINISHED:
            world.index.unlist_run(watched)
    metrics({"MissedNotifications": (missed, "Count")})
    return missed


def _sweep_run(world: World, record: RunRecord) -> int:
    """List what sorts behind the steps that were evaluated, and take in what is not known."""
    bucket, prefix = bucket_and_prefix(record.run)
    group = world.index.group(record.run, BUILT_IN)
    cursor = max(-1, group.cursor) if group and group.training_run == record.training_run else -1
    steps = world.index.steps(record.run, record.training_run, first=cursor + 1)
    known = {step.step: step for step in steps}
    missed: list[Arrival] = []
    # All workers write the same: of one that is read, a later version is looked for.
    is_read = record.num_workers is not None
    collections = collections_key(record.collections_worker) if is_read else "collections/"
    beginnings = {
        "index/": index_key(cursor + 1, "")[: -len("_.json")],
        "events/": f"events/{cursor + 1:012}/",
        collections: "",
        "training_job_end.ts": "" if record.state in (RunState.RUNNING, RunState.SILENT) else None,
    }
    for folder, beginning in beginnings.items():
        if beginning is None:
            continue
        after = prefix + beginning if beginning else None
        for listed in world.objects.list(bucket, prefix + folder, after):
            arrival = arrival_of(bucket, listed.key, uploaded=listed.modified)
            # A notification needs a moment: what is younger may still be told.
            on_its_way = world.clock.now() - listed.modified < 60
            if arrival is None or arrival.run != record.run or on_its_way:
                continue
            is_old = arrival.kind is Kind.END and not is_end_of(record, arrival)
            if not is_old and not _is_known(record, arrival, known, cursor):
                missed.append(arrival)
    missed, _ = by_attempt(world, record, missed)
    if rules_were_missed(world, record):
        missed.append(Arrival(record.run, Kind.RULES, f"{prefix}rules.json"))
    if missed:
        take_in(world, record.run, missed, attempt=f"sweep-{world.clock.now():.0f}")
    return len(missed)


def _is_known(
    record: RunRecord, arrival: Arrival, known: dict[int, StepRecord], cursor: int
) -> bool:
    if arrival.kind is Kind.COLLECTIONS:
        read_at = record.collections_uploaded
        return record.num_workers is not None and (not read_at or arrival.uploaded <= int(read_at))
    if arrival.kind not in (Kind.EVENT, Kind.INDEX):
        return False
    if arrival.step <= cursor:
        return True
    step = known.get(arrival.step, StepRecord(arrival.step))
    return arrival.worker in (step.with_index if arrival.kind is Kind.INDEX else step.with_event)


def _silent(known: RunRecord, last: float, now: float) -> RunRecord | None:
    if known.state is not RunState.RUNNING:
        return None
    silent = replace(known, state=RunState.SILENT)
    entry = run_entry(silent, f"silent-{last:.0f}", now)
    return replace(silent, outbox={**known.outbox, **dict([entry])})


def _is_behind(record: RunRecord, groups: list[GroupRecord]) -> bool:
    """Has a group something left to publish, or steps to look at that another has seen?"""
    furthest = max((group.cursor for group in groups), default=-1)
    return any(
        group.outbox or group.cursor < furthest or group.training_run != record.training_run
        for group in groups
    )


def _measure(world: World, record: RunRecord, steps: list[StepRecord]) -> None:
    waiting = [one.indexed for one in steps if one.is_complete(record.num_workers)]
    age = world.clock.now() - min(waiting) if waiting else 0.0
    metrics({"OldestUnevaluatedStep": (round(age, 1), "Seconds")})
