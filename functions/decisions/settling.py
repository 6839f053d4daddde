"""Deciding which steps are due, in which order, and which to wait for.

A worker's index file names the step that this worker saved before. Following these from a complete step
back to the cursor shows every step in between that any worker saved: the step is due once all of those
have arrived. A step that some workers skipped never becomes complete and is passed over. Index files of
the old library do not name the previous step: there, steps are evaluated as they become complete.

A reader that lists a run decides otherwise (`smdebug.trials.progress`): a listing misses nothing, so a
complete step settles every earlier one. Notifications arrive in any order, so here it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from smdebug.service.records import GroupRecord, StepRecord

#: The step that a worker saved before a step, from its index file; None if that was its first.
PreviousStep = Callable[[int, str], int | None]


@dataclass(frozen=True)
class Settling:
    """The facts that decide whether to wait for a step."""

    num_workers: int
    cursor: int
    records_previous_steps: bool
    ended: bool  # nothing more will arrive
    timeout: float
    now: float
    chief: str = ""  # the worker whose files complete a step, if the others save digests alone


class Ready(NamedTuple):
    """A step to evaluate, and the steps before it that are given up.

    Of the steps that were given up, some workers have saved those that are `lost`. The ones below them are
    unknown: only the lost files name them.
    """

    step: StepRecord
    passed: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    late: bool = False  # a later step was evaluated before
    partly: bool = False  # some workers have not saved it as a whole, and never will

    @property
    def missing(self) -> int | None:
        """The last of the lost steps."""
        return max(self.lost, default=None)


class Waiting(NamedTuple):
    """A complete step that waits for another one, until `until` at the latest."""

    step: StepRecord
    missing: int
    until: float


def next_step(
    steps: Collection[StepRecord], settling: Settling, previous: PreviousStep
) -> Ready | Waiting | None:
    """Return the first complete step after the cursor, due or waiting; None if none is complete.

    `steps` are those after the cursor of which anything has arrived.
    """
    known = {step.step: step for step in steps if step.step > settling.cursor}
    complete = sorted(
        number for number, step in known.items() if step.is_complete(settling.num_workers, settling.chief)
    )
    if not complete:
        return None
    step = known[complete[0]]
    between, missing = _between(step, known, settling, previous)
    until = step.indexed + settling.timeout
    if missing and not settling.ended and settling.now < until:
        return Waiting(step, min(missing), until)
    return Ready(step, between, missing)


def ready_in_part(
    step: StepRecord,
    steps: Collection[StepRecord],
    settling: Settling,
    previous: PreviousStep,
) -> Ready | None:
    """Return an incomplete step of an ended run, or None if no worker has saved it as a whole.

    `steps` are those after the cursor.
    """
    if not step.complete_workers:
        return None
    known = {other.step: other for other in steps if other.step > settling.cursor}
    between, missing = _between(step, known, settling, previous)
    return Ready(step, between, missing, partly=True)


def _between(
    step: StepRecord, known: dict[int, StepRecord], settling: Settling, previous: PreviousStep
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the steps since the cursor that any worker saved before this one, and the missing ones."""
    between: set[int] = set()
    missing: set[int] = set()
    if not settling.records_previous_steps:  # nothing is waited for
        return frozenset(), frozenset()
    # Where there is a chief, no other worker saves a step that it does not save.
    followed = {settling.chief} if settling.chief else step.complete_workers
    for worker in sorted(followed):
        at = previous(step.step, worker)
        while at is not None and settling.cursor < at < step.step:
            between.add(at)
            seen = known.get(at)
            if seen is None or worker not in seen.complete_workers:
                missing.add(at)
                break
            before = previous(at, worker)
            if before is not None and before >= at:  # not in order: do not follow it
                break
            at = before
    return frozenset(between), frozenset(missing)


def has_everything(
    rest: Collection[StepRecord],
    group: GroupRecord,
    notes: Mapping[str, int],
    previous: PreviousStep,
    *,
    num_workers: int,
    chief: str = "",
) -> bool:
    """Whether all files have arrived of a run whose workers have noted their last steps.

    `rest` are the steps after the group's cursor. They are incomplete: some workers did not save them.
    """
    expected = {chief: notes[chief]} if chief and chief in notes else notes
    if group.not_evaluated or len(expected) < (1 if chief else num_workers):
        return False
    known = {step.step: step for step in rest}
    for worker, last in expected.items():
        at: int | None = last
        while at is not None and at > group.cursor:
            step = known.get(at)
            if step is None or worker not in step.complete_workers:
                return False
            before = previous(at, worker)
            at = before if before is None or before < at else None
    return True


