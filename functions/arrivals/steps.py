"""Recording which worker has written which step, and starting the evaluation of complete steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from functions.arrivals.attempts import by_attempt
from functions.decisions.messages import Arrival, FileKind
from functions.lifecycle.announced_end import announce_end
from functions.lifecycle.silence import end_silence
from functions.run_record import change, list_again
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.service.records import BUILT_IN, GroupRecord, RunRecord, RunState, StepRecord
from smdebug.service.step_index.items import shard_of, token_of


def record_steps(world: World, record: RunRecord, written: Sequence[Arrival], attempt: str) -> bool:
    """Record the files of steps; return whether an evaluation was started."""
    record = _reopened(world, wide_enough(world, record, written), written)
    current, earlier = by_attempt(world, record, written)
    if earlier:  # views of the run's history may need them
        note_files(world, replace(record, training_run=record.training_run - 1), earlier)
    steps = note_files(world, record, current)
    if record.num_workers is None:  # the collections file may have been recorded since
        again = world.index.run(record.run)
        if again is None or again.num_workers is None:
            return False
        return start_complete_steps(world, again, attempt)
    return _start_complete(world, record, steps, attempt)


def note_files(world: World, record: RunRecord, written: Sequence[Arrival]) -> list[StepRecord]:
    """Write to the index which files of which steps have arrived; return those steps as they are now."""
    now = world.clock.now()
    seen: dict[int, StepRecord] = {}
    for (step, shard), together in sorted(_by_shard(written).items()):
        seen[step] = world.index.note_arrivals(
            record.run,
            record.training_run,
            step,
            shard,
            frozenset(token_of(file.worker, is_index=file.kind is FileKind.INDEX) for file in together),
            uploaded=max(file.uploaded for file in together),
            indexed=now,
        )
    if not record.wide:
        return list(seen.values())
    found = (world.index.step(record.run, record.training_run, step) for step in seen)
    return [step for step in found if step is not None]


def is_noted(arrival: Arrival, known: dict[int, StepRecord]) -> bool:
    """Whether the step's record holds this file of this worker."""
    step = known.get(arrival.step, StepRecord(arrival.step))
    return arrival.worker in (step.with_index if arrival.kind is FileKind.INDEX else step.with_event)


def start_complete_steps(world: World, record: RunRecord, attempt: str) -> bool:
    """Start an evaluation if a step is complete that the rules have not seen; return whether one is."""
    return _start_complete(world, record, unseen_steps(world, record), attempt)


def _start_complete(world: World, record: RunRecord, steps: Iterable[StepRecord], attempt: str) -> bool:
    complete = sorted(step.step for step in steps if record.is_whole(step))
    if complete:
        start_evaluation(world, record.run, complete[-1], complete=complete, attempt=attempt)
    return bool(complete)


def unseen_steps(world: World, record: RunRecord) -> list[StepRecord]:
    """Return the first steps after the built-in rules' cursor."""
    return world.index.steps(
        record.run,
        record.training_run,
        first=built_in_cursor(world, record) + 1,
        limit=world.settings.longest_backlog,
    )


def built_in_cursor(world: World, record: RunRecord) -> int:
    """Return the last step of this attempt that the built-in rules have evaluated, or -1."""
    return max(-1, built_in_group(world, record).cursor)


def built_in_group(world: World, record: RunRecord) -> GroupRecord:
    """Return the group of the built-in rules; a new one if it has not seen this attempt."""
    group = world.index.groups.get(record.run, BUILT_IN)
    is_current = group is not None and group.training_run == record.training_run
    return group if group is not None and is_current else GroupRecord(BUILT_IN)


def _reopened(world: World, record: RunRecord, written: Sequence[Arrival]) -> RunRecord:
    """Return the run after new files: no longer silent, and if it had ended, ending again."""
    if record.state is RunState.SILENT:
        return end_silence(world, record)
    if not record.has_ended:
        return record
    newest = world.index.steps(record.run, record.training_run, limit=1, newest_first=True)
    if not newest or max(arrival.step for arrival in written) > newest[0].step:
        announce_end(world, record.run, "a step came after its end", again=True)
        list_again(world, record)
        record = world.index.run(record.run) or record
    return record


def wide_enough(world: World, record: RunRecord, written: Iterable[Arrival]) -> RunRecord:
    """Mark the run as wide if one item cannot hold all its workers: its steps are then read whole."""
    if record.wide or all(shard_of(arrival.worker) == 0 for arrival in written):
        return record
    return change(world, record, lambda known: replace(known, wide=True))


def _by_shard(written: Iterable[Arrival]) -> dict[tuple[int, int], list[Arrival]]:
    together: dict[tuple[int, int], list[Arrival]] = {}
    for arrival in written:
        together.setdefault((arrival.step, shard_of(arrival.worker)), []).append(arrival)
    return together
