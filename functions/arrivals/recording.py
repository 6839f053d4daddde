"""Recording the files of a run that have arrived, and starting what follows from each.

All of this may happen twice, in any order, and stop halfway: files are recorded in sets, and what
follows from them is read back from the index each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from functions.arrivals.attempts import is_end_of
from functions.arrivals.closing_notes import record_closing_notes
from functions.arrivals.collections_file import record_collections
from functions.arrivals.rules_file import record_rules
from functions.arrivals.steps import record_steps
from functions.decisions.messages import Arrival, FileKind, comparable
from functions.lifecycle.announced_end import announce_end
from functions.lifecycle.beginning import begun
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.service.records import RunState


def record_arrivals(world: World, run: str, arrivals: Sequence[Arrival], *, attempt: str = "") -> None:
    """Record the files of one run and start the evaluation of what they complete."""
    record = begun(world, run)
    if record is None:
        return
    for arrival in _latest(arrivals, FileKind.RULES):
        record = record_rules(world, record, arrival)
    for arrival in _collections_files(arrivals, record.collections_worker):
        record = record_collections(world, record, arrival, attempt)
    says_end = record_closing_notes(world, record, arrivals)
    for arrival in _latest(arrivals, FileKind.END):
        if is_end_of(record, arrival):
            announce_end(world, run, "the end marker is there")
            says_end = True
    written = [arrival for arrival in arrivals if arrival.kind in (FileKind.EVENT, FileKind.INDEX)]
    if written and record_steps(world, record, written, attempt):
        return
    if says_end:
        record = world.index.run(run) or record
    if says_end and record.state is RunState.ENDING:  # perhaps nothing more is to come
        start_evaluation(world, run, 0, attempt=f"end-{record.version}-{attempt}")
    elif stalls := _latest(arrivals, FileKind.STALL):  # no step is to come: the rules that watch silence
        newest = stalls[0]
        cause = newest.sequencer or f"{newest.uploaded:.0f}"
        start_evaluation(world, run, 0, attempt=f"stands-{cause}-{newest.key}-{attempt}")
    elif record.outbox:
        start_evaluation(world, run, 0, attempt=f"tell-{record.version}")


def _collections_files(arrivals: Iterable[Arrival], worker: str) -> list[Arrival]:
    """Return the newest collections file of that worker; while none is known, of each worker."""
    found = [arrival for arrival in arrivals if arrival.kind is FileKind.COLLECTIONS]
    own = [arrival for arrival in found if arrival.worker == worker]
    if worker:
        return _latest(own or found, FileKind.COLLECTIONS)
    by_worker: dict[str, list[Arrival]] = {}
    for arrival in found:
        by_worker.setdefault(arrival.worker, []).append(arrival)
    return [_latest(of_worker, FileKind.COLLECTIONS)[0] for of_worker in by_worker.values()]


def _latest(arrivals: Iterable[Arrival], kind: FileKind) -> list[Arrival]:
    """Return the newest arrival of that kind, if any."""
    found = [arrival for arrival in arrivals if arrival.kind is kind]
    return [max(found, key=lambda arrival: comparable(arrival.sequencer))] if found else []