def skipped(step: StepRecord, notes: Mapping[str, int], num_workers: int) -> bool:
    """Whether the workers that lack at this step have closed before: then it is as they meant it."""
    there = step.complete_workers
    closed = sum(last < step.step for worker, last in notes.items() if worker not in there)
    return bool(there) and len(there) + closed >= num_workers


def lost_before(
    step: StepRecord,
    group: GroupRecord,
    written: Callable[[int], StepRecord | None],
    previous: PreviousStep,
    chief: str = "",
) -> frozenset[int]:
    """Return the lost steps that a late step's files name, among those that the group gave up.

    `written` returns what has arrived of a step.
    """
    lost: set[int] = set()
    followed = {chief} if chief else step.complete_workers
    for worker in sorted(followed):
        at, before = step.step, previous(step.step, worker)
        while before is not None and before < at and group.gave_up(before):
            known = written(before)
            if known is None or worker not in known.complete_workers:
                lost.add(before)
                break
            at, before = before, previous(before, worker)
    return frozenset(lost)


def was_skipped(
    step: StepRecord,
    later: StepRecord,
    written: Callable[[int], StepRecord | None],
    previous: PreviousStep,
    chief: str = "",
) -> bool:
    """Whether all files of a lost step have come, and the other workers did not save it.

    `later` is a complete step after it: each worker's files lead back to the lost step, or past it.
    """
    if not step.complete_workers:
        return False
    for worker in sorted({chief} if chief else later.complete_workers):
        at: int | None = later.step
        while at is not None and at > step.step:
            known = later if at == later.step else written(at)
            if known is None or worker not in known.complete_workers:
                return False
            before = previous(at, worker)
            at = before if before is None or before < at else None
        if at == step.step and worker not in step.complete_workers:
            return False
    return True


def late_steps(
    steps: Collection[StepRecord],
    settling: Settling,
    *,
    group: GroupRecord,
) -> list[StepRecord]:
    """Return the steps up to the cursor that became complete after the cursor had passed them."""
    late = []
    for step in sorted(steps, key=lambda record: record.step):
        if step.step > settling.cursor or not step.is_complete(settling.num_workers, settling.chief):
            continue
        if step.step in group.late_done:
            continue
        if settling.records_previous_steps:
            evaluated = not group.gave_up(step.step)
        else:
            evaluated = group.group in step.evaluated_by
        if not evaluated:
            late.append(step)
    return late


def never_came(
    steps: Collection[StepRecord],
    num_workers: int | None,
    *,
    timeout: float,
    now: float,
    chief: str = "",
) -> str:
    """Return the problem of a run whose first incomplete step has timed out, or "".

    The text stays the same as long as the same files are missing, so that it is reported once.
    """
    waiting = [
        step
        for step in sorted(steps, key=lambda record: record.step)
        if not step.is_complete(num_workers, chief) and now - step.indexed >= timeout
    ]
    if not waiting:
        return ""
    first = waiting[0]
    if num_workers is None:
        return (
            f"Step {first.step} was saved, but no collections file has arrived, which gives the number of "
            "workers: no rule can be evaluated. Does the training write collections/?"
        )
    there = first.complete_workers
    if chief:
        return (
            f"Step {first.step} has digests of {len(there)} workers, and for {timeout:.0f} s nothing of "
            f"{chief}, which saves all the rest. A step is evaluated when {chief} has saved it."
        )
    names = [f"worker_{number}" for number in range(num_workers)]
    missing = [name for name in names if name not in there]
    if there - set(names):  # devices have names of their own
        missing = [f"{num_workers - len(there)} of them"]
    shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
    return (
        f"Step {first.step} was saved by {len(there)} of {num_workers} workers, and for {timeout:.0f} s "
        f"no other has followed: {shown} is missing. A step is evaluated when all workers have saved it; "
        "an incomplete one is passed over at a later step or at the end of the run."
    )
