"""Recording the closing notes of workers: the last step that each has saved, in its collections file.

When all of these steps have arrived, and those before them, nothing more of the run is to come.
"""

from __future__ import annotations

from collections.abc import Iterable

from functions.arrivals.attempts import MOST_ATTEMPTS
from functions.decisions.messages import Arrival, FileKind, bucket_and_prefix
from functions.run_record import report_lost_steps
from functions.world import World
from smdebug.exceptions import ObjectMissing, SMDebugError, StorageUnavailable
from smdebug.files.collections_file import ClosingNote, parse_collections
from smdebug.service.records import RunRecord


def record_closing_notes(world: World, record: RunRecord, arrivals: Iterable[Arrival]) -> bool:
    """Record the notes in the collections files that arrived; return whether there is one."""
    keys = {arrival.key: arrival for arrival in arrivals if arrival.kind is FileKind.COLLECTIONS}
    notes = [_record_note(world, record, arrival) for arrival in keys.values()]
    return any(notes)


def _record_note(world: World, record: RunRecord, arrival: Arrival) -> bool:
    bucket, _ = bucket_and_prefix(record.run)
    try:
        content = parse_collections(world.objects.read(bucket, arrival.key), file=arrival.key)
    except ObjectMissing:
        return False
    except StorageUnavailable:
        raise
    except SMDebugError:  # reported where the file is recorded
        return False
    meta = content["_meta"]
    number, note = meta.get("training_run"), ClosingNote.named_in(meta)
    is_of_run = meta.get("run_id") == record.run_id
    if note is None or not is_of_run or type(number) is not int or not 0 <= number < MOST_ATTEMPTS:
        return False
    attempt = record.training_base + number
    world.index.note_closing(record.run, attempt, arrival.worker, note.last_step)
    is_current = attempt == record.training_run
    if is_current and note.lost is not None:
        report_lost_steps(world, record, arrival.worker, note.lost)
    return is_current
