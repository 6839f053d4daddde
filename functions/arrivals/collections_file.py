"""Recording a run's collections file: its workers, its collections, and which attempt it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.arrivals.attempts import MOST_ATTEMPTS, is_end_of
from functions.arrivals.steps import start_complete_steps
from functions.decisions.messages import (
    Arrival,
    arrival_of,
    bucket_and_prefix,
    is_older,
    version_of_listing,
)
from functions.lifecycle.announced_end import announce_end
from functions.lifecycle.beginning import watch_again
from functions.run_record import LOST_STEPS, TWO_TRAININGS, UNREAD_STEPS, change, in_trouble, with_news
from functions.workflow_start import leave_check
from functions.world import World
from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import DamagedFile, ObjectMissing, SMDebugError, StorageUnavailable
from smdebug.files.collections_file import parse_collections
from smdebug.files.names import END_MARKER
from smdebug.files.replicas import Replicas
from smdebug.service.records import RunRecord, RunState
from smdebug.service.step_index.items import shard_of
from smdebug.trials.stored.attempts import AttemptId

_MOST_STARTS = 100
_COLLECTIONS_FILE = "collections"


def record_collections(world: World, record: RunRecord, arrival: Arrival, attempt: str) -> RunRecord:
    """Record the collections file and start the evaluation of steps that it makes complete."""
    if record.collections_worker not in ("", arrival.worker) and record.num_workers is not None:
        return record  # all workers write the same
    if is_older(arrival.sequencer, record.collections_version):
        return record
    bucket, _ = bucket_and_prefix(record.run)
    try:
        content = _read(world, bucket, arrival.key)
    except ObjectMissing:
        return record
    except StorageUnavailable:  # the message is delivered again
        raise
    except SMDebugError as problem:
        return in_trouble(world, record, _COLLECTIONS_FILE, str(problem))
    meta = content["_meta"]
    replicas = Replicas.of_run(meta)
    if replicas is not None and replicas.chief != arrival.worker:
        return record  # the chief's file lists what the run holds
    world.index.put_collections(record.run, content, arrival.sequencer)
    if record.num_workers is None:  # this may complete steps that nothing else will report
        leave_check(world, record)
    before = record
    record = change(
        world,
        record,
        lambda known: _with_collections(known, arrival, meta, world.clock.now()),
    )
    # A process that recorded them before may have died before starting what follows.
    is_repeated = arrival.sequencer == before.collections_version
    if record.training_run:
        watch_again(world, record)
        world.checks.leave({"list": record.run}, after_seconds=0)
        _announce_existing_end(world, record)
    if before.num_workers is None or is_repeated or record.training_run:
        start_complete_steps(world, record, attempt)
    return record


def _read(world: World, bucket: str, key: str) -> dict[str, Any]:
    """Return the content of the file, which rules can read; `DamagedFile` if they could not."""
    content = parse_collections(world.objects.read(bucket, key), file=key)
    try:
        CollectionManager.from_dict(content)
    except SMDebugError as problem:
        raise DamagedFile(key, str(problem)) from problem
    return content


def _with_collections(record: RunRecord, arrival: Arrival, meta: dict[str, object], now: float) -> RunRecord:
    value = meta.get("run_id")
    run_id = value if isinstance(value, str) else None
    number = meta.get("training_run", 0)
    training_run = number if type(number) is int and 0 <= number < MOST_ATTEMPTS else 0
    workers = meta["num_workers"]
    assert isinstance(workers, int)
    replicas = Replicas.of_run(meta)
    base = record.training_base
    if record.run_id is not None and run_id is not None and run_id != record.run_id:
        if not record.has_ended:
            trouble = (
                f"Another training ({run_id}) writes to {record.location} while {record.run_id} is "
                "still running: their steps overwrite each other. Give each training its own prefix."
            )
            return with_news(record.with_trouble(TWO_TRAININGS, trouble), f"another-{run_id}", now)
        base = record.training_run + 1
    record = record.with_trouble(_COLLECTIONS_FILE, "").with_trouble(TWO_TRAININGS, "")
    is_another = base + training_run > record.training_run
    if is_another:
        record = record.with_trouble(LOST_STEPS, "").with_trouble(UNREAD_STEPS, "")
    return replace(
        record,
        num_workers=workers,
        chief=replicas.chief if replicas is not None else "",
        run_id=run_id or record.run_id,
        training_base=base,
        training_run=max(record.training_run, base + training_run),
        attempt_began=(arrival.uploaded or now) if is_another else record.attempt_began,
        attempt_noted=now if is_another else record.attempt_noted,
        attempt_starts=_starts(record, base + training_run, meta),
        state=RunState.RUNNING if is_another else record.state,
        wide=record.wide or shard_of(f"worker_{workers - 1}") > 0,
        collections_version=arrival.sequencer or version_of_listing(record.collections_version),
        collections_uploaded=arrival.uploaded,
        collections_worker=arrival.worker,
    )


def _starts(record: RunRecord, attempt: int, meta: Mapping[str, object]) -> Mapping[str, int]:
    """Return the first steps of the run's last attempts, as far as they name them."""
    known: dict[str, int | None] = {**record.attempt_starts}
    known[str(attempt)] = AttemptId.named_in(meta).resumed_at
    last = sorted(known, key=int)[-_MOST_STARTS:]
    return {key: value for key in last if (value := known[key]) is not None}


def _announce_existing_end(world: World, record: RunRecord) -> None:
    """Announce the end of an attempt that ended before it was recorded."""
    bucket, prefix = bucket_and_prefix(record.run)
    written = world.objects.modified(bucket, prefix + END_MARKER)
    if written is None:
        return
    arrival = arrival_of(bucket, prefix + END_MARKER, uploaded=written)
    if arrival is not None and is_end_of(record, arrival):
        announce_end(world, record.run, "the end marker is there")
