"""Taking in what has arrived of a run: what follows from each of its files.

Everything here may happen twice, in any order, and end in the middle: what is noted are sets, and what
follows from them is looked up again each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from functions.arrivals.attempts import by_attempt, is_end_of
from functions.arrivals.rules_file import RULES_FILE, groups_of, rules_told, take_rules
from functions.decisions.configuration import default_rules
from functions.decisions.messages import (
    Arrival,
    JobEnded,
    Kind,
    arrival_of,
    bucket_and_prefix,
    comparable,
    is_older,
    job_of,
    version_of_listing,
)
from functions.lifecycle.silence import wake_in_time
from functions.run_record import change, in_trouble, with_news
from functions.workflow_start import leave_check, start_evaluation
from functions.world import World
from smdebug.exceptions import ObjectMissing, SMDebugError, StorageUnavailable
from smdebug.files.collections_file import parse_collections
from smdebug.files.names import END_MARKER
from smdebug.logger import get_logger
from smdebug.service.items import RulesOfRun, shard_of, token_of
from smdebug.service.records import (
    BUILT_IN,
    GroupRecord,
    RunRecord,
    RunState,
    StepRecord,
)

_COLLECTIONS_FILE = "collections"
_TRAINING = "training"  # two write to one place


def take_in(world: World, run: str, arrivals: Sequence[Arrival], *, attempt: str = "") -> None:
    """Note what has arrived of one run, and start what is complete by it."""
    record = world.index.run(run) or begin(world, run)
    for arrival in _latest(arrivals, Kind.RULES):
        record = take_rules(world, record, arrival)
    for arrival in _latest(arrivals, Kind.COLLECTIONS, record.collections_worker):
        record = take_collections(world, record, arrival, attempt)
    written = [one for one in arrivals if one.kind in (Kind.EVENT, Kind.INDEX)]
    started = bool(written) and take_steps(world, record, written, attempt)
    if record.outbox and not started:
        start_evaluation(world, run, 0, attempt=f"tell-{record.version}")
    for arrival in _latest(arrivals, Kind.END):
        if is_end_of(record, arrival):
            announce_end(world, run, "the end marker is there")


def job_ended(world: World, ended: JobEnded) -> None:
    """A SageMaker job has ended: so have its runs, which write no end marker."""
    for run in world.index.runs_of_job(ended.job):
        announce_end(world, run, f"the training job {ended.job} is {ended.status}")


# A run


def begin(world: World, run: str) -> RunRecord:
    """Note a run that was not known: its rules, and that it is being watched."""
    now = world.clock.now()
    told, trouble = rules_told(world, run)
    rules = default_rules(world.settings.default_rules) if told is None else told
    job = job_of(run)
    if job is not None:
        world.index.note_job(job, run)
    watch_again(world, run)
    world.index.put_rules(run, RulesOfRun(rules), "")
    groups = groups_of(world, rules)
    for group in groups:
        world.index.begin_group(run, GroupRecord(group))
    record = RunRecord(run, groups=groups, job=job, first_seen=now)
    record = with_news(record.with_trouble(RULES_FILE, trouble), "begin", now)
    if not world.index.begin_run(record):  # somebody else was faster, and did the same
        return world.index.run(run) or record
    return record


def watch_again(world: World, run: str) -> None:
    """Have a run looked after that may have been taken to be over."""
    now = world.clock.now()
    world.index.list_run(run, now)
    wake_in_time(world, run)


def announce_end(world: World, run: str, reason: str, *, again: bool = False) -> None:
    """The run says that it has ended: look once more after a while, then settle what is left."""
    now = world.clock.now()
    record = world.index.run(run)
    if record is None or (record.has_ended and not again):
        return
    change(world, record, lambda known: replace(known, state=RunState.ENDING, ended_at=now))
    get_logger().info("%s has ended: %s", run, reason)
    world.checks.leave({"finish": run}, after_seconds=world.settings.end_grace)


def _announce_end_that_is_there(world: World, record: RunRecord) -> None:
    """The attempt may have ended before it was noted."""
    bucket, prefix = bucket_and_prefix(record.run)
    for listed in world.objects.list(bucket, prefix + END_MARKER):
        arrival = arrival_of(bucket, listed.key, uploaded=listed.modified)
        if arrival is not None and arrival.run == record.run and is_end_of(record, arrival):
            announce_end(world, record.run, "the end marker is there")


# Its steps


def take_steps(world: World, record: RunRecord, written: Sequence[Arrival], attempt: str) -> bool:
    """Note who has written which step, and start the evaluation of those that are complete, if any is."""
    record = _awake(world, record, written)
    current, earlier = by_attempt(world, record, written)
    if earlier:  # who looks back may want to know of them
        note_files(world, replace(record, training_run=record.training_run - 1), earlier)
    whole = note_files(world, record, current)
    if record.num_workers is None:  # the collections file may have been noted since
        again = world.index.run(record.run)
        if again is None or again.num_workers is None:
            return False
        return start_what_is_complete(world, again, attempt)
    complete = [step.step for step in whole if step.is_complete(record.num_workers)]
    if complete:
        start_evaluation(world, record.run, max(complete), attempt=attempt)
    return bool(complete)


def note_files(world: World, record: RunRecord, written: Sequence[Arrival]) -> list[StepRecord]:
    """Note which files of which steps have arrived; those steps as they are now."""
    now = world.clock.now()
    seen: dict[int, StepRecord] = {}
    for (step, shard), together in sorted(_by_shard(written).items()):
        seen[step] = world.index.note_arrivals(
            record.run,
            record.training_run,
            step,
            shard,
            frozenset(token_of(one.worker, is_index=one.kind is Kind.INDEX) for one in together),
            uploaded=max(one.uploaded for one in together),
            indexed=now,
        )
    if not record.wide:
        return list(seen.values())
    found = (world.index.step(record.run, record.training_run, step) for step in seen)
    return [step for step in found if step is not None]


def start_what_is_complete(world: World, record: RunRecord, attempt: str) -> bool:
    """Start the evaluation of the run if any step is complete that its rules have not seen."""
    steps = unseen_steps(world, record)
    complete = [step.step for step in steps if step.is_complete(record.num_workers)]
    if complete:
        start_evaluation(world, record.run, max(complete), attempt=attempt)
    return bool(complete)


def unseen_steps(world: World, record: RunRecord) -> list[StepRecord]:
    """The steps after the cursor of the built-in rules, as far as one looks ahead."""
    group = world.index.group(record.run, BUILT_IN)
    cursor = group.cursor if group and group.training_run == record.training_run else -1
    return world.index.steps(
        record.run,
        record.training_run,
        first=cursor + 1,
        limit=world.settings.longest_backlog,
    )


# What its files say


def take_collections(world: World, record: RunRecord, arrival: Arrival, attempt: str) -> RunRecord:
    """How many workers there are, which attempt of which training this is, and the collections."""
    if record.collections_worker not in ("", arrival.worker) and record.num_workers is not None:
        return record  # all workers write the same
    if is_older(arrival.sequencer, record.collections_version):
        return record
    bucket, _ = bucket_and_prefix(record.run)
    try:
        content = parse_collections(world.objects.read(bucket, arrival.key), file=arrival.key)
    except ObjectMissing:
        return record
    except StorageUnavailable:  # it may be there at the next try
        raise
    except SMDebugError as problem:
        return in_trouble(world, record, _COLLECTIONS_FILE, str(problem))
    meta = content["_meta"]
    world.index.put_collections(record.run, content, arrival.sequencer)
    if record.num_workers is None:  # steps may be complete by it, and nothing else will say so
        leave_check(world, record)
    before = record
    record = change(
        world,
        record,
        lambda known: _with_collections(known, arrival, meta, world.clock.now()),
    )
    # Whoever noted them may have died before doing what follows.
    is_told_again = arrival.sequencer == before.collections_version
    if record.training_run:
        watch_again(world, record.run)
        list_run(world, record)
        _announce_end_that_is_there(world, record)
    if before.num_workers is None or is_told_again or record.training_run:
        start_what_is_complete(world, record, attempt)
    return record


def _with_collections(
    record: RunRecord, arrival: Arrival, meta: dict[str, object], now: float
) -> RunRecord:
    told = meta.get("run_id")
    run_id = told if isinstance(told, str) else None
    number = meta.get("training_run", 0)
    training_run = number if type(number) is int and 0 <= number < 9999 else 0
    workers = meta["num_workers"]
    assert isinstance(workers, int)
    base = record.training_base
    if record.run_id is not None and run_id is not None and run_id != record.run_id:
        if not record.has_ended:
            trouble = (
                f"Another training ({run_id}) writes to {record.location}, where {record.run_id} is "
                "still running: their steps overwrite each other. Give each training its own prefix."
            )
            return with_news(record.with_trouble(_TRAINING, trouble), f"another-{run_id}", now)
        base = record.training_run + 1
    record = record.with_trouble(_COLLECTIONS_FILE, "").with_trouble(_TRAINING, "")
    is_another = base + training_run > record.training_run
    return replace(
        record,
        num_workers=workers,
        run_id=run_id or record.run_id,
        training_base=base,
        training_run=max(record.training_run, base + training_run),
        attempt_began=(arrival.uploaded or now) if is_another else record.attempt_began,
        attempt_noted=now if is_another else record.attempt_noted,
        state=RunState.RUNNING if is_another else record.state,
        wide=record.wide or shard_of(f"worker_{workers - 1}") > 0,
        collections_version=arrival.sequencer or version_of_listing(record.collections_version),
        collections_uploaded=arrival.uploaded,
        collections_worker=arrival.worker,
    )


def list_run(world: World, record: RunRecord) -> int:
    """Note the files of the run's steps that a listing shows and that were not known; how many."""
    bucket, prefix = bucket_and_prefix(record.run)
    known = {step.step: step for step in world.index.steps(record.run, record.training_run)}
    missed: list[Arrival] = []
    for folder in ("events/", "index/"):
        for listed in world.objects.list(bucket, prefix + folder):
            arrival = arrival_of(bucket, listed.key, uploaded=listed.modified)
            if arrival is None or arrival.run != record.run:
                continue
            step = known.get(arrival.step, StepRecord(arrival.step))
            seen = step.with_index if arrival.kind is Kind.INDEX else step.with_event
            if arrival.worker not in seen:
                missed.append(arrival)
    missed, _ = by_attempt(world, record, missed)
    if missed:
        note_files(world, _wide_enough(world, record, missed), missed)
    return len(missed)


