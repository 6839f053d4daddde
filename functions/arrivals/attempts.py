"""The attempt that a file belongs to: a resumed training overwrites the files of the previous attempt."""

from __future__ import annotations

from collections.abc import Iterable

from functions.decisions.messages import Arrival, FileKind, bucket_and_prefix
from functions.world import World
from smdebug.exceptions import ObjectMissing, SMDebugError, StorageUnavailable
from smdebug.files.index import parse_index
from smdebug.service.records import RunRecord

MOST_ATTEMPTS = 9999  # of a run: a key of the table has four digits for its attempt


def is_end_of(record: RunRecord, arrival: Arrival) -> bool:
    """Whether the end marker is of the current attempt; an earlier one remains until it is replaced."""
    return not 0.0 < arrival.uploaded < int(record.attempt_began)


def by_attempt(
    world: World, record: RunRecord, written: Iterable[Arrival]
) -> tuple[list[Arrival], list[Arrival]]:
    """Return the files of the run's current attempt, and those of earlier ones.

    Files that were written before the attempt was recorded may be of either. Their index files are read,
    newest first for each worker, until one is of an earlier attempt, as are all files before it. Event
    files do not name their attempt, and count as current if they may be: a step is complete only with
    an index file.
    """
    current: list[Arrival] = []
    earlier: list[Arrival] = []
    doubtful: dict[str, list[Arrival]] = {}
    for arrival in written:
        if not record.attempt_began or arrival.uploaded > record.attempt_noted + 1:
            current.append(arrival)
        else:
            doubtful.setdefault(arrival.worker, []).append(arrival)
    for arrivals in doubtful.values():
        last_earlier = -1.0
        index_files_first = sorted(
            arrivals,
            key=lambda arrival: (arrival.kind is FileKind.INDEX, arrival.uploaded),
            reverse=True,
        )
        for arrival in index_files_first:
            is_before = 0.0 < arrival.uploaded < last_earlier
            if is_before or (arrival.kind is FileKind.INDEX and not _is_current(world, record, arrival)):
                earlier.append(arrival)
                if arrival.kind is FileKind.INDEX:
                    last_earlier = max(last_earlier, arrival.uploaded)
            else:
                current.append(arrival)
    return current, earlier


def _is_current(world: World, record: RunRecord, arrival: Arrival) -> bool:
    """Whether the index file was written by the current attempt, as it states itself."""
    bucket, _ = bucket_and_prefix(record.run)
    try:
        extras = parse_index(world.objects.read(bucket, arrival.key), file=arrival.key).meta.extras
    except ObjectMissing:
        return False
    except StorageUnavailable:
        raise
    except SMDebugError:  # reported when the step is evaluated
        return True
    number, run_id = extras.get("training_run"), extras.get("run_id")
    if type(number) is not int:
        return True
    return (run_id, record.training_base + number) == (record.run_id, record.training_run)
