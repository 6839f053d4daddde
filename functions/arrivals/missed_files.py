"""Finding the files that no notification reported, in the runs that are being watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from functions.arrivals.attempts import is_end_of
from functions.arrivals.listed_files import (
    listed_collections,
    record_listed,
    unknown_files_of_steps,
)
from functions.arrivals.recording import record_arrivals
from functions.arrivals.rules_file import rules_were_missed
from functions.arrivals.steps import built_in_group
from functions.decisions.doubts import (
    LOST_TOGETHER,
    NOTIFIED_WITHIN,
    doubt_of,
    may_be_found,
)
from functions.decisions.messages import Arrival, FileKind, bucket_and_prefix
from functions.lifecycle.announced_end import abandon
from functions.step_index import Watched
from functions.telemetry import log_problem, metrics
from functions.world import World
from smdebug.files.names import END_MARKER, collections_key
from smdebug.service.records import RunRecord, RunState, StepRecord
from smdebug.service.rules_file import RULES_FILE

_NEVER_NOTED = 86_400.0  # seconds after which a run without a record is taken off the list
_OVERDUE = 900.0  # seconds after which a check or an end was lost, and is asked for again


def sweep(world: World, *, seconds: float = 240.0) -> int:
    """Record the files that were missed, in every watched run; return how many there were.

    A run that cannot be swept holds up no other; while it fails, the alarm is raised, as nobody knows how
    old its steps are. If the time is over, the next sweep begins elsewhere.
    """
    now = world.clock.now()
    runs = world.index.watched_runs()
    begin = int(now // 300) * _STRIDE % len(runs) if runs else 0

    def swept(watched: Watched) -> Swept:
        if world.clock.now() - now >= seconds:
            return Swept()
        try:
            return _sweep(world, watched)
        except Exception as problem:  # noqa: BLE001 - no run may affect another
            log_problem("A run could not be swept", problem, run=watched.run)
            return Swept(oldest=UNKNOWN, failed=True)

    results = _for_each(swept, [*runs[begin:], *runs[:begin]], world.settings.swept_at_once)
    missed = sum(result.missed for result in results)
    oldest = max((result.oldest for result in results), default=0.0)
    problems = sum(result.failed for result in results)
    metrics(
        {
            "MissedNotifications": (missed, "Count"),
            "RunsNotSwept": (problems, "Count"),
            # Also when it is 0: an alarm takes silence for a defect.
            "OldestUnevaluatedStep": (round(oldest, 1), "Seconds"),
        }
    )
    return missed


UNKNOWN = 900.0  # seconds: counted for a run that could not be swept; the threshold of `StepsWait`
_STRIDE = 997  # a prime: in time, each run comes first


class Swept(NamedTuple):
    """What was found of one run."""

    missed: int = 0
    """How many files no notification had reported."""
    oldest: float = 0.0
    """How long ago its first complete step was recorded that no rule has evaluated, in seconds."""
    failed: bool = False


def _for_each(work: Callable[[Watched], Swept], runs: Sequence[Watched], at_once: int) -> Sequence[Swept]:
    """Do the work for each run, for several at a time."""
    if at_once == 1 or len(runs) < 2:
        return [work(watched) for watched in runs]
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, runs))


def _sweep(world: World, watched: Watched) -> Swept:
    """Look after one run."""
    record, now = world.index.run(watched.run), world.clock.now()
    if record is None:  # being recorded right now, or the process that did so died
        if now - watched.since > _NEVER_NOTED:
            world.index.unlist_run(watched)
        return Swept()
    if record.state is not RunState.FINISHED and world.index.is_abandoned(record):
        record = abandon(world, record)
    swept = _record_missed(world, record)
    if record.state is RunState.ENDING:
        if now > (record.ended_at or 0.0) + world.settings.end_grace + _OVERDUE:
            world.checks.leave({"finish": record.run}, after_seconds=0)
    elif record.state is not RunState.FINISHED and 0 < record.check_until < now - _OVERDUE:
        world.checks.leave({"check": record.run}, after_seconds=0)
    if record.state is RunState.FINISHED:
        _unlist(world, watched, record)
    elif record.expires is not None:  # the process died that let the run continue
        world.index.keep(record)
    return swept


def _unlist(world: World, watched: Watched, record: RunRecord) -> None:
    """Take a finished run off the list, and let its items expire, unless it is listed again meanwhile."""
    world.index.let_expire(record)
    if not world.index.unlist_run(watched):
        world.index.keep(record)


def _record_missed(world: World, record: RunRecord) -> Swept:
    """Record files that are not known: single ones at once, and steps if there is a reason to list them."""
    attempt = f"sweep-{world.clock.now():.0f}"
    missed = _single_files(world, record)
    if missed:
        record_arrivals(world, record.run, missed, attempt=attempt)
    if record.has_ended:
        return Swept(len(missed))
    group = built_in_group(world, record)
    cursor = max(-1, group.cursor)

    def step(**which: Any) -> StepRecord | None:
        found = world.index.steps(record.run, record.training_run, limit=1, **which)
        return found[0] if found else None

    now = world.clock.now()
    since_lost = step(first=min(group.lost)) if group.lost else None
    if since_lost is not None and may_be_found(record, since_lost, now=now):
        missed += _record_lost(world, record, sorted(group.lost)[-LOST_TOGETHER:], attempt)
    waiting, newest = step(first=cursor + 1), step(newest_first=True)
    is_late = waiting is not None and record.is_whole(waiting)
    oldest = now - waiting.indexed if waiting is not None and is_late else 0.0
    if not doubt_of(record, waiting, newest, now=now):
        return Swept(len(missed), oldest)
    world.index.note_listing(record.run, now)
    others = listed_collections(world, record) if record.num_workers is None else []
    if others:
        record_arrivals(world, record.run, others, attempt=attempt)

    def note(found: Sequence[Arrival]) -> None:
        record_arrivals(world, record.run, found, attempt=attempt)

    listing = record_listed(
        world,
        record,
        note,
        first=cursor + 1,
        until=now + world.settings.work,
        settled=now - NOTIFIED_WITHIN,
    )
    return Swept(len(missed) + len(others) + listing.missed, oldest)


def _record_lost(world: World, record: RunRecord, steps: Sequence[int], attempt: str) -> list[Arrival]:
    """Record files that exist of steps that were given up: no later step requests them."""
    now = world.clock.now()
    found = unknown_files_of_steps(world, record, steps, settled=now - NOTIFIED_WITHIN)
    if found:  # these may name other lost steps
        record_arrivals(world, record.run, found, attempt=attempt)
    else:
        world.index.note_listing(record.run, now)
    return found


def _single_files(world: World, record: RunRecord) -> list[Arrival]:
    """Return the rules, the collections and the end marker, as far as these are newer than known."""
    bucket, prefix = bucket_and_prefix(record.run)
    settled = world.clock.now() - NOTIFIED_WITHIN
    missed: list[Arrival] = []

    def look(kind: FileKind, key: str, worker: str = "") -> None:
        written = world.objects.modified(bucket, prefix + key)
        if written is None or written > settled:
            return
        arrival = Arrival(record.run, kind, prefix + key, worker=worker, uploaded=written)
        is_new = (
            written > int(record.collections_uploaded)
            if kind is FileKind.COLLECTIONS
            else is_end_of(record, arrival)
        )
        if is_new:
            missed.append(arrival)

    if record.num_workers is not None and record.collections_uploaded:
        worker = record.collections_worker
        look(FileKind.COLLECTIONS, collections_key(worker), worker)
    if record.state in (RunState.RUNNING, RunState.SILENT):
        look(FileKind.END, END_MARKER)
    if rules_were_missed(world, record):
        missed.append(Arrival(record.run, FileKind.RULES, f"{prefix}{RULES_FILE}"))
    return missed