def _awake(world: World, record: RunRecord, written: Sequence[Arrival]) -> RunRecord:
    """A run of which something arrives is not silent; one that had ended ends once more, later."""
    record = _wide_enough(world, record, written)
    if record.state is RunState.SILENT:
        return _running_again(world, record)
    if not record.has_ended:
        return record
    newest = world.index.steps(record.run, record.training_run, limit=1, newest_first=True)
    if not newest or max(one.step for one in written) > newest[0].step:
        announce_end(world, record.run, "a step came after its end", again=True)
        world.index.list_run(record.run, world.clock.now())
        record = world.index.run(record.run) or record
    return record


def _running_again(world: World, record: RunRecord) -> RunRecord:
    now = world.clock.now()

    def running(known: RunRecord) -> RunRecord | None:
        if known.state is not RunState.SILENT:
            return None
        known = replace(known, state=RunState.RUNNING)
        return with_news(known, f"awake-{now:.0f}", now)

    return change(world, record, running)


def _wide_enough(world: World, record: RunRecord, written: Iterable[Arrival]) -> RunRecord:
    """More workers than one item holds: from now on a step is looked up whole."""
    if record.wide or all(shard_of(one.worker) == 0 for one in written):
        return record
    return change(world, record, lambda known: replace(known, wide=True))


def _by_shard(written: Iterable[Arrival]) -> dict[tuple[int, int], list[Arrival]]:
    together: dict[tuple[int, int], list[Arrival]] = {}
    for arrival in written:
        together.setdefault((arrival.step, shard_of(arrival.worker)), []).append(arrival)
    return together


def _latest(arrivals: Iterable[Arrival], kind: Kind, worker: str = "") -> list[Arrival]:
    """The newest of that kind, if there is one; that worker's, if there is one of it."""
    found = [one for one in arrivals if one.kind is kind]
    found = [one for one in found if one.worker == worker] or found
    return [max(found, key=lambda one: comparable(one.sequencer))] if found else []
