"""The end of a run whose last files may not have been reported: listing them, page by page, and finishing it.

Usually this has nothing to do: `evaluation.ending` knows from the closing notes of the workers that
everything has arrived, and was evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from functions.arrivals.closing_notes import record_closing_notes
from functions.arrivals.listed_files import listed_collections, record_listed
from functions.arrivals.recording import record_arrivals
from functions.arrivals.steps import note_files, start_complete_steps, wide_enough
from functions.decisions.messages import Arrival
from functions.run_record import change
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.service.records import BUILT_IN, RunRecord, RunState

_FINISH, _LIST = "finish", "list"


def finish(world: World, run: str, attempt: str) -> None:
    """End the run now that the time for its last files is over: list them, and evaluate the last ones."""
    record = world.index.run(run)
    if record is None or record.state not in (RunState.ENDING, RunState.ENDED):
        return  # ENDED: an earlier attempt at this died on the way
    if record.state is RunState.ENDING:
        due = (record.ended_at or 0.0) + world.settings.end_grace
        if world.clock.now() + world.settings.early < due:
            return  # the run went on, and ended again: another message is due then
        record = _list_collections(world, record)
        if not _list_steps(world, record, _FINISH, first=_first_doubt(world, record)):
            return
        change(world, record, _ended)
    start_evaluation(world, run, 0, attempt=f"finish-{attempt}")


def list_again(world: World, run: str, attempt: str) -> None:
    """List a resumed run: files of its new attempt were noted as of the earlier one, before it was known."""
    record = world.index.run(run)
    if record is not None and _list_steps(world, record, _LIST, first=0):
        start_complete_steps(world, world.index.run(run) or record, attempt)


def _list_steps(world: World, record: RunRecord, why: str, *, first: int) -> bool:
    """List for as long as a function works; return whether all is listed. Otherwise it is continued."""

    def note(found: Sequence[Arrival]) -> None:
        note_files(world, wide_enough(world, record, found), found)

    begun, _, after = record.listed_through.partition(" ")
    listing = record_listed(
        world,
        record,
        note,
        first=first,
        after=after if begun == why else "",
        until=world.clock.now() + world.settings.work,
    )
    through = f"{why} {listing.after}" if listing.after else ""
    change(world, record, lambda known: replace(known, listed_through=through))
    if listing.after:
        world.checks.leave({why: record.run}, after_seconds=0)
    return not listing.after


def _list_collections(world: World, record: RunRecord) -> RunRecord:
    """Look for collections files that were not reported: without them, the run has no steps or no end."""
    notes = world.index.closing_notes(record.run, record.training_run)
    if record.num_workers is not None and len(notes) >= record.num_workers:
        return record
    found = listed_collections(world, record)
    if record.num_workers is None and found:
        record_arrivals(world, record.run, found, attempt="end")
    elif found:
        record_closing_notes(world, record, found)
    return world.index.run(record.run) or record


def _first_doubt(world: World, record: RunRecord) -> int:
    """Return the first step that may have files that are not known."""
    group = world.index.groups.get(record.run, BUILT_IN)
    if group is None or group.training_run != record.training_run:
        return 0
    if not record.records_previous_steps or group.forgotten:
        return 0
    below = [gap[0] + 1 for gap in group.gaps if any(gap[0] < lost <= gap[1] for lost in group.lost)]
    return max(0, min([group.cursor + 1, *group.lost, *below]))


def _ended(known: RunRecord) -> RunRecord | None:
    return replace(known, state=RunState.ENDED) if known.state is RunState.ENDING else None
