"""Finding the files that no notification reported, in the runs that are being watched."""

from __future__ import annotations

from functions.arrivals.attempts import by_attempt, is_end_of
from functions.arrivals.recording import record_arrivals
from functions.arrivals.rules_file import RULES_FILE, rules_were_missed
from functions.arrivals.steps import built_in_cursor, is_noted
from functions.decisions.messages import Arrival, Kind, arrival_of, bucket_and_prefix
from functions.lifecycle.ending import abandon
from functions.step_index import Watched
from functions.telemetry import metrics
from functions.world import World
from smdebug.files.names import END_MARKER, collections_key, index_key
from smdebug.service.records import RunRecord, RunState, StepRecord

_NEVER_NOTED = 86_400.0  # seconds after which a run without a record is taken off the list
_NEVER_FINISHED = 600.0
_NOTIFIED_WITHIN = 60  # seconds: a younger file may still be reported by its notification


def sweep(world: World) -> int:
    """Record the files that were missed, in every watched run; return how many there were."""
    missed = 0
    for watched in world.index.watched_runs():
        record = world.index.run(watched.run)
        if record is None:  # being recorded right now, or the process that did so died
            if world.clock.now() - watched.since > _NEVER_NOTED:
                world.index.unlist_run(watched)
            continue
        if record.state is not RunState.FINISHED and world.index.is_abandoned(record):
            record = abandon(world, record)
        missed += _sweep_run(world, record)
        waits = world.clock.now() - (record.ended_at or 0.0)
        if record.state is RunState.ENDING and waits > _NEVER_FINISHED:
            world.checks.leave({"finish": record.run}, after_seconds=0)
        if record.state is RunState.FINISHED:
            _unlist(world, watched, record)
        elif record.expires is not None:  # the process died that let the run continue
            world.index.keep(record)
    metrics({"MissedNotifications": (missed, "Count")})
    return missed


def _unlist(world: World, watched: Watched, record: RunRecord) -> None:
    """Take a finished run off the list, and let its items expire, unless it is listed again meanwhile."""
    world.index.let_expire(record)
    if not world.index.unlist_run(watched):
        world.index.keep(record)


def _sweep_run(world: World, record: RunRecord) -> int:
    """List what sorts after the evaluated steps and record what is not known."""
    bucket, prefix = bucket_and_prefix(record.run)
    cursor = built_in_cursor(world, record)
    steps = world.index.steps(record.run, record.training_run, first=cursor + 1)
    known = {step.step: step for step in steps}
    missed: list[Arrival] = []
    for folder, start in _places(record, cursor):
        after = prefix + start if start else None
        for listed in world.objects.list(bucket, prefix + folder, after):
            arrival = arrival_of(bucket, listed.key, uploaded=listed.modified)
            is_young = world.clock.now() - listed.modified < _NOTIFIED_WITHIN
            if arrival is None or arrival.run != record.run or is_young:
                continue
            is_old_end = arrival.kind is Kind.END and not is_end_of(record, arrival)
            if not is_old_end and not _is_known(record, arrival, known, cursor):
                missed.append(arrival)
    missed, _ = by_attempt(world, record, missed)
    if rules_were_missed(world, record):
        missed.append(Arrival(record.run, Kind.RULES, f"{prefix}{RULES_FILE}"))
    if missed:
        attempt = f"sweep-{world.clock.now():.0f}"
        record_arrivals(world, record.run, missed, attempt=attempt)
    return len(missed)


def _places(record: RunRecord, cursor: int) -> list[tuple[str, str]]:
    """Return the prefixes to list, each with the key to start after."""
    # All workers write the same collections: of one that is read, only a later version matters.
    is_read = record.num_workers is not None
    places = [
        ("index/", index_key(cursor + 1, "")[: -len("_.json")]),
        ("events/", f"events/{cursor + 1:012}/"),
        (collections_key(record.collections_worker) if is_read else "collections/", ""),
    ]
    if record.state in (RunState.RUNNING, RunState.SILENT):
        places.append((END_MARKER, ""))
    return places


def _is_known(
    record: RunRecord, arrival: Arrival, known: dict[int, StepRecord], cursor: int
) -> bool:
    if arrival.kind is Kind.COLLECTIONS:
        read_at = record.collections_uploaded
        return record.num_workers is not None and (not read_at or arrival.uploaded <= int(read_at))
    if arrival.kind not in (Kind.EVENT, Kind.INDEX):
        return False
    return arrival.step <= cursor or is_noted(arrival, known)
