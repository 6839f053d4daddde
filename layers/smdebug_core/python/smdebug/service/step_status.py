"""The steps of a run: which workers have written their part, and whether the rules have evaluated it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from smdebug.service.records import GroupRecord, RunRecord, StepRecord
from smdebug.service.run_status import RunSnapshot, cursor_of, is_lane
from smdebug.service.tables import PlainData, Rows, moment


class StepState(StrEnum):
    """How much of a step has arrived."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    GIVEN_UP = "given up"  # the rules have gone on without what is missing
    UNKNOWN = "unknown"  # the number of workers is not known yet


@dataclass(frozen=True)
class StepStatus(PlainData):
    """Which workers have written a step, and whether the rules have evaluated it."""

    columns: ClassVar = ("step", "state", "mode", "mode_step", "evaluated", "missing", "uploaded")

    step: int
    state: StepState
    evaluated: bool
    workers: tuple[str, ...] = ()  # those with both their event and their index file
    missing: tuple[str, ...] = ()
    half_written: tuple[str, ...] = ()  # those of the missing that have written one of their files
    mode: str | None = None  # known once the step was evaluated
    mode_step: int | None = None
    uploaded: datetime | None = None
    indexed: datetime | None = None
    training_run: int = 0


def step_statuses(run: RunSnapshot, steps: Collection[StepRecord]) -> Rows[StepStatus]:
    """The status of each step."""
    seen = frozenset().union(*(step.with_event | step.with_index for step in steps))
    chief = run.record.chief
    workers = [chief] if chief else _all_workers(run.record.num_workers, seen)
    statuses = (_step_status(run, step, workers) for step in steps)
    return Rows(statuses, StepStatus.columns, "No step of this run has arrived yet.")


def _step_status(run: RunSnapshot, step: StepRecord, workers: Collection[str]) -> StepStatus:
    num_workers = run.record.num_workers
    complete = step.complete_workers
    missing = [worker for worker in workers if worker not in complete]
    groups = [group for group in run.groups if not is_lane(group)]
    passed = any(cursor_of(run.record, group) >= step.step for group in groups)
    if num_workers is None:
        state, missing = StepState.UNKNOWN, []
    elif run.record.is_whole(step):
        state, missing = StepState.COMPLETE, []
    elif passed or run.record.has_ended:
        state = StepState.GIVEN_UP
    else:
        state = StepState.INCOMPLETE
    begun = step.with_event | step.with_index
    return StepStatus(
        step=step.step,
        state=state,
        evaluated=bool(groups)
        and state is StepState.COMPLETE
        and all(_has_evaluated(run.record, group, step) for group in groups),
        workers=tuple(sorted(complete, key=_by_number)),
        missing=tuple(missing),
        half_written=tuple(worker for worker in missing if worker in begun),
        mode=step.mode,
        mode_step=step.mode_step,
        uploaded=moment(step.uploaded),
        indexed=moment(step.indexed),
        training_run=step.training_run,
    )


def _has_evaluated(record: RunRecord, group: GroupRecord, step: StepRecord) -> bool:
    if group.training_run != record.training_run:
        return False
    if step.step in group.late_done:
        return True
    if record.records_previous_steps:
        return step.step <= group.cursor and not group.gave_up(step.step)
    # Steps of the old library may arrive in any order, so each names the groups that evaluated it.
    return group.group in step.evaluated_by


def _all_workers(num_workers: int | None, seen: Collection[str]) -> list[str]:
    """The names of all workers: the usual ones, unless others were seen."""
    usual = [f"worker_{number}" for number in range(num_workers or 0)]
    return usual if set(seen) <= set(usual) else sorted(seen, key=_by_number)


def _by_number(worker: str) -> tuple[str, int, str]:
    stem = worker.rstrip("0123456789")
    number = worker[len(stem) :]
    return stem, int(number) if number.isascii() and number else -1, worker
